//! `gander backup` and `gander restore`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use gander::backup::{self, Existing, Restored};
use gander_services::paths::disk_use;
use gander_store::sqlite::BackupInfo;

use crate::commands::{Context, Exit};
use crate::terminal::table::{local_time, size_text};

pub(super) async fn back_up(context: Context, file: PathBuf, force: bool) -> anyhow::Result<Exit> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("no such folder: {}", folder.display());
    }
    let info = backup::back_up(&context.config, &file, existing(force)).await?;
    let (what, size) = (content(&info), size_text(disk_use(&file)));
    context.output.note(&format!("Backed up {what} to {} ({size}). It holds secrets.", file.display()));
    Ok(Exit::Done)
}

pub(super) async fn restore(context: Context, file: PathBuf, force: bool) -> anyhow::Result<Exit> {
    std::fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let Restored { info, kept_settings } = backup::restore(&context.config, &file, existing(force)).await?;
    let (what, made) = (content(&info), local_time(info.made_at.as_micros()));
    let data = context.config.paths.data_directory().display();
    context.output.note(&format!("Restored {what} to {data}, as of {made} (gander {}).", info.version));
    for path in kept_settings {
        context.output.note(&format!("Not replaced, because it exists (--force replaces it): {}", path.display()));
    }
    Ok(Exit::Done)
}

fn existing(force: bool) -> Existing {
    if force { Existing::Replace } else { Existing::Refuse }
}

fn content(info: &BackupInfo) -> String {
    let count = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    format!("{}, {}", count(info.sessions, "session"), count(info.open_questions, "open question"))
}
