//! The one list of sensitive paths: files that run or configure something, and files that hold secrets, by their names.
//!
//! Whoever reads or writes files for a model asks here ([`is_protected_path`], [`is_secret_path`]); paths are relative to the
//! workspace, for the names of the folders above it say nothing about a file in it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Folders in which every file runs or configures something.
const PROTECTED_FOLDERS: [&str; 59] = [
    ".git",
    ".husky",
    ".githooks",
    ".vscode",
    ".zed",
    ".idea",
    ".vs",
    ".fleet",
    ".nvim",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".goose",
    ".gander",
    ".continue",
    ".windsurf",
    ".opencode",
    ".roo",
    ".amp",
    ".ci",
    ".circleci",
    ".buildkite",
    ".woodpecker",
    ".devcontainer",
    ".cargo",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".direnv",
    ".yarn",
    ".config",
    ".gitea",
    ".forgejo",
    ".agents",
    ".kiro",
    ".junie",
    ".trae",
    ".qwen",
    ".crush",
    ".factory",
    ".augment",
    ".kilocode",
    ".cline",
    ".openhands",
    ".aider",
    ".run",
    ".teamcity",
    ".semaphore",
    ".azuredevops",
    ".azure-pipelines",
    ".builds",
    ".tekton",
    ".bundle",
    ".ipython",
    ".jupyter",
    ".mise",
];

/// Files that run or configure something wherever they lie.
const PROTECTED_FILES: [&str; 137] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".envrc",
    ".xinitrc",
    ".xprofile",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".emacs",
    ".dir-locals.el",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".mcp.json",
    "mcp.json",
    "gander.toml",
    ".aider.conf.yml",
    ".goosehints",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    "jenkinsfile",
    "cloudbuild.yaml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pypirc",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".tool-versions",
    ".mise.toml",
    "mise.toml",
    "agents.md",
    "claude.md",
    "gemini.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".aider.conf.yaml",
    ".gitlab-ci.yaml",
    ".devcontainer.json",
    ".gitpod.yml",
    ".replit",
    ".pre-commit-config.yml",
    "lefthook.yaml",
    "lefthook-local.yml",
    ".lefthook.yml",
    ".overcommit.yml",
    ".tmux.conf",
    ".gdbinit",
    ".lldbinit",
    ".pdbrc",
    ".irbrc",
    ".pryrc",
    ".psqlrc",
    ".curlrc",
    ".wgetrc",
    "pip.conf",
    "sitecustomize.py",
    "usercustomize.py",
    "claude.local.md",
    "agents.override.md",
    "agents.local.md",
    "qwen.md",
    "crush.md",
    "warp.md",
    ".rules",
    ".roomodes",
    ".roorules",
    ".aider.conf",
    ".envrc.private",
    ".huskyrc",
    ".huskyrc.json",
    ".huskyrc.js",
    ".lintstagedrc",
    ".lintstagedrc.json",
    ".simple-git-hooks.json",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yaml",
    "lefthook-local.yaml",
    ".pre-commit-hooks.yaml",
    ".travis.yaml",
    ".drone.yaml",
    ".drone.star",
    ".drone.jsonnet",
    ".woodpecker.yaml",
    "azure-pipelines.yaml",
    "bitbucket-pipelines.yaml",
    ".appveyor.yml",
    ".cirrus.yml",
    ".cirrus.star",
    "buildspec.yml",
    "bitrise.yml",
    "codemagic.yaml",
    "cloudbuild.yml",
    ".build.yml",
    ".rprofile",
    ".renviron",
    ".sqliterc",
    ".pythonrc",
    ".pythonrc.py",
    ".screenrc",
    ".gemrc",
    ".asdfrc",
    ".mise.local.toml",
    "mise.local.toml",
    ".bazelrc",
    ".exrc.lua",
    "_vimrc",
    ".gvimrc",
    ".ideavimrc",
];

/// Two names in a row that run something.
const PROTECTED_PAIRS: [(&str, &str); 9] = [
    (".github", "workflows"),
    (".github", "actions"),
    (".github", "copilot-instructions.md"),
    (".github", "instructions"),
    (".github", "prompts"),
    (".github", "chatmodes"),
    (".github", "agents"),
    (".hg", "hgrc"),
    ("fish", "config.fish"),
];

