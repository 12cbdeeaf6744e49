//! Attributes of a repository by which git would show secret files, one by one: each first proven to do so, then tried by
//! lines of git. And lines that show nothing of a secret file, but tell whether it holds a certain word.

use std::fs;

use gander_tools::sandbox::Bubblewrap;

use crate::bench::Bench;
use crate::tree::{SECRET, Tree};
use crate::{happened, in_force, no_sandbox};

/// Where attributes are written, and what.
const TRAPS: [(&str, &str); 21] = [
    (".gitattributes", ".env diff"),
    (".gitattributes", "* diff"),
    (".gitattributes", "*.env diff"),
    (".gitattributes", ".env !diff"),
    (".gitattributes", ".env diff=foo"),
    (".gitattributes", ".env diff=rust"),
    (".gitattributes", "\t.env\ttext diff"),
    (".gitattributes", "\u{feff}.env diff"),
    (".gitattributes", "\".env\" diff"),
    (".gitattributes", "\"\\056env\" diff"),
    (".gitattributes", "\\.env diff"),
    (".gitattributes", ".e[n]v diff"),
    (".gitattributes", ".env* diff\r"),
    (".gitattributes", "[attr]shown diff\n.env shown"),
    (".gitattributes", "[attr]outer inner\n[attr]inner diff\n.env outer"),
    (".gitattributes", "[attr]binary diff\n.env binary"),
    (".gitattributes", "* -text diff merge"),
    (".git/info/attributes", ".env diff"),
    (".git/info/attributes", "* !diff"),
    ("config/.gitattributes", "*.env diff"),
    ("config/.gitattributes", "* diff=x"),
];

const LINES: [&str; 22] = [
    "git diff",
    "git diff HEAD",
    "git diff HEAD~1",
    "git diff HEAD~1 HEAD",
    "git diff --cached",
    "git diff --stat -p",
    "git diff -U0",
    "git diff --word-diff",
    "git show",
    "git show HEAD~1",
    "git show -U3 HEAD",
    "git log -p",
    "git log -p --all",
    "git log -up",
    "git log -U1",
    "git log --patch --stat",
    "git log --word-diff",
    "git log -p --follow notes.txt",
    "git grep -h .",
    "git grep . HEAD",
    "git grep -a .",
    "cd config && git diff",
];

/// Lines with a word to be guessed.
const GUESSES: [&str; 16] = [
    "git grep WORD",
    "git grep -c WORD",
    "git grep -l WORD",
    "git grep -L WORD",
    "git grep -q WORD && echo found",
    "git grep -c WORD HEAD",
    "git grep -l WORD HEAD~1 HEAD",
    "git grep --cached -l WORD",
    "git grep --untracked -l WORD",
    "git grep -l -e WORD -- .",
    "git grep -l WORD -- config",
    "git grep -c -i WORD",
    "git log --oneline -S WORD",
    "git log --oneline -SWORD",
    "git log --oneline -G WORD",
    "git log --oneline --all -G WORD -- .",
];

/// Names under which a secret file lives on, or from which it came.
const FORMER: [&str; 6] = [
    "git log -L1,1:moved.txt",
    "git log -L 1,2:moved.txt",
    "git log -L:KEY:moved.txt",
    "git log -p --follow moved.txt",
    "git log --follow -S SECRETVALUE -p moved.txt",
    "git log -p -M moved.txt",
];

pub fn every_attribute() -> Vec<String> {
    let mut faults = Vec::new();
    let (mut unasked, mut asked) = (0, 0);
    for (file, text) in TRAPS {
        let (tree, bench) = repository();
        if !in_force(&bench) {
            return no_sandbox();
        }
        fs::create_dir_all(tree.at("repository").join(file).parent().unwrap()).unwrap();
        fs::write(tree.at("repository").join(file), format!("{text}\n")).unwrap();
        // Without its own attributes git would take the secret files for binary ones.
        let hidden = format!("core.attributesFile={}", tree.at("hidden").display());
        if !tree.git_in("repository", &["-c", &hidden, "diff", "HEAD~1"]).contains(SECRET) {
            faults.push(format!("git does not show what {text:?} is about: this trap shows nothing"));
        }
        let (ran, found) = try_lines(&tree, &bench, &LINES);
        unasked += ran;
        asked += LINES.len() - ran;
        faults.extend(found.into_iter().map(|found| format!("{text:?}: {found}")));
    }
    println!("attributes: {} show a secret file; of the lines {asked} ask, {unasked} ran", TRAPS.len());
    faults.extend(only_in_the_index());
    faults.extend(former_names());
    faults.extend(guesses());
    faults.extend(usual_attributes());
    faults
}

