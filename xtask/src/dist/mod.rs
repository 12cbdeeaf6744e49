//! `cargo xtask dist`: everything that is published, made from this commit and from nothing else. Nothing is sent anywhere.

mod archive;
mod build;
mod contents;
mod deb;
mod descriptors;
mod elf;
mod linked;
mod npm;
mod platform;
mod release;
mod wheel;

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use self::archive::{PackedFile, tar_gz};
use self::contents::{Contents, SharedContents};
use self::descriptors::Tarball;
use self::platform::{PLATFORMS, Platform};
use self::release::Release;
use crate::say;

pub(crate) const USAGE: &str = "\
usage: cargo xtask dist [--target TARGET]… [--binary FILE]… [--profile PROFILE] [--base-url URL] [--out FOLDER]

Makes tarballs, .deb, npm and Python packages, a Homebrew formula, an entry of the ACP registry, a container file, release
notes and checksums of this commit.

  --target TARGET   only this platform (x86_64-unknown-linux-musl, aarch64-unknown-linux-musl); may be repeated
  --binary FILE     package this binary; only what --target names is built beside it. May be repeated, once for each platform
  --profile PROFILE build with this profile of cargo, to try the packages [default: dist]
  --base-url URL    where the tarballs will be [default: https://example.org/gander]
  --out FOLDER      where everything is put [default: target/packages]
";

/// Stands between a packaged binary and its hash. The same bytes are in `crates/cli/src/commands/self_check.rs`.
const CHECKSUM_MARK: &[u8; 16] = b"\0gander-sha256:\0";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    platforms: Vec<Platform>,
    binaries: Vec<PathBuf>,
    profile: String,
    base_url: String,
    out: PathBuf,
}

/// A binary to package.
struct PlatformBinary {
    platform: Platform,
    path: PathBuf,
    content: Vec<u8>,
}

