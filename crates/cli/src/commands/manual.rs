//! `gander man FOLDER`: manual pages of every command, for packages.

use std::path::Path;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};

use super::{Cli, Exit};

/// Clap's own subcommand.
const HELP: &str = "help";

pub(super) fn write_pages(folder: &Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder: {}", folder.display()))?;
    let mut command = Cli::command();
    command.build();
    write_page_tree(&command, "gander", folder)?;
    Ok(Exit::Done)
}

/// The page of a command and those of its subcommands, named like `gander-sessions-list`.
fn write_page_tree(command: &Command, name: &str, folder: &Path) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(without_help_subcommand(command.clone())).title(name.to_owned());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let file = folder.join(format!("{name}.1"));
    std::fs::write(&file, text).with_context(|| format!("cannot write: {}", file.display()))?;
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != HELP) {
        write_page_tree(subcommand, &format!("{name}-{}", subcommand.get_name()), folder)?;
    }
    Ok(())
}

/// There is no page of `gander help`, so no page points to it.
fn without_help_subcommand(command: Command) -> Command {
    if command.find_subcommand(HELP).is_some() { command.mut_subcommand(HELP, |help| help.hide(true)) } else { command }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        write_pages(folder.path()).unwrap();
        for name in ["gander", "gander-run", "gander-sessions-list", "gander-self-check"] {
            let page = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
            assert!(page.contains(".SH SYNOPSIS") && page.contains(&name.replace('-', "\\-")), "{name}: {page}");
            assert!(!page.contains("help(1)"), "{name} points to a page that is not written");
        }
        assert!(!folder.path().join("gander-man.1").exists(), "hidden commands have none");
    }
}
