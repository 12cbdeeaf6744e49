//! A command of root gets no more power over the machine than anybody else's.
//!
//! The one place of the sandbox with unsafe code: a new user namespace cannot be asked for otherwise.
#![allow(unsafe_code)]

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use super::plan::Root;

/// Gives the powers of root away, if there are any. This process must have one thread.
pub(super) fn drop_sandbox_root() -> io::Result<Root> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Root::Nobody);
    }
    let root = if enter_sandbox_root_namespace().is_ok() { Root::Namespace } else { Root::Bare };
    for capability in CapabilitySet::all().iter() {
        // Kernels know fewer or more of them.
        if let Err(error) = rustix::thread::remove_capability_from_bounding_set(capability) {
            tracing::trace!(%error, "an unknown power of root");
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(root)
}

fn enter_sandbox_root_namespace() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // SAFETY: a user namespace shares no memory or descriptors anew; this process has one thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