/// Endings of files that run or configure something.
const PROTECTED_ENDINGS: [&str; 2] = [".code-workspace", ".sublime-project"];

/// Protected folders that tools fill by themselves, and what in them makes something run all the same.
const PARTLY_PROTECTED: [(&str, &[&str]); 2] =
    [(".yarn", &["releases", "plugins", "sdks"]), (".cargo", &["config", "config.toml", "bin"])];

/// Files of which only the scripts count: everything else in them is the project's own business.
const SCRIPTED_FILES: [&str; 7] =
    ["package.json", "package.json5", "package.yaml", "composer.json", "deno.json", "deno.jsonc", "pyproject.toml"];

/// Folders that package managers and compilers fill.
const GENERATED_FOLDERS: [&str; 14] = [
    "node_modules",
    "bower_components",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".gradle",
    ".next",
    ".nuxt",
    ".turbo",
    ".mypy_cache",
    ".pytest_cache",
];

/// What a name below a folder means to whoever looks for files that make something run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathClass {
    /// A repository of git.
    Git,
    /// Everything in it counts.
    Folder,
    /// These names in it count.
    Partly(&'static [&'static str]),
    /// It counts.
    File,
    /// Its scripts count.
    Scripted,
    /// Nobody wrote what is in it.
    Generated,
    /// Anything else.
    Plain,
}

/// What this name means below a folder of that name. Files that only hold secrets make nothing run.
pub(crate) fn classify_path_name(parent: &OsStr, name: &OsStr) -> PathClass {
    let (parent, name) = (normalize_path_name(parent), normalize_path_name(name));
    let name = name.as_str();
    let partly = PARTLY_PROTECTED.iter().find(|(folder, _)| *folder == name);
    match partly {
        Some((_, names)) => PathClass::Partly(names),
        None if name == ".git" => PathClass::Git,
        None if PROTECTED_PAIRS.contains(&(parent.as_str(), name)) => PathClass::Folder,
        None if PROTECTED_FOLDERS.contains(&name) && !SECRET_FOLDERS.contains(&name) => PathClass::Folder,
        None if is_protected_file_path(name) => PathClass::File,
        None if SCRIPTED_FILES.contains(&name) => PathClass::Scripted,
        None if GENERATED_FOLDERS.contains(&name) => PathClass::Generated,
        None => PathClass::Plain,
    }
}
/// Folders whose files are secrets.
#[rustfmt::skip]
const SECRET_FOLDERS: [&str; 11] = [
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".terraform.d", ".mozilla",
    ".thunderbird", "keyrings",
];

/// Two names in a row that hold secrets; a folder holds them with everything below it. A repository's own settings
/// hold the passwords of its remotes.
#[rustfmt::skip]
const SECRET_PAIRS: [(&str, &str); 9] = [
    (".config", "gcloud"), (".config", "gh"), (".config", "op"), (".config", "rclone"), (".config", "gander"),
    (".config", "goose"), (".m2", "settings.xml"), (".git", "config"), (".git", "config.worktree"),
];

/// Files that hold secrets.
#[rustfmt::skip]
const SECRET_FILES: [&str; 54] = [
    ".env", ".envrc", ".dev.vars", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".s3cfg", ".boto",
    ".dockercfg", ".dockerconfigjson", ".htpasswd", ".git-credentials", ".vault-token", ".yarnrc.yml",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "id_xmss",
    "credentials", "credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml", "credentials.xml",
    "credentials.db", "credentials.tfrc.json",
    "secrets.json", "secrets.toml", "secrets.yml", "secrets.yaml", "secret.json", "secret.yml",
    "secret.yaml", "secret.toml",
    "service-account.json", "service_account.json", "serviceaccountkey.json", "client_secret.json", "auth.json",
    "local.settings.json", "key.properties", "keystore.properties",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history",
];

/// Endings of files that hold secrets.
#[rustfmt::skip]
const SECRET_ENDINGS: [&str; 15] = [
    ".env", ".pem", ".key", ".p8", ".p12", ".pfx", ".pkcs12", ".jks", ".keystore", ".kdbx", ".ppk", ".ovpn",
    ".agekey", ".tfstate", ".tfvars",
];

/// Beginnings of files that hold secrets, unless their ending says that they are samples.
const SECRET_BEGINNINGS: [&str; 2] = [".env.", "client_secret_"];

