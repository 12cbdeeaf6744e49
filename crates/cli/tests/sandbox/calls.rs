//! Tries that are system calls. Each says `ESCAPED` if it got through.
// What the safe wrappers do not offer is just what somebody who wants out would call.
#![allow(unsafe_code)]

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

/// Makes one try.
pub fn run(name: &str) {
    let escaped = match name {
        "ordinary work" => {
            println!("CALLED");
            false
        }
        "attach to another process" => attach(),
        "read another's memory" => memory(),
        "take another's descriptor" => descriptor(),
        "share memory with another" => call(libc::SYS_shmget, [number("SHARED"), 1, 0, 0, 0]),
        "ask a name server" => name_server(),
        "listen on a port" => TcpListener::bind("127.0.0.1:0").is_ok(),
        "make a raw socket" => socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "make a packet socket" => socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        "make a netlink socket" => socket(libc::AF_NETLINK, libc::SOCK_RAW, 0),
        "make a vsock socket" => socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        "speak to the server's socket" => greets(UnixStream::connect(text("SOCKET"))),
        "speak to a socket in /tmp" => greets(UnixStream::connect(text("TEMPORARY_SOCKET"))),
        "speak to an agent that holds keys" => greets(UnixStream::connect(text("AGENT"))),
        "type into a terminal" => type_in(),
        "speak to an abstract socket" => {
            let address = SocketAddr::from_abstract_name(text("ABSTRACT"));
            greets(address.and_then(|address| UnixStream::connect_addr(&address)))
        }
        "send to a socket by a pair" => UnixDatagram::pair()
            .is_ok_and(|(one, _)| one.connect(text("DATAGRAMS")).and_then(|()| one.send(b"x")).is_ok()),
        "become another user" => call(libc::SYS_setuid, [65533, 0, 0, 0, 0]),
        "clone into a namespace" => clone_away(),
        "start an io_uring" => uring(),
        "keep a key in the kernel" => key(),
        "load a program into the kernel" => program(),
        "count the machine's events" => events(),
        "handle another's page faults" => call(libc::SYS_userfaultfd, [0, 0, 0, 0, 0]),
        "rename the machine" => rename(),
        // x32's getpid: answers only where the kernel has that table, so elsewhere this is no try.
        "make calls of another table" => call(0x4000_0000 + libc::SYS_getpid, [0; 5]),
        other => panic!("no such try: {other}"),
    };
    if escaped {
        println!("ESCAPED");
    }
}

fn text(name: &str) -> String {
    std::env::var(name).expect("the yard sets it")
}

fn number(name: &str) -> libc::c_long {
    text(name).parse().expect("the yard sets a number")
}

fn call(number: libc::c_long, arguments: [libc::c_long; 5]) -> bool {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the arguments are numbers, or addresses of things that outlive the call.
    unsafe { libc::syscall(number, a, b, c, d, e) >= 0 }
}

fn address<T>(value: &T) -> libc::c_long {
    std::ptr::from_ref(value) as libc::c_long
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> bool {
    call(libc::SYS_socket, [family.into(), kind.into(), protocol.into(), 0, 0])
}

fn attach() -> bool {
    let victim = number("VICTIM");
    // PTRACE_SEIZE stops nobody, and this process's end lets go.
    call(libc::SYS_ptrace, [0x4206, victim, 0, 0, 0])
}

fn memory() -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", number("VICTIM"))).unwrap_or_default();
    let start = maps.lines().next().and_then(|line| line.split('-').next());
    let Some(start) = start.and_then(|start| usize::from_str_radix(start, 16).ok()) else { return false };
    let mut buffer = [0_u8; 4];
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 4 };
    let remote = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: 4 };
    let pid = number("VICTIM") as libc::pid_t;
    // SAFETY: both vectors describe four bytes; the remote address was just read from its map.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    read == 4 && buffer == *b"\x7fELF"
}

fn descriptor() -> bool {
    // SAFETY: numbers only.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, number("VICTIM"), 0) };
    process >= 0 && call(libc::SYS_pidfd_getfd, [process, 7, 0, 0, 0])
}

fn name_server() -> bool {
    let asked = UdpSocket::bind("127.0.0.1:0").and_then(|socket| {
        socket.connect(("127.0.0.1", number("UDP") as u16))?;
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        socket.send(b"who")?;
        socket.recv(&mut [0; 16])
    });
    asked.is_ok()
}

fn greets(stream: std::io::Result<UnixStream>) -> bool {
    let mut said = String::new();
    stream.is_ok_and(|mut stream| stream.read_to_string(&mut said).is_ok() && said.contains("ESCAPED"))
}

fn clone_away() -> bool {
    let flags = libc::c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // SAFETY: a child without a stack of its own goes on with a copy of ours, as after fork, and ends at once.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        0 => std::process::exit(0),
        child => child > 0,
    }
}

fn uring() -> bool {
    let parameters = [0_u64; 32];
    call(libc::SYS_io_uring_setup, [4, address(&parameters), 0, 0, 0])
}

fn key() -> bool {
    let (kind, name) = (c"user", c"gander-escape");
    let payload = *b"x";
    // The process's own keyring: nothing stays.
    let (kind, name) = (kind.as_ptr() as libc::c_long, name.as_ptr() as libc::c_long);
    call(libc::SYS_add_key, [kind, name, address(&payload), 1, -2])
}

fn program() -> bool {
    // A map of one entry: type array, key of four bytes, value of four.
    let attributes = [2_u32, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    call(libc::SYS_bpf, [0, address(&attributes), size_of_val(&attributes) as libc::c_long, 0, 0])
}

fn events() -> bool {
    // A software counter of this process: type 1, size, config 0.
    let mut attributes = [0_u64; 16];
    attributes[0] = 1 | (128 << 32);
    call(libc::SYS_perf_event_open, [address(&attributes), 0, -1, -1, 0])
}

/// Into a terminal of its own making: what works there works in any that it is given.
fn type_in() -> bool {
    let (mut terminal, mut side) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are written, nothing else is asked for.
    let opened = unsafe { libc::openpty(&raw mut terminal, &raw mut side, none, none.cast(), none.cast()) };
    // SAFETY: numbers, and the address of one letter.
    opened == 0
        && unsafe {
            libc::setsid() >= 0
                && libc::ioctl(side, libc::TIOCSCTTY, 0) == 0
                && libc::ioctl(side, libc::TIOCSTI, &raw const b"x"[0]) == 0
        }
}

fn rename() -> bool {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_owned();
    call(libc::SYS_sethostname, [name.as_ptr() as libc::c_long, name.len() as libc::c_long, 0, 0, 0])
}