/// Makes every package; says where they are.
pub(crate) fn make_packages(root: &Path, target_folder: &Path, arguments: Vec<String>) -> Result<(), String> {
    let options = parse_options(target_folder, arguments)?;
    let release = Release::of_repository(root)?;
    let binaries = binaries_to_package(root, target_folder, &options, &release)?;
    let runs_here = path_that_runs_here(root, target_folder, &options, &release, &binaries)?;
    let packages = linked::linked_packages(root)?;
    let notices = linked::notices(&packages)?;
    let sbom = linked::bill_of_materials(&release, &packages);
    let shared = SharedContents::from_binary(&runs_here, read(&root.join("LICENSE"))?, notices, sbom)?;
    let output = Output::new(&options.out)?;
    let mut tarballs = Vec::new();
    for PlatformBinary { platform, content, .. } in binaries {
        let contents = Contents::new(with_own_checksum(content), &shared);
        tarballs.push(output.packages_of(&release, platform, &contents)?);
    }
    output.descriptors(&release, &shared, &tarballs, &options.base_url)?;
    output.checksums()?;
    say(&format!("packages of gander {} are in {}", release.version, options.out.display()));
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn binaries_to_package(
    root: &Path,
    target_folder: &Path,
    options: &Options,
    release: &Release,
) -> Result<Vec<PlatformBinary>, String> {
    let mut binaries = options.binaries.iter().map(|path| read_binary(path)).collect::<Result<Vec<_>, _>>()?;
    let build = |platform: &Platform| {
        let path = build::build_static_binary(root, target_folder, *platform, &options.profile, release)?;
        let binary = read_binary(&path)?;
        // Packages promise that it runs on every Linux of its platform.
        if !elf::is_static(&binary.content) {
            return Err(format!("the binary for {} was linked dynamically", platform.target));
        }
        Ok(binary)
    };
    for platform in &options.platforms {
        binaries.push(build(platform)?);
    }
    for (index, binary) in binaries.iter().enumerate() {
        if binaries[..index].iter().any(|other| other.platform == binary.platform) {
            return Err(format!("two binaries are for {}: {}", binary.platform.short, binary.path.display()));
        }
        if !elf::is_static(&binary.content) {
            let path = binary.path.display();
            say(&format!("not static, so it runs only where a C library as new as this machine's is: {path}"));
        }
    }
    Ok(binaries)
}

fn read_binary(path: &Path) -> Result<PlatformBinary, String> {
    let content = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let platform = elf::processor_of(&content).and_then(Platform::for_processor);
    let platform = platform.ok_or(format!("not a Linux binary for x86_64 or aarch64: {}", path.display()))?;
    Ok(PlatformBinary { platform, path: path.to_owned(), content })
}

/// A binary that can be asked for its manual pages and completions.
fn path_that_runs_here(
    root: &Path,
    target_folder: &Path,
    options: &Options,
    release: &Release,
    binaries: &[PlatformBinary],
) -> Result<PathBuf, String> {
    let here = Platform::here().ok_or("there are no packages for this machine's platform")?;
    if let Some(binary) = binaries.iter().find(|binary| binary.platform == here) {
        return Ok(binary.path.clone());
    }
    if !options.binaries.is_empty() {
        return Err(format!("manual pages come from a binary that runs here: add one for {}", here.short));
    }
    build::build_static_binary(root, target_folder, here, &options.profile, release)
}

fn parse_options(target_folder: &Path, arguments: Vec<String>) -> Result<Options, String> {
    let mut options = Options {
        platforms: Vec::new(),
        binaries: Vec::new(),
        profile: "dist".to_owned(),
        base_url: "https://example.org/gander".to_owned(),
        out: target_folder.join("packages"),
    };
    let mut arguments = arguments.into_iter();
    while let Some(name) = arguments.next() {
        let Some(value) = arguments.next() else { return Err(USAGE.to_owned()) };
        match name.as_str() {
            "--target" => {
                let platform = Platform::for_target(&value).ok_or(format!("no packages are made for: {value}"))?;
                options.platforms.push(platform);
            }
            "--binary" => options.binaries.push(value.into()),
            "--profile" => options.profile = value,
            "--base-url" => options.base_url = value.trim_end_matches('/').to_owned(),
            "--out" => options.out = value.into(),
            _ => return Err(format!("unknown option: {name}\n{USAGE}")),
        }
    }
    if options.platforms.is_empty() && options.binaries.is_empty() {
        options.platforms = PLATFORMS.to_vec();
    }
    Ok(options)
}

/// The folder that packages are put into.
struct Output {
    folder: PathBuf,
}

impl Output {
    /// An empty folder: packages of another version would be published with these.
    fn new(folder: &Path) -> Result<Self, String> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(|error| format!("cannot empty {}: {error}", folder.display()))?;
        }
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self { folder: folder.to_owned() })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), String> {
        std::fs::write(self.folder.join(name), content).map_err(|error| format!("cannot write {name}: {error}"))
    }

    fn packages_of(&self, release: &Release, platform: Platform, contents: &Contents) -> Result<Tarball, String> {
        let failed = |error: std::io::Error| format!("cannot pack {}: {error}", platform.short);
        let folder = format!("gander-{}-{}", release.version, platform.short);
        let archive = tar_gz(&tarball_files(release, &folder, contents), release.at).map_err(failed)?;
        let tarball = Tarball { platform, file: format!("{folder}.tar.gz"), sha256: hex(&Sha256::digest(&archive)) };
        self.write(&tarball.file, &archive)?;
        self.write(&deb::file_name(release, platform), &deb::package(release, platform, contents).map_err(failed)?)?;
        let (name, package) = npm::package_for(release, platform, contents).map_err(failed)?;
        self.write(&name, &package)?;
        let (name, wheel) = wheel::wheel(release, platform, contents).map_err(failed)?;
        self.write(&name, &wheel)?;
        Ok(tarball)
    }

    fn descriptors(
        &self,
        release: &Release,
        shared: &SharedContents,
        tarballs: &[Tarball],
        base: &str,
    ) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot pack the npm package: {error}");
        let (name, package) = npm::starter_package(release, &shared.licence).map_err(failed)?;
        self.write(&name, &package)?;
        self.write("gander.rb", descriptors::homebrew_formula(release, tarballs, base).as_bytes())?;
        self.write("agent.json", descriptors::registry_entry(release, tarballs, base).as_bytes())?;
        self.write("icon.svg", descriptors::REGISTRY_ICON.as_bytes())?;
        self.write("Containerfile", descriptors::containerfile(release).as_bytes())?;
        self.write("RELEASE-NOTES.md", release.notes.as_bytes())?;
        self.write("sbom.cdx.json", shared.sbom.as_bytes())?;
        self.write("THIRD-PARTY-NOTICES", shared.notices.as_bytes())
    }

    /// In the form that `sha256sum --check` reads.
    fn checksums(&self) -> Result<(), String> {
        let entries = std::fs::read_dir(&self.folder).map_err(|error| format!("cannot list packages: {error}"))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort();
        let mut lines = String::new();
        for name in names {
            let content =
                std::fs::read(self.folder.join(&name)).map_err(|error| format!("cannot read {name}: {error}"))?;
            lines += &format!("{}  {name}\n", hex(&Sha256::digest(content)));
        }
        self.write("SHA256SUMS", lines.as_bytes())
    }
}

fn tarball_files(release: &Release, folder: &str, contents: &Contents) -> Vec<PackedFile> {
    let mut files = vec![
        PackedFile::program(format!("{folder}/bin/gander"), contents.binary.clone()),
        PackedFile::text(format!("{folder}/LICENSE"), contents.licence.clone()),
        PackedFile::text(format!("{folder}/RELEASE-NOTES.md"), release.notes.clone()),
        PackedFile::text(format!("{folder}/THIRD-PARTY-NOTICES"), contents.notices.clone()),
        PackedFile::text(format!("{folder}/sbom.cdx.json"), contents.sbom.clone()),
        PackedFile::text(format!("{folder}/share/completions/_gander"), contents.completions("zsh")),
        PackedFile::text(format!("{folder}/share/completions/gander.bash"), contents.completions("bash")),
        PackedFile::text(format!("{folder}/share/completions/gander.fish"), contents.completions("fish")),
    ];
    let pages = contents.manual.iter();
    files.extend(pages.map(|(name, page)| PackedFile::text(format!("{folder}/share/man/man1/{name}"), page.clone())));
    files
}

/// Puts the binary's hash behind it, where loaders do not look: `gander self check` compares with it.
fn with_own_checksum(mut binary: Vec<u8>) -> Vec<u8> {
    if !binary[..binary.len().saturating_sub(32)].ends_with(CHECKSUM_MARK) {
        let hash = Sha256::digest(&binary);
        binary.extend(CHECKSUM_MARK);
        binary.extend(hash);
    }
    binary
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
