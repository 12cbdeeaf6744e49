//! Settings of a repository that start programs, one by one: each first proven to do so, then tried by lines of git that
//! would run unasked.

use std::fs;

use gander_tools::sandbox::Bubblewrap;

use crate::bench::Bench;
use crate::tree::Tree;
use crate::{happened, in_force, no_sandbox};

/// A setting, an attribute that uses it, and a command that then starts a program.
struct Trap {
    setting: (&'static str, &'static str),
    attribute: &'static str,
    fires: &'static [&'static str],
}

const fn trap(setting: (&'static str, &'static str), attribute: &'static str, fires: &'static [&'static str]) -> Trap {
    Trap { setting, attribute, fires }
}

const TRAPS: [Trap; 10] = [
    trap(("core.fsmonitor", "TRIP"), "", &["status"]),
    trap(("diff.external", "TRIP"), "", &["diff"]),
    trap(("diff.x.command", "TRIP"), "*.txt diff=x", &["diff"]),
    trap(("diff.x.textconv", "TRIP"), "*.txt diff=x", &["diff"]),
    trap(("diff.x.textconv", "TRIP"), "*.txt diff=x", &["blame", "notes.txt"]),
    trap(("filter.x.clean", "TRIP"), "*.txt filter=x", &["diff"]),
    trap(("filter.x.process", "TRIP"), "*.txt filter=x", &["diff"]),
    trap(("gpg.program", "TRIP"), "", &["log", "--show-signature"]),
    trap(("alias.st", "!TRIP"), "", &["st"]),
    trap(("include.path", "INCLUDED"), "*.txt filter=x", &["diff"]),
];

/// What is tried in each of them.
const LINES: [&str; 16] = [
    "git status",
    "git status --short --branch",
    "git diff",
    "git diff HEAD~1",
    "git diff --stat",
    "git diff --cached",
    "git log -p",
    "git log --stat",
    "git show",
    "git show HEAD --stat",
    "git blame notes.txt",
    "git grep -n one",
    "git ls-files -m",
    "git describe --tags --always",
    "git branch -vv",
    "git stash list",
];

pub fn every_setting() -> Vec<String> {
    let mut faults = Vec::new();
    let (mut fired, mut unasked, mut asked) = (0, 0, 0);
    for trap in TRAPS {
        let tree = Tree::plant_files();
        set(&tree, &trap);
        tree.git_in("repository", trap.fires);
        let fires = fs::read_dir(tree.at("tripped")).unwrap().count() > 0;
        fired += usize::from(fires);
        if !fires {
            faults.push(format!("git does not start what {} names: this trap shows nothing", trap.setting.0));
        }
        tree.untouched();
        let bench = Bench::new(&tree, &tree.at("repository"), Bubblewrap::IfItWorks);
        if !in_force(&bench) {
            return no_sandbox();
        }
        let before = tree.state();
        for line in LINES {
            match bench.unasked(line) {
                Some(call) => {
                    unasked += 1;
                    let found = happened(&tree, &before, &bench.run(&call), line);
                    faults.extend(found.map(|found| format!("{}: {found}", trap.setting.0)));
                }
                None => asked += 1,
            }
        }
    }
    println!(
        "settings of repositories: {fired} of {} start a program; of the lines {asked} ask, {unasked} ran",
        TRAPS.len()
    );
    faults
}

/// A small repository with this one setting, and something to compare.
fn set(tree: &Tree, trap: &Trap) {
    fs::create_dir_all(tree.at("repository")).unwrap();
    let git = |words: &[&str]| tree.git_in("repository", words);
    git(&["init", "-q", "-b", "main", "."]);
    fs::write(tree.at("repository/notes.txt"), "one\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    fs::write(tree.at("repository/notes.txt"), "one\ntwo\n").unwrap();
    git(&["commit", "-q", "-a", "-m", "second"]);
    signed(tree);
    fs::write(tree.at("included"), format!("[filter \"x\"]\n\tclean = {}\n", tree.trip())).unwrap();
    let value =
        trap.setting.1.replace("TRIP", &tree.trip()).replace("INCLUDED", &tree.at("included").to_string_lossy());
    git(&["config", trap.setting.0, &value]);
    if !trap.attribute.is_empty() {
        fs::write(tree.at("repository/.gitattributes"), format!("{}\n", trap.attribute)).unwrap();
    }
    fs::write(tree.at("repository/notes.txt"), "one\ntwo\nthree\n").unwrap();
    tree.untouched();
}

fn signed(tree: &Tree) {
    let commit = tree.git_in("repository", &["cat-file", "commit", "HEAD"]);
    let (head, message) = commit.split_once("\n\n").unwrap();
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----";
    fs::write(tree.at("commit"), format!("{head}\n{signature}\n\n{message}\n")).unwrap();
    let number = tree.git_in("repository", &["hash-object", "-t", "commit", "-w", "../commit"]);
    tree.git_in("repository", &["update-ref", "refs/heads/main", &number]);
}
