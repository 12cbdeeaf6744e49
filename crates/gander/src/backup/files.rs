//! The files of a backup: which are in it, and how they come back.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, ensure};
use gander_store::sqlite::{BackupFile, BackupFileKind, BackupReader, BackupWriter};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Existing;

/// What a data directory holds that is of one process, made again by itself, or in the log already.
const NOT_KEPT: [&str; 9] = [
    "log.db",
    "log.db-wal",
    "log.db-shm",
    "log.lock",
    "server.lock",
    "start.lock",
    "server.log",
    "socket",
    "temporary",
];

/// Below a home: what programs download again.
const CACHES: [&str; 2] = [".npm", ".cache"];

/// True for what a backup holds of a data directory.
pub(super) fn is_kept_file(name: &str) -> bool {
    !NOT_KEPT.contains(&name) && !name.starts_with(".restore") && !name.contains(".draft-")
}

/// Adds everything in a folder whose name on the first level is wanted. Sockets and devices are left out.
pub(super) async fn add_folder_files(
    writer: &mut BackupWriter,
    name: &str,
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let mut folders = vec![(name.to_owned(), folder.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A session may be deleted meanwhile, and its private folder with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
        };
        for entry in entries.flatten() {
            let Ok(own) = entry.file_name().into_string() else { continue };
            let is_wanted = if prefix == name { wanted(&own) } else { !CACHES.contains(&own.as_str()) };
            if !is_wanted {
                continue;
            }
            let name = format!("{prefix}/{own}");
            if let Some(below) = add_file_entry(writer, name, &entry.path()).await? {
                folders.push(below);
            }
        }
    }
    Ok(())
}

/// Adds one name; gives a folder whose content is to follow.
async fn add_file_entry(
    writer: &mut BackupWriter,
    name: String,
    path: &Path,
) -> anyhow::Result<Option<(String, PathBuf)>> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(None) };
    let mode = metadata.mode() & 0o777;
    let file = |kind| BackupFile { name: name.clone(), kind, mode };
    if metadata.is_dir() {
        writer.add(&file(BackupFileKind::Folder), io::empty()).await?;
        return Ok(Some((name, path.to_owned())));
    }
    if metadata.is_symlink() {
        let target = fs::read_link(path)?;
        writer.add(&file(BackupFileKind::Link), target.as_os_str().as_bytes()).await?;
    } else if metadata.is_file() {
        // An agent works in private folders: what it puts in a file's place meanwhile is not followed out of them.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(content) => writer.add(&file(BackupFileKind::File), content).await?,
            // It was removed meanwhile, or is a link by now.
            Err(error) if [Some(Errno::NOENT), Some(Errno::LOOP)].contains(&Errno::from_io_error(&error)) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
    Ok(None)
}

/// Makes every file below an empty folder. Links come last: nothing is written through one.
pub(super) async fn extract_files(reader: &mut BackupReader, root: &Path) -> anyhow::Result<()> {
    let files = reader.files().await?;
    for file in &files {
        let plain = Path::new(&file.name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(plain, "the backup names a file outside of it: {}", file.name);
    }
    let (links, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.kind == BackupFileKind::Link);
    for file in others {
        let path = root.join(&file.name);
        match file.kind {
            BackupFileKind::Folder => {
                fs::create_dir(&path)?;
                // Its content follows: the owner must be able to make it.
                fs::set_permissions(&path, Permissions::from_mode(file.mode | 0o700))?;
            }
            BackupFileKind::File | BackupFileKind::Link => {
                let mut options = OpenOptions::new();
                let made = options.create_new(true).write(true).mode(file.mode).open(&path)?;
                reader.read(&file.name, &made).await?;
                made.set_permissions(Permissions::from_mode(file.mode))?;
            }
        }
    }
    for link in links {
        let mut target = Vec::new();
        reader.read(&link.name, &mut target).await?;
        symlink(std::ffi::OsStr::from_bytes(&target), root.join(&link.name))?;
    }
    Ok(())
}

/// Puts what was staged in place of what a data directory holds. The lock files stay: they are held.
pub(super) fn replace_files(data: &Path, staged: &Path, staging: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        if is_lock || path == staging {
            continue;
        }
        let removed =
            if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    for entry in fs::read_dir(staged)? {
        let entry = entry?;
        fs::rename(entry.path(), data.join(entry.file_name()))?;
    }
    Ok(fs::File::open(data)?.sync_all()?)
}

/// Moves settings to where they belong; gives those that were there already and stay.
pub(super) fn move_settings_files(staged: &Path, folder: &Path, existing: Existing) -> anyhow::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(staged)? {
        let entry = entry?;
        let target = folder.join(entry.file_name());
        let there = target.symlink_metadata().ok();
        match (there, existing) {
            (Some(_), Existing::Refuse) => kept.push(target),
            (there, Existing::Replace | Existing::Refuse) => {
                if there.is_some_and(|there| there.is_dir()) {
                    fs::remove_dir_all(&target)?;
                }
                fs::create_dir_all(folder)?;
                move_file_tree(&entry.path(), &target)?;
            }
        }
    }
    Ok(kept)
}

/// Renames, or copies where that is another file system.
fn move_file_tree(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        done => return done,
    }
    let metadata = from.symlink_metadata()?;
    if metadata.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !metadata.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir(to)?;
    fs::set_permissions(to, metadata.permissions())?;
    fs::read_dir(from)?
        .try_for_each(|entry| entry.and_then(|entry| move_file_tree(&entry.path(), &to.join(entry.file_name()))))
}

/// Removes a folder if there is one.
pub(super) fn remove_folder_files(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
