//! Files that make programs of the host run something: what commands do to them is found, undone, and kept on a yes.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gander_tools::protected::{Afterwards, OnChange, ProtectedFiles, SetAsideChanges};

/// A workspace with a repository, an editor's settings and a package.
struct Workspace {
    folder: tempfile::TempDir,
    protected: ProtectedFiles,
}

const FILES: [(&str, &str); 7] = [
    (".git/HEAD", "ref: refs/heads/main\n"),
    (".git/config", "[core]\n\tbare = false\n"),
    (".git/refs/heads/main", "1234\n"),
    (".git/objects/12/34", "x"),
    (".vscode/tasks.json", "{}\n"),
    ("package.json", "{\"dependencies\":{\"a\":\"1\"},\"scripts\":{\"test\":\"jest\"}}\n"),
    ("src/main.rs", "fn main() {}\n"),
];

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("store")).unwrap();
        let protected = ProtectedFiles::with_store(folder.path().join("store"));
        let workspace = Self { folder, protected };
        FILES.iter().for_each(|(name, content)| workspace.put(name, content));
        workspace
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn put(&self, name: &str, content: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    fn get(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }

    fn folders(&self) -> Vec<PathBuf> {
        vec![self.at("")]
    }

    /// What somebody would be asked after a command that does this.
    async fn command(&self, does: impl FnOnce(&Self)) -> Option<SetAsideChanges> {
        let watched = self.protected.watch_command(&self.folders()).await.unwrap();
        does(self);
        watched.finish_command(OnChange::SetAside).await.unwrap()
    }

    fn is_as_it_was(&self) {
        for (name, content) in FILES {
            assert_eq!(self.get(name).as_deref(), Some(content), "{name}");
        }
    }
}

#[tokio::test]
async fn ordinary_work_is_nobodys_business() {
    let workspace = Workspace::new();
    let aside = workspace
        .command(|workspace| {
            workspace.put("src/main.rs", "fn main() { }\n");
            workspace.put("src/new/deep.rs", "");
            workspace.put("build.rs", "fn main() {}");
            workspace.put("Makefile", "all:\n\ttrue\n");
            workspace.put("node_modules/x/package.json", "{\"scripts\":{\"install\":\"x\"}}");
            workspace.put("package.json", "{\"dependencies\":{\"a\":\"2\"},\"scripts\":{\"test\":\"jest\"}}\n");
            workspace.put("library/package.json", "{\"name\":\"library\"}");
            // What a commit and a clone write.
            workspace.put(".git/index", "x");
            workspace.put(".git/refs/heads/main", "5678\n");
            workspace.put(".git/objects/56/78", "x");
            workspace.put("clone/.git/HEAD", "ref: refs/heads/main\n");
            workspace.put("clone/.git/hooks/pre-commit.sample", "#!/bin/sh\n");
            workspace
                .put("clone/.git/config", "[core]\n\tbare = false\n[remote \"o\"]\n\turl = https://example.org/x\n");
            workspace.put(".yarn/cache/x.zip", "x");
            workspace.put(".env", "KEY=1\n");
        })
        .await;
    assert!(aside.is_none(), "{}", aside.unwrap().one_line());
}

