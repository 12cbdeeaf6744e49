//! Archives that come out the same, byte for byte, from the same files: sorted by the caller, one time, one owner.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackedFile {
    /// Relative, with `/`.
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    /// Permission bits.
    pub(crate) mode: u32,
}

impl PackedFile {
    pub(crate) fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into().into_bytes(), mode: 0o644 }
    }

    pub(crate) fn data(path: impl Into<String>, content: Vec<u8>) -> Self {
        Self { path: path.into(), content, mode: 0o644 }
    }

    pub(crate) fn program(path: impl Into<String>, content: Vec<u8>) -> Self {
        Self { path: path.into(), content, mode: 0o755 }
    }
}

/// A gzipped tar archive of these files and of the folders above them; `at` is their time, in seconds since 1970.
pub(crate) fn tar_gz(files: &[PackedFile], at: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let mut folders = std::collections::BTreeSet::new();
    for file in files {
        for (end, _) in file.path.match_indices('/') {
            let folder = &file.path[..=end];
            if folders.insert(folder.to_owned()) {
                let mut header = tar_header(0, 0o755, at);
                header.set_entry_type(tar::EntryType::Directory);
                archive.append_data(&mut header, folder, io::empty())?;
            }
        }
        let mut header = tar_header(file.content.len() as u64, file.mode, at);
        archive.append_data(&mut header, &file.path, file.content.as_slice())?;
    }
    archive.into_inner()?.finish()
}

fn tar_header(size: u64, mode: u32, at: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(at);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// A zip archive of these files. Its times are all zip's first: the year 1980.
pub(crate) fn zip(files: &[PackedFile]) -> io::Result<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for file in files {
        let options = SimpleFileOptions::default().unix_permissions(file.mode | 0o100_000).large_file(false);
        archive.start_file(&file.path, options).map_err(io::Error::other)?;
        archive.write_all(&file.content)?;
    }
    Ok(archive.finish().map_err(io::Error::other)?.into_inner())
}

pub(crate) fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

/// An `ar` archive, as Debian's packages are: short names, one time.
pub(crate) fn ar(members: &[(&str, Vec<u8>)], at: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let header = format!("{name:<16}{at:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", content.len());
        archive.extend(header.into_bytes());
        archive.extend(content);
        if content.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    use std::process::Command;

    fn files() -> Vec<PackedFile> {
        vec![PackedFile::text("a/b/c.txt", "hello\n"), PackedFile::program("a/run", b"#!/bin/sh\n".to_vec())]
    }

    #[test]
    fn archives_are_the_same_every_time() {
        assert_eq!(tar_gz(&files(), 7).unwrap(), tar_gz(&files(), 7).unwrap());
        assert_eq!(zip(&files()).unwrap(), zip(&files()).unwrap());
    }

    #[test]
    fn tar_reads_what_was_packed_with_modes_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.tar.gz"), tar_gz(&files(), 86_400).unwrap()).unwrap();
        let listed = Command::new("tar")
            .args(["--numeric-owner", "--utc", "-tvzf", "x.tar.gz"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let lines = String::from_utf8(listed.stdout).unwrap();
        let words = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {} {} {}", words[0], words[1], words[3], words[5])
        };
        let lines: Vec<String> = lines.lines().map(words).collect();
        assert_eq!(
            lines,
            [
                "drwxr-xr-x 0/0 1970-01-02 a/",
                "drwxr-xr-x 0/0 1970-01-02 a/b/",
                "-rw-r--r-- 0/0 1970-01-02 a/b/c.txt",
                "-rwxr-xr-x 0/0 1970-01-02 a/run"
            ]
        );
    }

    #[test]
    fn members_of_ar_begin_at_even_places() {
        let archive = ar(&[("odd", b"x".to_vec()), ("even", b"yz".to_vec())], 0);
        assert_eq!(archive.len(), 8 + 60 + 2 + 60 + 2);
        assert_eq!(&archive[8 + 60..8 + 62], b"x\n");
    }
}
