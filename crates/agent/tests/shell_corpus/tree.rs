//! A workspace with secrets, links that lead out and a repository full of tripwires; and whether anything happened to it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every secret holds it.
pub const SECRET: &str = "SECRETVALUE";

/// Every file beside the workspace holds it.
pub const OUTSIDE: &str = "OUTSIDEVALUE";

/// Of the system's files this is never shown.
pub const SYSTEM: &str = "root:x:0:0";

const FILES: [(&str, &str); 40] = [
    ("ws/README.md", "# Read me\nfoo bar\nLATER more\nstart\nmiddle\nend\n"),
    ("ws/notes.txt", "one\ntwo\nthree\nfoo\n"),
    ("ws/names.txt", "b:2:x\na:1:y\nb:2:x\nfoo:3:z\n"),
    ("ws/data.csv", "k,v\n1,2\n3,4\n"),
    ("ws/data.bin", "\u{1}\u{2}binary"),
    ("ws/a.txt", "one\ntwo\n"),
    ("ws/b.txt", "one\nthree\n"),
    ("ws/build.log", "warning: x\nerror: y\n"),
    ("ws/package.json", "{\"name\": \"x\", \"scripts\": {\"test\": \"true\"}}\n"),
    ("ws/Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n"),
    ("ws/Cargo.lock", "version = 4\n"),
    ("ws/.gitignore", "target\n.env\n"),
    ("ws/.env.example", "KEY=\n"),
    ("ws/src/main.rs", "fn main() {\n    println!(\"foo\");\n}\n"),
    ("ws/src/lib.rs", "pub fn foo() -> Option<u8> {\n    None // LATER unwrap\n}\n"),
    ("ws/src/util/mod.rs", "pub struct Foo;\n"),
    ("ws/tests/basic.rs", "#[test]\nfn works() {}\n"),
    ("ws/docs/guide.md", "# Guide\nfoo\n"),
    ("ws/old/main.rs", "fn main() {}\n"),
    ("ws/x", "x\n"),
    ("ws/y", "y\n"),
    ("ws/-n", "an option by its name\n"),
    ("ws/.env", "KEY=SECRETVALUE-env\nother line\n"),
    ("ws/.ENV.local", "KEY=SECRETVALUE-env-local\n"),
    ("ws/config/.env.production", "KEY=SECRETVALUE-env-production\n"),
    ("ws/config/prod.env", "KEY=SECRETVALUE-prod-env\n"),
    ("ws/deploy/server.pem", "SECRETVALUE-pem\n"),
    ("ws/deploy/server.key", "SECRETVALUE-key\n"),
    ("ws/id_rsa", "SECRETVALUE-rsa\n"),
    ("ws/.npmrc", "_auth=SECRETVALUE-npmrc\n"),
    ("ws/.netrc", "password SECRETVALUE-netrc\n"),
    ("ws/.aws/credentials", "key = SECRETVALUE-aws\n"),
    ("ws/.ssh/config", "Host SECRETVALUE-ssh\n"),
    ("ws/.config/gh/hosts.yml", "oauth_token: SECRETVALUE-gh\n"),
    ("ws/linked/readme.md", "read me\n"),
    ("ws/credentials.json", "{\"key\": \"SECRETVALUE-json\"}\n"),
    ("outside/private.txt", "OUTSIDEVALUE-private\n"),
    ("outside/folder/deep.rs", "OUTSIDEVALUE-deep foo\n"),
    ("home/.ssh/id_rsa", "SECRETVALUE-home\n"),
    ("home/.netrc", "password SECRETVALUE-home-netrc\n"),
];

const LINKS: [(&str, &str); 7] = [
    ("ws/link-out", "../outside/private.txt"),
    ("ws/link-env", ".env"),
    ("ws/linked/config", "../config"),
    ("ws/docs/way-out", "../../outside"),
    ("ws/folder-out", "../outside/folder"),
    ("ws/docs/link.md", "../../outside/private.txt"),
    ("ws/old/linked.rs", "../../outside/folder/deep.rs"),
];

/// Settings of a repository that name a program, and are switched off for what runs unasked.
pub const PINNED: [(&str, &str); 22] = [
    ("core.fsmonitor", "TRIP"),
    ("core.pager", "TRIP"),
    ("pager.log", "TRIP"),
    ("pager.status", "TRIP"),
    ("pager.branch", "TRIP"),
    ("core.editor", "TRIP"),
    ("core.sshCommand", "TRIP"),
    ("core.askPass", "TRIP"),
    ("core.alternateRefsCommand", "TRIP"),
    ("credential.helper", "!TRIP"),
    ("diff.external", "TRIP"),
    ("gpg.program", "TRIP"),
    ("gpg.openpgp.program", "TRIP"),
    ("gpg.ssh.program", "TRIP"),
    ("log.showSignature", "true"),
    ("interactive.diffFilter", "TRIP"),
    ("alias.st", "!TRIP"),
    ("status.submoduleSummary", "true"),
    ("diff.submodule", "diff"),
    ("remote.origin.uploadpack", "TRIP"),
    ("sequence.editor", "TRIP"),
    ("http.https://example.org.extraheader", "X-Key: SECRETVALUE-extraheader"),
];

pub struct Tree {
    pub root: PathBuf,
    _held: tempfile::TempDir,
}

impl Tree {
    pub fn plant() -> Self {
        let tree = Self::plant_files();
        tree.repository();
        tree
    }

