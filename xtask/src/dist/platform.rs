//! The platforms that packages are made for, and what each kind of package calls them.

/// A platform, by the names that others have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Platform {
    /// Rust's name.
    pub(crate) target: &'static str,
    /// In names of tarballs and npm packages.
    pub(crate) short: &'static str,
    /// Debian's name.
    pub(crate) deb: &'static str,
    /// npm's `cpu`.
    pub(crate) npm_cpu: &'static str,
    /// The wheel's platform tags. A static binary needs no C library, so both families of Linux take it.
    pub(crate) wheel: &'static str,
    /// The key of the platform in an entry of the ACP registry.
    pub(crate) registry: &'static str,
}

pub(crate) const PLATFORMS: [Platform; 2] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        short: "linux-x64",
        deb: "amd64",
        npm_cpu: "x64",
        wheel: "manylinux2014_x86_64.musllinux_1_1_x86_64",
        registry: "linux-x86_64",
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        short: "linux-arm64",
        deb: "arm64",
        npm_cpu: "arm64",
        wheel: "manylinux2014_aarch64.musllinux_1_1_aarch64",
        registry: "linux-aarch64",
    },
];

impl Platform {
    pub(crate) fn for_target(target: &str) -> Option<Self> {
        PLATFORMS.into_iter().find(|platform| platform.target == target)
    }

    /// The platform of this machine.
    pub(crate) fn here() -> Option<Self> {
        Self::for_processor(std::env::consts::ARCH)
    }

    /// `processor` is Rust's name, the first word of a target.
    pub(crate) fn for_processor(processor: &str) -> Option<Self> {
        PLATFORMS.into_iter().find(|platform| platform.target.split('-').next() == Some(processor))
    }
}