/// Endings of files that show what a file of secrets would hold.
const SAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".defaults"];

/// True if writing this file could make something run, or change how tools and agents behave.
pub fn is_protected_path(path: &Path) -> bool {
    let names = normalized_path_names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    folders.iter().any(|folder| PROTECTED_FOLDERS.contains(&folder.as_str()))
        || is_protected_file_path(file)
        || PROTECTED_FOLDERS.contains(&file.as_str())
        || names.windows(2).any(|pair| PROTECTED_PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
        || is_secret_path(path)
}

fn is_protected_file_path(name: &str) -> bool {
    PROTECTED_FILES.contains(&name) || PROTECTED_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// True if this file or folder holds secrets, by its name. Samples such as `.env.example` do not.
pub fn is_secret_path(path: &Path) -> bool {
    let names = normalized_path_names(path);
    let Some(file) = names.last().map(String::as_str) else { return false };
    let sample = SAMPLES.iter().any(|sample| file.ends_with(sample));
    names.iter().any(|name| SECRET_FOLDERS.contains(&name.as_str()))
        || names.windows(2).any(|pair| SECRET_PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
        || SECRET_FILES.contains(&file)
        || SECRET_ENDINGS.iter().any(|ending| file.ends_with(ending))
        || (!sample && SECRET_BEGINNINGS.iter().any(|beginning| file.starts_with(beginning)))
}

/// Lines of a `gitattributes` file by which git shows no content of secret files, in whatever spelling.
pub(crate) fn secret_path_gitattributes() -> String {
    let folders = SECRET_FOLDERS.iter().map(|name| format!("{name}/**"));
    let pairs =
        SECRET_PAIRS.iter().flat_map(|(outer, inner)| [format!("{outer}/{inner}"), format!("{outer}/{inner}/**")]);
    let below = folders.chain(pairs).map(|pattern| format!("**/{pattern}"));
    let files = SECRET_FILES.iter().map(|name| (*name).to_owned());
    let endings = SECRET_ENDINGS.iter().map(|ending| format!("*{ending}"));
    let beginnings = SECRET_BEGINNINGS.iter().map(|beginning| format!("{beginning}*"));
    let hidden = below
        .chain(files)
        .chain(endings)
        .chain(beginnings)
        .map(|pattern| format!("{} -diff\n", case_insensitive_path_pattern(&pattern)));
    let samples =
        SAMPLES.iter().map(|ending| format!("{} diff\n", case_insensitive_path_pattern(&format!(".env.*{ending}"))));
    hidden.chain(samples).collect()
}

/// Patterns of paths by which git leaves secret files out, samples such as `.env.example` with them.
pub(super) fn secret_path_pathspecs() -> impl Iterator<Item = String> {
    let folders = SECRET_FOLDERS.iter().map(|name| format!("{name}/**"));
    let pairs =
        SECRET_PAIRS.iter().flat_map(|(outer, inner)| [format!("{outer}/{inner}"), format!("{outer}/{inner}/**")]);
    let files = SECRET_FILES.iter().map(|name| (*name).to_owned());
    let endings = SECRET_ENDINGS.iter().map(|ending| format!("*{ending}"));
    let beginnings = SECRET_BEGINNINGS.iter().map(|beginning| format!("{beginning}*"));
    let patterns = folders.chain(pairs).chain(files).chain(endings).chain(beginnings);
    patterns.map(|pattern| format!(":(top,exclude,icase,glob)**/{pattern}"))
}

/// A pattern that takes capitals for small letters.
fn case_insensitive_path_pattern(pattern: &str) -> String {
    let letter = |c: char| match c.is_ascii_lowercase() {
        true => format!("[{c}{}]", c.to_ascii_uppercase()),
        false => c.to_string(),
    };
    pattern.chars().map(letter).collect()
}

/// The path without `.` and `..`, by its letters alone.
pub(super) fn normalize_path(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
        normal
    })
}

fn normalized_path_names(path: &Path) -> Vec<String> {
    let normal = normalize_path(path);
    let names = normal.components().filter_map(|component| match component {
        Component::Normal(name) => Some(normalize_path_name(name)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    names.collect()
}

/// Lower case, because some file systems do not tell `.GIT` from `.git`; trailing dots and spaces likewise.
pub(crate) fn normalize_path_name(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase().trim_end_matches(['.', ' ']).to_owned()
}