/// Each plants something; what is named is what somebody is asked about.
#[tokio::test]
async fn what_is_planted_is_undone_and_put_in_place_on_a_yes() {
    type Plant = fn(&Workspace);
    let planted: [(&str, Plant); 12] = [
        (".envrc", |workspace| workspace.put(".envrc", "evil")),
        (".git/config", |workspace| workspace.put(".git/config", "[core]\n\tfsmonitor = evil\n")),
        (".git/hooks/pre-commit", |workspace| workspace.put(".git/hooks/pre-commit", "evil")),
        (".vscode/tasks.json", |workspace| fs::remove_file(workspace.at(".vscode/tasks.json")).unwrap()),
        (".vscode/tasks.json", |workspace| {
            fs::set_permissions(workspace.at(".vscode/tasks.json"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        (".github/workflows/x.yml", |workspace| workspace.put(".github/workflows/x.yml", "evil")),
        ("deep/er/.gitattributes", |workspace| workspace.put("deep/er/.gitattributes", "* filter=evil")),
        ("package.json", |workspace| workspace.put("package.json", "{\"scripts\":{\"test\":\"evil\"}}")),
        ("pyproject.toml", |workspace| workspace.put("pyproject.toml", "[tool.poe.tasks]\nx = 'evil'\n")),
        ("sub/.git/config", |workspace| workspace.put("sub/.git/config", "[alias]\nst = !evil\n")),
        (".zed", |workspace| symlink("src", workspace.at(".zed")).unwrap()),
        ("bare/config", |workspace| {
            workspace.put("bare/HEAD", "ref: refs/heads/main\n");
            workspace.put("bare/config", "[core]\nfsmonitor = evil\n");
            workspace.put("bare/refs/x", "");
            workspace.put("bare/objects/x", "");
        }),
    ];
    for (name, plant) in planted {
        let workspace = Workspace::new();
        let before = state(&workspace.at(name));
        let aside = workspace.command(plant).await.unwrap_or_else(|| panic!("{name} is not noticed"));
        assert_eq!(aside.path_names(), name);
        assert_eq!(state(&workspace.at(name)), before, "{name} is as it was while somebody is asked");
        let stored = fs::read_dir(workspace.folder.path().join("store")).unwrap().count();
        assert_eq!(stored, 1, "the new content of {name} is kept outside of the workspace");
        drop(aside);
        assert_eq!(fs::read_dir(workspace.folder.path().join("store")).unwrap().count(), 0, "a no drops it");
        let aside = workspace.command(plant).await.unwrap();
        assert_eq!(aside.apply_changes().await.unwrap(), Vec::<String>::new());
        assert_ne!(state(&workspace.at(name)), before, "{name} is in place after a yes");
        assert!(workspace.command(|_| {}).await.is_none(), "and nobody is asked again");
    }
}

#[tokio::test]
async fn a_folder_that_counts_itself_is_watched_as_a_whole() {
    for (root, file) in [(".github", "workflows/x.yml"), (".vscode", "tasks.json"), (".cargo", "config.toml")] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(root);
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        let watched = ProtectedFiles::default().watch_command(std::slice::from_ref(&root)).await.unwrap();
        fs::write(root.join(file), "evil").unwrap();
        let aside = watched.finish_command(OnChange::SetAside).await.unwrap();
        assert_eq!(aside.map(|aside| aside.path_names()).as_deref(), Some(file));
        assert!(!root.join(file).exists());
    }
}

/// Mode, link or text of what stands at a path.
fn state(path: &Path) -> Option<(u32, String)> {
    let there = path.symlink_metadata().ok()?;
    let text = fs::read_link(path).map(|target| target.display().to_string());
    Some((there.permissions().mode(), text.or_else(|_| fs::read_to_string(path)).unwrap_or_default()))
}

#[tokio::test]
async fn a_repository_that_was_moved_away_comes_back_whole() {
    let workspace = Workspace::new();
    let aside = workspace
        .command(|workspace| {
            fs::rename(workspace.at(".git"), workspace.at("away")).unwrap();
            workspace.put(".git/HEAD", "ref: refs/heads/evil\n");
            workspace.put(".git/config", "[core]\n\tfsmonitor = evil\n");
        })
        .await
        .unwrap();
    assert_eq!(aside.path_names(), ".git was moved to away, and back");
    workspace.is_as_it_was();
}

#[tokio::test]
async fn links_in_the_way_lead_nowhere() {
    let workspace = Workspace::new();
    let outside = workspace.folder.path().join("outside");
    fs::create_dir_all(outside.join(".vscode")).unwrap();
    fs::write(outside.join(".vscode/tasks.json"), "mine").unwrap();
    workspace.put("sub/.vscode/tasks.json", "as it was");
    let target = outside.clone();
    let aside = workspace
        .command(move |workspace| {
            fs::remove_dir_all(workspace.at("sub")).unwrap();
            symlink(&target, workspace.at("sub")).unwrap();
            fs::remove_dir_all(workspace.at(".vscode")).unwrap();
            symlink(target.join(".vscode"), workspace.at(".vscode")).unwrap();
        })
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(outside.join(".vscode/tasks.json")).unwrap(), "mine");
    assert_eq!(workspace.get("sub/.vscode/tasks.json").as_deref(), Some("as it was"));
    workspace.is_as_it_was();
    assert_eq!(aside.apply_changes().await.unwrap(), Vec::<String>::new());
    assert_eq!(fs::read_to_string(outside.join(".vscode/tasks.json")).unwrap(), "mine");
}

#[tokio::test]
async fn while_somebody_is_asked_no_other_command_begins() {
    let workspace = Workspace::new();
    let other = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    let aside = workspace.command(|workspace| workspace.put(".envrc", "evil")).await.unwrap();
    let folders = workspace.folders();
    let begin = workspace.protected.watch_command(&folders);
    tokio::pin!(begin);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut begin).await.is_err(), "it waits");
    assert_eq!(aside.apply_changes().await.unwrap(), Vec::<String>::new());
    let next = begin.await.unwrap();
    assert!(next.finish_command(OnChange::SetAside).await.unwrap().is_none());
    assert!(other.finish_command(OnChange::SetAside).await.unwrap().is_none(), "nobody is blamed for what was allowed");
    assert_eq!(workspace.get(".envrc").as_deref(), Some("evil"));
}

