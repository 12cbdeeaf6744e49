//! Every option that a program of the read-only table names in its own help, in several forms.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use gander_tools::permission::read_only_programs;
use gander_tools::sandbox::Bubblewrap;
use regex::Regex;

use crate::Tried;
use crate::tree::Tree;

/// Programs whose help is read although they are not in the table: none of their options may run unasked.
const OTHERS: [&str; 22] = [
    "tar", "xargs", "env", "less", "more", "man", "tee", "curl", "wget", "cp", "mv", "rm", "ln", "dd", "install",
    "touch", "mkdir", "chmod", "split", "csplit", "shred", "truncate",
];

/// They are tried in so many parts, each in a tree of its own.
pub const PARTS: usize = 4;

/// Options that all parts must find together.
const ENOUGH: usize = 500;

/// Of every so-many-th program, beginning with this one.
pub fn every_option(part: usize) -> Vec<String> {
    let mut faults = Vec::new();
    let mut lines = Vec::new();
    let (mut found, mut without_help) = (0, Vec::new());
    let programs = read_only_programs().into_iter().chain(OTHERS.map(str::to_owned));
    for program in programs.skip(part).step_by(PARTS) {
        let options = options_of(&program);
        match options.is_empty() {
            true => without_help.push(program),
            false => {
                found += options.len();
                lines.extend(options.iter().flat_map(|option| forms(&program, option)));
                lines.extend(pairs(&program, &options));
            }
        }
    }
    println!("{found} options of installed programs; no help of: {}", without_help.join(", "));
    let tree = Tree::plant();
    let tried = Tried::in_tree(&tree, Bubblewrap::IfItWorks, lines.iter());
    println!("options of programs, {}: {tried}", tried.layers);
    if found * PARTS < ENOUGH {
        faults.push(format!("only {found} options were found"));
    }
    faults.extend(tried.faults);
    faults
}

/// What the program's help names. A program that is not installed names nothing.
fn options_of(program: &str) -> BTreeSet<String> {
    let words: Vec<&str> = program.split(' ').collect();
    let help = if words[0] == "git" { "-h" } else { "--help" };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(help).stdin(Stdio::null()).env("PAGER", "cat").env("TERM", "dumb");
    let Ok(output) = command.current_dir("/").output() else { return BTreeSet::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let option = Regex::new(r"(?m)(?:^|[\s,\[|(])(--?[A-Za-z0-9][A-Za-z0-9-]*)").unwrap();
    // These two end a program at once.
    let all = option.captures_iter(&text).map(|found| found[1].trim_end_matches('-').to_owned());
    all.filter(|option| option != "--help" && option != "--version").collect()
}

/// Two letters in one word, before a secret: programs differ in what they take the next word for.
fn pairs(program: &str, options: &BTreeSet<String>) -> Vec<String> {
    let letters: Vec<&str> = options.iter().filter(|option| option.len() == 2).map(|option| &option[1..]).collect();
    let both =
        |first: &&str| letters.iter().map(|second| format!("{program} -{first}{second} .env")).collect::<Vec<_>>();
    letters.iter().flat_map(both).collect()
}

/// The option with a file to write, a secret and a program, as its value or beside it; whole, shortened and bundled.
fn forms(program: &str, option: &str) -> Vec<String> {
    let mut forms = vec![
        format!("{program} {option} notes.txt made.txt"),
        format!("{program} {option} .env"),
        format!("{program} foo {option} .env"),
        format!("{program} {option} link-out"),
        format!("{program} {option}"),
    ];
    match option.starts_with("--") {
        true => {
            forms.extend(["made.txt", ".env", "./bin/ls"].map(|value| format!("{program} {option}={value} notes.txt")));
            let short = &option[..option.len() - 1];
            forms.push(format!("{program} {short}=made.txt notes.txt"));
        }
        false => {
            forms.extend(["made.txt", ".env"].map(|value| format!("{program} {option}{value} notes.txt")));
            forms.push(format!("{program} -n{} made.txt notes.txt", &option[1..]));
        }
    }
    forms
}
