//! Which system calls a fenced command cannot make: seccomp filters, laid over each other.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use super::policy::Network;

/// libc does not name it for aarch64 with musl.
#[cfg(target_arch = "aarch64")]
const SYS_KEXEC_FILE_LOAD: libc::c_long = 294;
#[cfg(not(target_arch = "aarch64"))]
const SYS_KEXEC_FILE_LOAD: libc::c_long = libc::SYS_kexec_file_load;

/// Calls that no build needs and many an escape does.
const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The kernel's own machinery.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    SYS_KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// What `clone` would make anew.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests that type into a terminal for its user: TIOCSTI and TIOCLINUX.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Numbers from here on belong to another table of calls (x32).
const FOREIGN: u32 = 0x4000_0000;

/// Whether sockets with names in the file system or in the abstract can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// Yes: those of others are out of sight.
    Open,
    /// No: nothing else would keep them apart.
    Closed,
}

/// From now on, for this process and all that it starts.
pub(super) fn install_syscall_filters(network: Network, local: Local) -> io::Result<()> {
    let families = match network {
        Network::Open => vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Network::Closed => vec![],
    };
    let unix = if local == Local::Open { vec![libc::AF_UNIX] } else { vec![] };
    // Families of the network have an answer of their own, which programs put in words that people know.
    let spoken = [libc::AF_INET, libc::AF_INET6];
    let known: Vec<libc::c_int> = families.iter().chain(&unix).chain(&spoken).copied().collect();
    apply_syscall_program(&foreign_architecture_filter())?;
    install_syscall_filter(libc::EPERM, refused_syscalls()?)?;
    install_syscall_filter(libc::ENOSYS, BTreeMap::from([(libc::SYS_clone3, vec![])]))?;
    install_syscall_filter(libc::EAFNOSUPPORT, socket_syscall_rules(&known)?)?;
    if network == Network::Closed {
        let rules =
            spoken.iter().map(|family| seccomp_syscall_rule(&[(0, SeccompCmpOp::Eq, to_syscall_argument(*family))]));
        install_syscall_filter(
            libc::ENETUNREACH,
            BTreeMap::from([(libc::SYS_socket, rules.collect::<io::Result<_>>()?)]),
        )?;
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused_syscalls() -> io::Result<Rules> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, vec![])).collect();
    let namespaces = NAMESPACES.iter().map(|flag| to_syscall_argument(*flag));
    let clone = namespaces.map(|flag| seccomp_syscall_rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)]));
    rules.insert(libc::SYS_clone, clone.collect::<io::Result<_>>()?);
    let typing = TYPING.iter().map(|request| seccomp_syscall_rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, typing.collect::<io::Result<_>>()?);
    Ok(rules)
}

/// Every family but these; and pairs that could be given another address later.
fn socket_syscall_rules(known: &[libc::c_int]) -> io::Result<Rules> {
    let others: Vec<_> = known.iter().map(|family| (0, SeccompCmpOp::Ne, to_syscall_argument(*family))).collect();
    let datagram = [(1, SeccompCmpOp::MaskedEq(0xf), to_syscall_argument(libc::SOCK_DGRAM))];
    let pairs = match known.contains(&libc::AF_UNIX) {
        true => vec![],
        false => vec![(libc::SYS_socketpair, vec![seccomp_syscall_rule(&datagram)?])],
    };
    Ok(std::iter::once((libc::SYS_socket, vec![seccomp_syscall_rule(&others)?])).chain(pairs).collect())
}

fn seccomp_syscall_rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> io::Result<SeccompRule> {
    let conditions = conditions
        .iter()
        .map(|(at, how, value)| SeccompCondition::new(*at, SeccompCmpArgLen::Dword, how.clone(), *value));
    let conditions = conditions.collect::<Result<_, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn to_syscall_argument(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

/// These calls fail with this error.
fn install_syscall_filter(error: libc::c_int, rules: Rules) -> io::Result<()> {
    let answer = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, syscall_target_architecture()?);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    apply_syscall_program(&program)
}

fn apply_syscall_program(program: &[sock_filter]) -> io::Result<()> {
    apply_filter(program).map_err(io::Error::other)
}

fn syscall_target_architecture() -> io::Result<TargetArch> {
    std::env::consts::ARCH.try_into().map_err(io::Error::other)
}

/// Calls of another table do not exist: `if number >= FOREIGN { ENOSYS } else { allowed }`.
fn foreign_architecture_filter() -> [sock_filter; 4] {
    let word = |code: u32, jt, k| sock_filter { code: code as u16, jt, jf: 0, k };
    let answer = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    [
        word(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        word(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, FOREIGN),
        word(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        word(libc::BPF_RET | libc::BPF_K, 0, answer),
    ]
}
