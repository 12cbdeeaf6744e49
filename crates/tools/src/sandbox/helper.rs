//! The helper: this very program, started again to put the policy around itself and become the command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::landlock::{self, Lent};
use super::plan::{Around, Found, Plan, Root};
use super::root;
use super::syscalls::{self, Local};

pub use super::supervisor::supervise_command;

/// Becomes the command inside of the policy; returns only if that fails.
pub fn enter_sandbox_and_exec(plan: &str, command: &[OsString]) -> io::Error {
    let [program, arguments @ ..] = command else { return io::Error::other("there is no command") };
    match read_helper_plan(plan).and_then(|plan| apply_helper_plan(&plan)) {
        Ok(_) => {
            let error = Command::new(program).args(arguments).exec();
            io::Error::new(error.kind(), format!("{}: {error}", program.display()))
        }
        Err(error) => error,
    }
}

/// Enters the policy and says what holds inside; the file is one that must not be seen there.
pub fn probe_sandbox(plan: &str, hidden: &Path) -> io::Result<String> {
    let (landlock, root) = apply_helper_plan(&read_helper_plan(plan)?)?;
    let hides = std::fs::File::open(hidden).is_err();
    let closes = std::net::UdpSocket::bind("127.0.0.1:0").is_err();
    serde_json::to_string(&Found { landlock, root, hides, closes }).map_err(io::Error::other)
}

fn read_helper_plan(plan: &str) -> io::Result<Plan> {
    serde_json::from_str(plan).map_err(io::Error::other)
}

/// Files and ports first, calls last: what puts up the policy makes calls itself.
fn apply_helper_plan(plan: &Plan) -> io::Result<(u32, Root)> {
    let Plan { policy, around } = plan;
    rustix::thread::set_no_new_privs(true)?;
    let nothing = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(rustix::process::Resource::Core, nothing)?;
    let (lent, local) = match around {
        Around::Bubblewrap => (Lent::inside_bubblewrap(policy), Local::Open),
        Around::Nothing => (Lent::without_bubblewrap(policy), Local::Closed),
    };
    let root = if *around == Around::Nothing { root::drop_sandbox_root()? } else { Root::Nobody };
    policy.caps.apply_limits(*around, root)?;
    let landlock = landlock::restrict_with_landlock(&lent, policy.network)?;
    if landlock == 0 && *around == Around::Nothing {
        return Err(io::Error::other("this kernel has no Landlock"));
    }
    syscalls::install_syscall_filters(policy.network, local)?;
    Ok((landlock, root))
}
