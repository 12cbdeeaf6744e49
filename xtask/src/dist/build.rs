//! Static binaries: cargo with zig as the linker and C compiler, both from PyPI, in a folder of the build.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::Platform;
use super::release::Release;
use crate::say;

/// Both are wheels that carry their binary: nothing is compiled to install them.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"];

/// Builds the binary of a platform; gives where it is.
pub(crate) fn build_static_binary(
    root: &Path,
    target_folder: &Path,
    platform: Platform,
    profile: &str,
    release: &Release,
) -> Result<PathBuf, String> {
    let tools = install_tools(target_folder)?;
    if Command::new("rustup").args(["target", "add", platform.target]).status().is_ok_and(|status| !status.success()) {
        return Err(format!("rustup cannot add the target {}", platform.target));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)));
    let path = path.map_err(|error| format!("PATH: {error}"))?;
    let arguments =
        ["zigbuild", "--locked", "--profile", profile, "--package", "gander-cli", "--bin", "gander", "--target"];
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).arg(platform.target).current_dir(root).env("PATH", path);
    match cargo.env("GANDER_COMMIT", &release.commit).status() {
        Ok(status) if status.success() => {
            let folder = if profile == "dev" { "debug" } else { profile };
            Ok(target_folder.join(platform.target).join(folder).join("gander"))
        }
        Ok(status) => Err(format!("the build for {} failed: {status}", platform.target)),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

/// The folder with the tools' programs.
fn install_tools(target_folder: &Path) -> Result<PathBuf, String> {
    let folder = target_folder.join("dist-tools");
    let programs = folder.join("bin");
    if programs.join("cargo-zigbuild").exists() {
        return Ok(programs);
    }
    say("installing cargo-zigbuild and zig from PyPI into the build folder");
    run("python3", &["-m", "venv", &folder.to_string_lossy()])?;
    let pip = programs.join("pip");
    run(&pip.to_string_lossy(), &["install", "--quiet", TOOLS[0], TOOLS[1]])?;
    Ok(programs)
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} {} failed: {status}", arguments.join(" "))),
        Err(error) => Err(format!("cannot start {program}: {error}")),
    }
}