fn repository() -> (Tree, Bench) {
    let tree = Tree::plant_files();
    fs::create_dir_all(tree.at("repository/config")).unwrap();
    let git = |words: &[&str]| tree.git_in("repository", words);
    git(&["init", "-q", "-b", "main", "."]);
    for round in ["one", "two"] {
        fs::write(tree.at("repository/.env"), format!("KEY=SECRETVALUE-{round}\nother\n")).unwrap();
        fs::write(tree.at("repository/config/prod.env"), format!("KEY=SECRETVALUE-{round}\n")).unwrap();
        fs::write(tree.at("repository/notes.txt"), format!("{round}\n")).unwrap();
        git(&["add", "-f", "."]);
        git(&["commit", "-q", "-m", round]);
    }
    for name in [".env", "config/prod.env"] {
        fs::write(tree.at("repository").join(name), "KEY=SECRETVALUE-three\nother\n").unwrap();
    }
    fs::write(tree.at("hidden"), "*.env -diff\n").unwrap();
    tree.untouched();
    let bench = Bench::new(&tree, &tree.at("repository"), Bubblewrap::IfItWorks);
    (tree, bench)
}

/// How many ran, and what happened that must not.
fn try_lines(tree: &Tree, bench: &Bench, lines: &[&str]) -> (usize, Vec<String>) {
    let before = tree.state();
    let unasked: Vec<_> = lines.iter().filter_map(|line| Some((line, bench.unasked(line)?))).collect();
    let found = unasked.iter().filter_map(|(line, call)| happened(tree, &before, &bench.run(call), line));
    (unasked.len(), found.collect())
}

/// Where a file of attributes is missing or a link, git takes the one that was added.
fn only_in_the_index() -> Vec<String> {
    let mut faults = Vec::new();
    for link in [false, true] {
        let (tree, bench) = repository();
        let file = tree.at("repository/.gitattributes");
        match link {
            true => std::os::unix::fs::symlink(".env diff", &file).unwrap(),
            false => fs::write(&file, ".env diff\n").unwrap(),
        }
        tree.git_in("repository", &["add", ".gitattributes"]);
        if !link {
            fs::remove_file(&file).unwrap();
        }
        let hidden = format!("core.attributesFile={}", tree.at("hidden").display());
        if !tree.git_in("repository", &["-c", &hidden, "diff", "HEAD~1"]).contains(SECRET) {
            faults.push("git does not take the attributes of its index: this trap shows nothing".to_owned());
        }
        faults.extend(try_lines(&tree, &bench, &LINES).1);
    }
    faults
}

fn former_names() -> Vec<String> {
    let (tree, bench) = repository();
    let git = |words: &[&str]| tree.git_in("repository", words);
    git(&["checkout", "-q", "-f", "."]);
    fs::write(tree.at("repository/.env"), "KEY=nothing any more\nother\n").unwrap();
    git(&["commit", "-q", "-a", "-m", "emptied"]);
    git(&["mv", ".env", "moved.txt"]);
    git(&["commit", "-q", "-m", "moved"]);
    let shown = git(&["log", "-L1,1:moved.txt"]).contains(SECRET);
    let nothing = (!shown).then(|| "git does not follow a file to its former name".to_owned());
    nothing.into_iter().chain(try_lines(&tree, &bench, &FORMER).1).collect()
}

/// A right word and a wrong one must look the same.
fn guesses() -> Vec<String> {
    let (_tree, bench) = repository();
    let said = |line: &str, word: &str| {
        let call = bench.unasked(&line.replace("WORD", word))?;
        Some(bench.run(&call))
    };
    let told = GUESSES.iter().filter(|line| {
        let [right, wrong] = ["KEY=SECRETVALUE-t", "KEY=SECRETVALUE-x"].map(|word| said(line, word));
        right != wrong
    });
    let told: Vec<String> = told.map(|line| format!("tells what a secret file holds: {line}")).collect();
    let useless = GUESSES.iter().filter(|line| said(line, "one").is_none()).map(|line| format!("asks: {line}"));
    let blind = (!said("git grep -n WORD", "two").unwrap_or_default().contains("notes.txt:1:two"))
        .then(|| "git grep finds nothing".to_owned());
    told.into_iter().chain(useless).chain(blind).collect()
}

/// What most repositories say about their sources costs nobody a question.
fn usual_attributes() -> Vec<String> {
    let (tree, bench) = repository();
    let usual = "* text=auto\n*.rs diff=rust\n*.md text diff=markdown\n*.lock -diff\n*.png binary\n.env -diff\n";
    fs::write(tree.at("repository/.gitattributes"), usual).unwrap();
    let asked = LINES.iter().filter(|line| bench.unasked(line).is_none() && !line.contains("-a "));
    let asked: Vec<String> = asked.map(|line| format!("asks beside usual attributes: {line}")).collect();
    let shown = try_lines(&tree, &bench, &LINES).1;
    // A secret file of such a kind is one that the attributes are about.
    fs::write(tree.at("repository/.env.rs"), "SECRETVALUE-rs\n").unwrap();
    tree.git_in("repository", &["add", "-f", ".env.rs"]);
    let secret = try_lines(&tree, &bench, &LINES).1;
    asked.into_iter().chain(shown).chain(secret).collect()
}
