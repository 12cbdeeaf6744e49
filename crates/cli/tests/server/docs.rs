//! Executes the shell blocks of the docs that are marked `sh run`, each with a home directory and a server of its own.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binary::TestDirectory;

#[test]
fn blocks_marked_run_succeed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let blocks: Vec<_> = pages(&root).iter().flat_map(|page| blocks(page)).collect();
    assert!(blocks.len() >= 3, "only {} blocks are marked `sh run`", blocks.len());
    for (name, script) in blocks {
        run(&name, &script);
    }
}

fn pages(root: &Path) -> Vec<PathBuf> {
    let folder = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pages = folder(root.join("docs")).chain(folder(root.join("docs/guides"))).chain([root.join("README.md")]);
    pages.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

fn blocks(page: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(page).unwrap();
    let marked = text.split("```sh run\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    marked.map(|(script, _)| (page.display().to_string(), script.to_owned())).collect()
}

fn run(name: &str, script: &str) {
    let directory = TestDirectory::new();
    let programs = directory.folder("programs");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gander"), Path::new(&programs).join("gander")).unwrap();
    let mut shell = Command::new("bash");
    // The docs speak to somebody who has used gander before.
    let script = format!("gander run text >/dev/null 2>&1\n{script}");
    shell.args(["-euo", "pipefail", "-c", &script]).current_dir(directory.folder("work")).stdin(Stdio::null());
    shell.env_clear().env("HOME", directory.root.path()).env("PATH", format!("{programs}:/usr/bin:/bin"));
    shell.env("GANDER_DATA", directory.data()).env("GANDER_MODEL", "demo/demo");
    let output = shell.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{name}\n{script}\n{}{}", text(&output.stdout), text(&output.stderr));
}
