//! A package of Debian: the binary, a user unit for systemd, manual pages, completions.

use std::io;

use super::archive::{PackedFile, ar, gzip, tar_gz};
use super::contents::Contents;
use super::platform::Platform;
use super::release::{Release, SUMMARY};

const UNIT: &str = include_str!("../../../packaging/gander.service");

pub(crate) fn file_name(release: &Release, platform: Platform) -> String {
    format!("gander_{}_{}.deb", release.version, platform.deb)
}

pub(crate) fn package(release: &Release, platform: Platform, contents: &Contents) -> io::Result<Vec<u8>> {
    let files = installed_files(release, contents)?;
    let size: usize = files.iter().map(|file| file.content.len()).sum();
    let control = [
        PackedFile::text("control", control(release, platform, size.div_ceil(1024))),
        PackedFile::text("md5sums", md5sums(&files)),
    ];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(&control, release.at)?),
        ("data.tar.gz", tar_gz(&files, release.at)?),
    ];
    Ok(ar(&members, release.at))
}

fn installed_files(release: &Release, contents: &Contents) -> io::Result<Vec<PackedFile>> {
    let mut files = vec![
        PackedFile::program("usr/bin/gander", contents.binary.clone()),
        PackedFile::text("usr/lib/systemd/user/gander.service", UNIT),
        PackedFile::text("usr/share/bash-completion/completions/gander", contents.completions("bash")),
        PackedFile::text("usr/share/zsh/vendor-completions/_gander", contents.completions("zsh")),
        PackedFile::text("usr/share/fish/vendor_completions.d/gander.fish", contents.completions("fish")),
        PackedFile::text("usr/share/doc/gander/copyright", copyright(contents)),
        PackedFile::data("usr/share/doc/gander/changelog.gz", gzip(release.notes.as_bytes())?),
        PackedFile::data("usr/share/doc/gander/sbom.cdx.json.gz", gzip(contents.sbom.as_bytes())?),
    ];
    for (name, page) in &contents.manual {
        files.push(PackedFile::data(format!("usr/share/man/man1/{name}.gz"), gzip(page.as_bytes())?));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn copyright(contents: &Contents) -> String {
    format!("gander is licensed under the Apache License 2.0.\n\n{}\n\n{}", contents.licence, contents.notices)
}

fn control(release: &Release, platform: Platform, kibibytes: usize) -> String {
    format!(
        "Package: gander\nVersion: {}\nArchitecture: {}\nMaintainer: gander maintainers <maintainers@gander.invalid>\n\
         Installed-Size: {kibibytes}\nSection: devel\nPriority: optional\nRecommends: bubblewrap, ca-certificates\n\
         Description: {SUMMARY}\n Editors, terminals, browsers and other agents attach to the same live session, each\n over its own \
         protocol: ACP, ACP-REST, A2A, goose's REST and ADK's REST.\n",
        release.version, platform.deb
    )
}

fn md5sums(files: &[PackedFile]) -> String {
    let line = |file: &PackedFile| format!("{:x}  {}\n", md5::compute(&file.content), file.path);
    files.iter().map(line).collect()
}
