//! A wheel of Python that carries the binary, so that `uvx gander-server` works. No Python runs in it.

use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::archive::{PackedFile, zip};
use super::contents::Contents;
use super::platform::Platform;
use super::release::{PACKAGE, Release, SUMMARY};

/// `uvx` starts the program that has the package's name. Tools that install link to it from another folder.
const STARTER: &str = "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/gander\" \"$@\"\n";
const README: &str = include_str!("../../../packaging/README.md");

/// The wheel's file name and its bytes.
pub(crate) fn wheel(release: &Release, platform: Platform, contents: &Contents) -> io::Result<(String, Vec<u8>)> {
    let name = format!("{}-{}", PACKAGE.replace('-', "_"), release.version);
    let info = format!("{name}.dist-info");
    let mut files = vec![
        PackedFile::program(format!("{name}.data/scripts/gander"), contents.binary.clone()),
        PackedFile::program(format!("{name}.data/scripts/{PACKAGE}"), STARTER.as_bytes().to_vec()),
        PackedFile::text(format!("{info}/METADATA"), metadata(release)),
        PackedFile::text(format!("{info}/WHEEL"), tags(platform)),
        PackedFile::text(format!("{info}/licenses/LICENSE"), contents.licence.clone()),
        PackedFile::text(format!("{info}/licenses/THIRD-PARTY-NOTICES"), contents.notices.clone()),
    ];
    files.push(PackedFile::text(format!("{info}/RECORD"), record(&files, &info)));
    Ok((format!("{name}-py3-none-{}.whl", platform.wheel), zip(&files)?))
}

fn metadata(release: &Release) -> String {
    format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {}\nSummary: {SUMMARY}\nLicense-Expression: Apache-2.0\n\
         License-File: LICENSE\nLicense-File: THIRD-PARTY-NOTICES\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{README}",
        release.version
    )
}

fn tags(platform: Platform) -> String {
    let tags = platform.wheel.split('.').map(|tag| format!("Tag: py3-none-{tag}\n"));
    format!("Wheel-Version: 1.0\nGenerator: gander-xtask\nRoot-Is-Purelib: false\n{}", tags.collect::<String>())
}

/// Every file with its hash; the list itself has none.
fn record(files: &[PackedFile], info: &str) -> String {
    let line = |file: &PackedFile| {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&file.content));
        format!("{},sha256={hash},{}\n", file.path, file.content.len())
    };
    files.iter().map(line).chain([format!("{info}/RECORD,,\n")]).collect()
}
