//! `gander config`: write or find the settings file, without reading it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use anyhow::Context as _;
use gander::config::{Environment, Flags, default_settings_text, settings_file};

use super::flags::{ConfigCommand, Shared};
use crate::commands::Exit;
use crate::output::Output;

pub(super) fn run(
    command: &ConfigCommand,
    shared: &Shared,
    environment: &Environment,
    output: Output,
) -> anyhow::Result<Exit> {
    let flags = Flags { config: shared.config.clone(), ..Flags::default() };
    let path = settings_file(&flags, environment)?;
    match command {
        ConfigCommand::Path => output.line(&path.display().to_string())?,
        ConfigCommand::Init => {
            if let Some(folder) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            // It may hold keys one day.
            let made = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
            match made {
                Ok(mut file) => file.write_all(default_settings_text().as_bytes())?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    anyhow::bail!("the settings file already exists: {}", path.display())
                }
                Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
            }
            output.line(&path.display().to_string())?;
        }
    }
    Ok(Exit::Done)
}
