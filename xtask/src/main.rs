//! `cargo xtask run | web | install | dist | publish-check`: builds the web page first where that is possible, then does what cargo does, or
//! makes packages.
//!
//! `cargo build` never needs Node: it embeds `web/dist` if it is there and a small page of our own if not. So nothing
//! here is needed to build gander; it only saves remembering the order.

mod dist;
mod plan;
mod web;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use plan::{Step, Task, plan};
use web::Web;

const USAGE: &str = "\
usage: cargo xtask run [ARGUMENT…]      build the page if Node and npm are here, then run gander with these arguments
       cargo xtask web                  build the page into web/dist
       cargo xtask install [OPTION…]    build the page if Node and npm are here, then install gander; options go to cargo install
       cargo xtask dist [OPTION…]       build the page, then packages for every platform: --help lists the options
       cargo xtask publish-check [--verify]
                                        pack every crate as a registry would get it, upload nothing; --verify also builds each package
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(task) = arguments.next().and_then(|name| Task::named(&name)) else {
        say(USAGE.trim_end());
        return ExitCode::from(2);
    };
    let root = repository();
    let arguments: Vec<String> = arguments.collect();
    if task == Task::Dist && arguments.iter().any(|argument| argument == "--help") {
        say(dist::USAGE.trim_end());
        return ExitCode::SUCCESS;
    }
    for step in plan(task, &Web::found(&root), arguments) {
        match step {
            Step::Say(text) => say(&text),
            Step::Fail(text) => {
                say(&text);
                return ExitCode::FAILURE;
            }
            Step::Run { program, arguments, folder } => {
                if let Some(code) = run(program, &arguments, &root.join(folder)) {
                    return code;
                }
            }
            Step::MakePackages { arguments } => {
                if let Err(error) = dist::make_packages(&root, &target_folder(&root), arguments) {
                    say(error.trim_end());
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// Runs the program on this terminal; gives the code to leave with if it did not succeed.
fn run(program: &str, arguments: &[String], folder: &Path) -> Option<ExitCode> {
    match Command::new(program).args(arguments).current_dir(folder).status() {
        Ok(status) if status.success() => None,
        // A program that a signal ended has no code.
        Ok(status) => Some(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
        Err(error) => {
            say(&format!("cannot start {program}: {error}"));
            Some(ExitCode::FAILURE)
        }
    }
}

/// On stderr, because stdout belongs to the program that is run.
fn say(text: &str) {
    // Nobody is left to be told if this fails.
    writeln!(std::io::stderr(), "{text}").ok();
}

/// Where cargo builds.
fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
