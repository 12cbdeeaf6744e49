//! Packages of npm: one for each platform, and one that starts the right one, so that `npx gander-server` works.

use std::io;

use serde_json::{Value, json};

use super::archive::{PackedFile, tar_gz};
use super::contents::Contents;
use super::platform::{PLATFORMS, Platform};
use super::release::{PACKAGE, Release, SUMMARY};

const STARTER: &str = include_str!("../../../packaging/npm/gander.js");
const README: &str = include_str!("../../../packaging/README.md");

fn platform_package(platform: Platform) -> String {
    format!("{PACKAGE}-{}", platform.short)
}

/// The package with the binary of a platform: its file's name and its bytes.
pub(crate) fn package_for(release: &Release, platform: Platform, contents: &Contents) -> io::Result<(String, Vec<u8>)> {
    let name = platform_package(platform);
    let mut manifest = manifest(release, &name);
    manifest["os"] = json!(["linux"]);
    manifest["cpu"] = json!([platform.npm_cpu]);
    manifest["files"] = json!(["bin", "LICENSE", "THIRD-PARTY-NOTICES"]);
    let files = [
        PackedFile::text("package/package.json", pretty(&manifest)),
        PackedFile::text("package/LICENSE", contents.licence.clone()),
        PackedFile::text("package/README.md", format!("The binary of {PACKAGE} for {}.\n", platform.short)),
        PackedFile::text("package/THIRD-PARTY-NOTICES", contents.notices.clone()),
        PackedFile::program("package/bin/gander", contents.binary.clone()),
    ];
    Ok((format!("{name}-{}.tgz", release.version), tar_gz(&files, release.at)?))
}

/// The package that people name.
pub(crate) fn starter_package(release: &Release, licence: &str) -> io::Result<(String, Vec<u8>)> {
    let mut manifest = manifest(release, PACKAGE);
    manifest["bin"] = json!({ "gander": "bin/gander.js" });
    manifest["files"] = json!(["bin", "LICENSE"]);
    manifest["engines"] = json!({ "node": ">=18" });
    let platforms = PLATFORMS.map(|platform| (platform_package(platform), json!(release.version)));
    manifest["optionalDependencies"] = Value::Object(platforms.into_iter().collect());
    let files = [
        PackedFile::text("package/package.json", pretty(&manifest)),
        PackedFile::text("package/LICENSE", licence),
        PackedFile::text("package/README.md", README),
        PackedFile::program("package/bin/gander.js", STARTER.as_bytes().to_vec()),
    ];
    Ok((format!("{PACKAGE}-{}.tgz", release.version), tar_gz(&files, release.at)?))
}

fn manifest(release: &Release, name: &str) -> Value {
    json!({ "name": name, "version": release.version, "description": SUMMARY, "license": "Apache-2.0" })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