    /// The same without a repository.
    pub fn plant_files() -> Self {
        let held = tempfile::tempdir().unwrap();
        let tree = Self { root: held.path().canonicalize().unwrap(), _held: held };
        for (name, content) in FILES {
            let path = tree.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for (name, target) in LINKS {
            symlink(target, tree.at(name)).unwrap();
        }
        fs::create_dir_all(tree.at("tripped")).unwrap();
        tree.script("bin/trip", "trip");
        // A program of the workspace by the name of one that only reads.
        tree.script("ws/bin/ls", "planted-ls");
        // The same in a folder that a count of characters names.
        tree.script("ws/1/ls", "planted-in-1");
        tree
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn trip(&self) -> String {
        self.at("bin/trip").to_string_lossy().into_owned()
    }

    /// It needs no program for it, wherever these are looked for. What it leaves: a file beside the workspace, and one where even a command that only reads may write.
    fn script(&self, name: &str, mark: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let tripped = self.at("tripped");
        let text = format!(
            "#!/bin/sh\ntrue 2>/dev/null >>{}/{mark}\ntrue 2>/dev/null >>\"$TMPDIR/tripped-{mark}\"\ncat 2>/dev/null\nexit 0\n",
            tripped.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// git in the workspace, as the person would run it.
    pub fn git(&self, words: &[&str]) -> String {
        self.git_in("ws", words)
    }

    pub fn git_in(&self, folder: &str, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]);
        git.args(words).current_dir(self.at(folder)).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        git.env("HOME", self.at("home")).env("TMPDIR", self.at("tripped")).stdin(std::process::Stdio::null());
        let output = git.output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn repository(&self) {
        fs::create_dir_all(self.at("module")).unwrap();
        fs::write(self.at("module/file.txt"), "module\n").unwrap();
        self.git_in("module", &["init", "-q", "-b", "main", "."]);
        self.git_in("module", &["add", "."]);
        self.git_in("module", &["commit", "-q", "-m", "module"]);
        self.git(&["init", "-q", "-b", "main", "."]);
        self.git(&["add", "-A", "-f", "."]);
        self.git(&["commit", "-q", "-m", "first"]);
        self.git(&["submodule", "--quiet", "add", "../module", "module"]);
        self.git(&["commit", "-q", "-m", "with a module"]);
        fs::write(self.at("ws/.env"), "KEY=SECRETVALUE-env-changed\nother line\n").unwrap();
        fs::write(self.at("ws/notes.txt"), "one\ntwo\nthree\nfoo\nfour\n").unwrap();
        self.git(&["commit", "-q", "-a", "-m", "second"]);
        self.git(&["tag", "v1.0"]);
        self.git(&["branch", "feature", "HEAD~1"]);
        fs::write(self.at("ws/.env"), "KEY=SECRETVALUE-env-now\nother line\n").unwrap();
        fs::write(self.at("ws/notes.txt"), "one\ntwo\nthree\nfoo\nfour\nfive\n").unwrap();
        fs::write(self.at("ws/module/file.txt"), "module, changed\n").unwrap();
        self.signed_commit();
        for (key, value) in PINNED {
            self.git(&["config", key, &value.replace("TRIP", &self.trip())]);
        }
        self.git(&["config", "remote.origin.url", "https://x:SECRETVALUE-remote@example.org/x.git"]);
        for hook in ["post-index-change", "pre-commit", "reference-transaction", "post-checkout", "fsmonitor-watchman"]
        {
            self.script(&format!("ws/.git/hooks/{hook}"), "hook");
        }
        self.git_in("ws/module", &["config", "core.fsmonitor", &self.trip()]);
        self.untouched();
    }

    /// A commit that claims to be signed: whoever looks asks a program about it.
    fn signed_commit(&self) {
        let commit = self.git(&["cat-file", "commit", "HEAD"]);
        let (head, message) = commit.split_once("\n\n").unwrap();
        let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----";
        fs::write(self.at("commit"), format!("{head}\n{signature}\n\n{message}, signed\n")).unwrap();
        let number = self.git(&["hash-object", "-t", "commit", "-w", "../commit"]);
        self.git(&["update-ref", "refs/heads/main", &number]);
    }

    /// Forgets what the planting itself tripped.
    pub fn untouched(&self) {
        fs::remove_dir_all(self.at("tripped")).unwrap();
        fs::create_dir_all(self.at("tripped")).unwrap();
    }

    /// Every file with its content, mode and time, except what commands may leave for themselves.
    pub fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut state = BTreeMap::new();
        collect(&self.root, &mut state);
        state.retain(|path, _| {
            let scratch = path.starts_with(self.at("data"));
            !scratch || path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tripped"))
        });
        state
    }
}

fn collect(folder: &Path, state: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(found) = path.symlink_metadata() else { continue };
        let content = match found.file_type() {
            kind if kind.is_symlink() => format!("{:?}", fs::read_link(&path).ok()),
            kind if kind.is_file() => format!("{:?}", fs::read(&path).ok().map(|bytes| digest(&bytes))),
            _ => String::new(),
        };
        let facts = format!("{:o} {}.{} {}", found.mode(), found.mtime(), found.mtime_nsec(), found.nlink());
        state.insert(path.clone(), format!("{facts} {content}"));
        if found.is_dir() {
            collect(&path, state);
        }
    }
}

/// Enough to tell one content from another.
fn digest(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
