//! `gander backup` and `gander restore`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use gander::backup::{self, Existing, Restored};
use gander_services::paths::disk_use_of_path;
use gander_store::sqlite::BackupInfo;

use crate::commands::{Context, Exit};
use crate::terminal::list_table::{table_local_time, table_size_text};

pub(super) async fn run_backup(context: Context, file: PathBuf, force: bool) -> anyhow::Result<Exit> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("no such folder: {}", folder.display());
    }
    let info = backup::back_up(&context.config, &file, backup_existing(force)).await?;
    let (what, size) = (backup_content(&info), table_size_text(disk_use_of_path(&file)));
    context.output.note(&format!("Backed up {what} to {} ({size}). It holds secrets.", file.display()));
    Ok(Exit::Done)
}

pub(super) async fn run_restore(context: Context, file: PathBuf, force: bool) -> anyhow::Result<Exit> {
    std::fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let Restored { info, kept_settings } = backup::restore(&context.config, &file, backup_existing(force)).await?;
    let (what, made) = (backup_content(&info), table_local_time(info.made_at.as_micros()));
    let data = context.config.paths.data_directory().display();
    context.output.note(&format!("Restored {what} to {data}, as of {made} (gander {}).", info.version));
    for path in kept_settings {
        context.output.note(&format!("Not replaced, because it exists (--force replaces it): {}", path.display()));
    }
    Ok(Exit::Done)
}

fn backup_existing(force: bool) -> Existing {
    if force { Existing::Replace } else { Existing::Refuse }
}

fn backup_content(info: &BackupInfo) -> String {
    let count = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    format!("{}, {}", count(info.sessions, "session"), count(info.open_questions, "open question"))
}