#[tokio::test]
async fn what_a_file_tool_was_allowed_is_not_blamed_on_a_command() {
    let workspace = Workspace::new();
    let watched = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    workspace.put(".envrc", "good");
    workspace.protected.accept_change(workspace.at(".envrc")).await.unwrap();
    assert!(watched.finish_command(OnChange::SetAside).await.unwrap().is_none());
    assert_eq!(workspace.get(".envrc").as_deref(), Some("good"));
}

#[tokio::test]
async fn what_nobody_waits_for_is_undone() {
    let workspace = Workspace::new();
    let watched = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    workspace.put(".envrc", "evil");
    drop(watched);
    // The next command begins when that is done.
    let next = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    assert_eq!(workspace.get(".envrc"), None);
    assert!(next.finish_command(OnChange::SetAside).await.unwrap().is_none());
}

#[tokio::test]
async fn what_a_command_did_before_the_server_died_is_found_by_the_next_one() {
    let workspace = Workspace::new();
    let watched = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    workspace.put(".envrc", "evil");
    workspace.put(".vscode/tasks.json", "evil");
    std::mem::forget(watched); // killed
    let next = ProtectedFiles::with_store(workspace.folder.path().join("store"));
    let aside = next.recover_interrupted(&workspace.folders()).await.unwrap().unwrap();
    assert_eq!(aside.path_names(), ".envrc, .vscode/tasks.json");
    workspace.is_as_it_was();
    drop(aside);
    assert!(next.recover_interrupted(&workspace.folders()).await.unwrap().is_none());
    assert_eq!(workspace.get(".envrc"), None);
}

/// What a program leaves behind after its call, when the server ends right then.
async fn planted_after_a_call(workspace: &Workspace) -> ProtectedFiles {
    let watched = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    let watched = watched.followed_by(Afterwards::Programs);
    assert!(watched.finish_command(OnChange::SetAside).await.unwrap().is_none());
    workspace.put(".envrc", "evil");
    ProtectedFiles::with_store(workspace.folder.path().join("store"))
}

#[tokio::test]
async fn what_a_program_did_before_the_server_died_is_asked_about_by_the_next_one() {
    let workspace = Workspace::new();
    let (next, folders) = (planted_after_a_call(&workspace).await, workspace.folders());
    assert!(next.has_old_note(&folders).await);
    for _ in 0..2 {
        // Without an answer it is asked again.
        let changed = next.changes_since_last(&folders, OnChange::Ask).await.unwrap().unwrap();
        assert_eq!((changed.path_names().as_str(), workspace.get(".envrc").as_deref()), (".envrc", Some("evil")));
    }
    let changed = next.changes_since_last(&folders, OnChange::Ask).await.unwrap().unwrap();
    assert!(changed.undo().await.unwrap().is_empty());
    workspace.is_as_it_was();
    assert!(!next.has_old_note(&folders).await, "it was asked");
    // Nor does the server after that ask again.
    let later = ProtectedFiles::with_store(workspace.folder.path().join("store"));
    assert!(later.changes_since_last(&folders, OnChange::Ask).await.unwrap().is_none());
}

#[tokio::test]
async fn what_a_person_does_while_no_server_runs_is_their_own() {
    let workspace = Workspace::new();
    let (next, folders) = (planted_after_a_call(&workspace).await, workspace.folders());
    workspace.protected.note_server_end().await;
    // Right before the end it may have been a program; long after it, nobody but the person.
    assert!(next.changes_since_last(&folders, OnChange::Ask).await.unwrap().is_some());
    let store = workspace.folder.path().join("store");
    let note = std::fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    let mut noted: serde_json::Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    assert!(noted["ended"].is_i64(), "{noted}");
    noted["ended"] = 1.into();
    std::fs::write(&note, noted.to_string()).unwrap();
    let later = ProtectedFiles::with_store(store);
    assert!(later.changes_since_last(&folders, OnChange::Ask).await.unwrap().is_none());
    assert_eq!(workspace.get(".envrc").as_deref(), Some("evil"));
}

#[tokio::test]
async fn who_does_not_look_for_an_interrupted_command_still_finds_what_it_did() {
    let workspace = Workspace::new();
    let watched = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    workspace.put(".envrc", "evil");
    std::mem::forget(watched); // killed
    let next = ProtectedFiles::with_store(workspace.folder.path().join("store"));
    let watched = next.watch_command(&workspace.folders()).await.unwrap();
    let aside = watched.finish_command(OnChange::SetAside).await.unwrap().unwrap();
    assert_eq!(aside.path_names(), ".envrc");
    workspace.is_as_it_was();
}

#[tokio::test]
async fn with_nobody_to_ask_it_stays_and_is_told() {
    let workspace = Workspace::new();
    let watched = workspace.protected.watch_command(&workspace.folders()).await.unwrap();
    workspace.put(".envrc", "evil");
    let told = watched.finish_command(OnChange::Tell).await.unwrap().unwrap();
    assert_eq!((told.one_line().as_str(), workspace.get(".envrc").as_deref()), (".envrc (new: evil)", Some("evil")));
}
