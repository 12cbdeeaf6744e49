//! Backs up a data directory and its settings into one file, while a server runs, and restores them.

mod files;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use gander_services::paths::{DirectoryLock, write_private_file};
use gander_store::clock;
use gander_store::sqlite::{BackupInfo, BackupReader, BackupWriter};

use crate::config::Config;
use crate::daemon::ServerError;

/// What becomes of files that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They are left alone, and nothing is done.
    Refuse,
    /// They are replaced.
    Replace,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What the backup says of itself.
    pub info: BackupInfo,
    /// Settings files that were there and were left as they are.
    pub kept_settings: Vec<PathBuf>,
}

/// Writes everything into one file for its owner alone: sessions, tokens, secrets, grants, private folders, settings. A
/// server may run meanwhile.
pub async fn back_up(config: &Config, target: &Path, existing: Existing) -> anyhow::Result<BackupInfo> {
    if let Some(url) = &config.sections.store.url {
        bail!(
            "sessions are in PostgreSQL: back them up with pg_dump --format=custom --dbname={url} --file=gander.dump, \
             and copy the files in {}",
            config.paths.data_directory().display()
        );
    }
    let data = config.paths.data_directory();
    ensure!(data.join("log.db").exists(), "there is nothing to back up: {}", data.display());
    if existing == Existing::Refuse && target.symlink_metadata().is_ok() {
        bail!("the file exists already (--force replaces it): {}", target.display());
    }
    // Whoever finds the file under its own name finds it whole.
    let draft = backup_draft_name(target)?;
    let written = write_backup(config, &draft).await;
    if written.is_err() {
        fs::remove_file(&draft).ok();
    }
    let info = written.with_context(|| format!("cannot back up to {}", target.display()))?;
    fs::rename(&draft, target).with_context(|| format!("cannot write {}", target.display()))?;
    Ok(info)
}

/// Verifies a backup, then puts it in place of what is in the data directory. No server may run there. Settings files that
/// are there stay, unless they are to be replaced too.
pub async fn restore(config: &Config, backup: &Path, existing: Existing) -> anyhow::Result<Restored> {
    if let Some(url) = &config.sections.store.url {
        bail!(
            "sessions are in PostgreSQL: restore a dump into an empty database with pg_restore --dbname={url} gander.dump \
             (clients are told by themselves that it is a copy), or restore this backup without the setting store.url and \
             then move it with gander store copy"
        );
    }
    let paths = &config.paths;
    let mut reader = BackupReader::open(backup).await?;
    paths.create_folders()?;
    let lock = DirectoryLock::try_take(&paths.server_lock())?;
    ensure!(lock.is_some(), "{}", ServerError::Taken(paths.data_directory().to_owned()));
    if existing == Existing::Refuse && paths.data_directory().join("log.db").exists() {
        bail!("there are sessions already (--force replaces them): {}", paths.data_directory().display());
    }
    let staging = paths.data_directory().join(".restore");
    files::remove_folder_files(&staging)?;
    let (data, settings) = (staging.join("data"), staging.join("settings"));
    fs::create_dir_all(&data)?;
    fs::create_dir_all(&settings)?;
    files::extract_files(&mut reader, &staging).await.context("cannot restore the files")?;
    let info = reader.info.clone();
    reader.restore_log(backup, &data.join("log.db"), paths.data_directory(), clock::current_time()).await?;
    write_private_file(&data.join(backup_file_name(&paths.restored())), b"")?;
    files::replace_files(paths.data_directory(), &data, &staging)?;
    let kept_settings = files::move_settings_files(&settings, &backup_settings_folder(config)?, existing)?;
    files::remove_folder_files(&staging)?;
    Ok(Restored { info, kept_settings })
}

async fn write_backup(config: &Config, draft: &Path) -> anyhow::Result<BackupInfo> {
    let data = config.paths.data_directory();
    let mut writer = BackupWriter::create(data, draft).await?;
    files::add_folder_files(&mut writer, "data", data, files::is_kept_file).await?;
    let (folder, file) = (backup_settings_folder(config)?, backup_file_name(&config.file));
    // The folder of a settings file that lies anywhere else may be full of other things.
    let whole = folder.file_name().is_some_and(|name| name == "gander");
    files::add_folder_files(&mut writer, "settings", &folder, move |name| whole || name == file || name == "agents")
        .await?;
    Ok(writer.finish(clock::current_time(), crate::VERSION, &data.to_string_lossy()).await?)
}

fn backup_settings_folder(config: &Config) -> anyhow::Result<PathBuf> {
    Ok(config.file.parent().context("the settings file has no folder")?.to_owned())
}

fn backup_file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn backup_draft_name(target: &Path) -> anyhow::Result<PathBuf> {
    let target = std::path::absolute(target)?;
    ensure!(target.file_name().is_some() && !target.is_dir(), "not a file name: {}", target.display());
    let draft = target.with_file_name(format!("{}.part-{}", backup_file_name(&target), std::process::id()));
    fs::remove_file(&draft).ok();
    Ok(draft)
}
