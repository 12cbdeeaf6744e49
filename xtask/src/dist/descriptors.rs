//! Files that name the tarballs by their hashes: a Homebrew formula, an entry of the ACP registry, a container file.

use serde_json::{Map, Value, json};

use super::platform::Platform;
use super::release::{Release, SUMMARY};

const CONTAINERFILE: &str = include_str!("../../../packaging/Containerfile");
/// The registry takes no entry without one: 16 pixels, one colour, which is the client's.
pub(crate) const REGISTRY_ICON: &str = include_str!("../../../packaging/icon.svg");

/// A tarball that was made.
#[derive(Clone, Debug)]
pub(crate) struct Tarball {
    pub(crate) platform: Platform,
    pub(crate) file: String,
    pub(crate) sha256: String,
}

/// The formula. `base` is where the tarballs will be.
pub(crate) fn homebrew_formula(release: &Release, tarballs: &[Tarball], base: &str) -> String {
    let block = |cpu: &str, tarball: &Tarball| {
        let Tarball { file, sha256, .. } = tarball;
        format!("    on_{cpu} do\n      url \"{base}/{file}\"\n      sha256 \"{sha256}\"\n    end\n")
    };
    let cpu = |tarball: &Tarball| if tarball.platform.npm_cpu == "x64" { "intel" } else { "arm" };
    let blocks: String = tarballs.iter().map(|tarball| block(cpu(tarball), tarball)).collect();
    format!(
        "class Gander < Formula\n  desc \"{SUMMARY}\"\n  homepage \"{base}\"\n  version \"{}\"\n  license \"Apache-2.0\"\n  \
         depends_on :linux\n\n  on_linux do\n{blocks}  end\n\n  def install\n    bin.install \"bin/gander\"\n    \
         man1.install Dir[\"share/man/man1/*\"]\n    bash_completion.install \"share/completions/gander.bash\" => \"gander\"\n    \
         zsh_completion.install \"share/completions/_gander\"\n    fish_completion.install \"share/completions/gander.fish\"\n  \
         end\n\n  test do\n    assert_match version.to_s, shell_output(\"#{{bin}}/gander --version\")\n  end\nend\n",
        release.version
    )
}

/// The entry for the registry of agents that speak ACP.
pub(crate) fn registry_entry(release: &Release, tarballs: &[Tarball], base: &str) -> String {
    let binary: Map<String, Value> = tarballs
        .iter()
        .map(|Tarball { platform, file, sha256 }| {
            let folder = file.trim_end_matches(".tar.gz");
            let archive = json!({
                "archive": format!("{base}/{file}"), "sha256": sha256,
                "cmd": format!("./{folder}/bin/gander"), "args": ["acp"],
            });
            (platform.registry.to_owned(), archive)
        })
        .collect();
    let entry = json!({
        "id": "gander", "name": "gander", "version": release.version, "description": SUMMARY,
        "website": base, "authors": ["gander maintainers"], "license": "Apache-2.0",
        "distribution": {
            "binary": binary,
            "npx": { "package": format!("{}@{}", super::release::PACKAGE, release.version), "args": ["acp"] },
            "uvx": { "package": format!("{}@{}", super::release::PACKAGE, release.version), "args": ["acp"] },
        },
    });
    format!("{entry:#}\n")
}

pub(crate) fn containerfile(release: &Release) -> String {
    CONTAINERFILE.replace("@VERSION@", &release.version)
}
