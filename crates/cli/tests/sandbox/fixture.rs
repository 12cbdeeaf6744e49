//! Where escapes are tried: a home with buried keys, a workspace, and somebody outside to be bothered.

use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gander_tools::protected::{OnChange, ProtectedFiles};
use gander_tools::sandbox::{Bubblewrap, Network, Sandbox, SandboxLimits, SandboxPaths};

use crate::tries::{Proof, Try};

/// What no try may find.
const BURIED: &str = "BURIED";

/// Files with something to find, and files that something could be done to.
const PLANTED: [(&str, &str); 21] = [
    ("home/.ssh/id_ed25519", BURIED),
    ("home/.aws/credentials", BURIED),
    ("home/.netrc", BURIED),
    ("home/.config/gh/hosts.yml", BURIED),
    ("home/.cargo/credentials.toml", BURIED),
    ("home/.cargo/bin/tool", "#!/bin/sh\necho tool\n"),
    ("home/.bash_history", BURIED),
    ("home/.bashrc", "# mine\n"),
    ("home/.profile", "# mine\n"),
    ("data/token", BURIED),
    ("data/gander.db", BURIED),
    ("outside/file", "as it was\n"),
    ("outside/folder/file", "as it was\n"),
    ("ws/.gander/agents.md", "as it was\n"),
    ("ws/.git/HEAD", "ref: refs/heads/main\n"),
    ("ws/.git/config", "[core]\n\tbare = false\n"),
    ("ws/.git/refs/heads/main", "1234\n"),
    ("ws/.git/objects/12/34", "x"),
    ("ws/.vscode/tasks.json", "{}\n"),
    ("ws/package.json", "{\"name\":\"mine\",\"scripts\":{\"test\":\"true\"}}\n"),
    ("ws/Makefile", "all:\n"),
];

/// Folders that must be there.
const FOLDERS: [&str; 5] =
    ["home/.local/bin", "home/.config/autostart", "home/.gnupg", "ws/.git/hooks", "data/scratch"];

pub struct SandboxFixture {
    root: tempfile::TempDir,
    elsewhere: tempfile::TempDir,
    victim: Child,
    protected: ProtectedFiles,
    ports: [u16; 3],
    mark: String,
}

impl SandboxFixture {
    pub fn new() -> Self {
        let root = std::env::var_os("YARD").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
        let root = tempfile::tempdir_in(root).expect("a folder can be made");
        let elsewhere = tempfile::tempdir_in("/tmp").expect("a folder can be made");
        let mark = format!("gander-escape-{}", root.path().file_name().expect("it has a name").display());
        let protected = ProtectedFiles::default();
        let mut fixture = Self { root, elsewhere, victim: nobody(), protected, ports: [0; 3], mark };
        fixture.plant();
        fixture.ports = [listen_tcp("127.0.0.1:0"), answer_udp(), listen_tcp("[::1]:0")];
        greet(UnixListener::bind(fixture.at("data/gander.sock")).expect("a socket can be made"));
        greet(UnixListener::bind(fixture.at("home/.gnupg/S.agent")).expect("a socket can be made"));
        greet(UnixListener::bind(fixture.elsewhere.path().join("socket")).expect("a socket can be made"));
        let name = SocketAddr::from_abstract_name(&fixture.mark).expect("the name is short");
        greet(UnixListener::bind_addr(&name).expect("an abstract socket can be made"));
        let datagrams = UnixDatagram::bind(fixture.at("data/datagrams")).expect("a socket can be made");
        std::thread::spawn(move || while datagrams.recv(&mut [0; 16]).is_ok() {});
        fixture
    }

    /// Everything as it was before any try, somebody to be bothered included.
    pub fn plant(&mut self) {
        std::fs::remove_dir_all(self.at("ws")).ok();
        std::fs::remove_dir_all(self.at("outside")).ok();
        for made in ["new", "home/.ssh/authorized_keys", "home/.local/bin/ls", "home/.config/autostart/x"] {
            std::fs::remove_file(self.at(made)).ok();
        }
        FOLDERS.iter().for_each(|name| std::fs::create_dir_all(self.at(name)).expect("folders can be made"));
        for (name, content) in PLANTED {
            let path = self.at(name);
            std::fs::create_dir_all(path.parent().expect("it lies in the yard")).expect("folders can be made");
            std::fs::write(&path, content).expect("files can be written");
        }
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.at("home/.cargo/bin/tool"), executable).expect("modes can be set");
        std::fs::remove_file(Path::new("/tmp").join(&self.mark)).ok();
        if self.is_killed() {
            self.victim = self.somebody();
        }
    }

    /// A sandbox for this yard's home and data.
    pub fn sandbox(&self, bubblewrap: Bubblewrap) -> Sandbox {
        self.sandbox_with(bubblewrap, SandboxLimits::default())
    }

    /// The same, in which commands may have no more than this.
    pub fn sandbox_with(&self, bubblewrap: Bubblewrap, caps: SandboxLimits) -> Sandbox {
        let bounds = SandboxPaths::for_home(Some(&self.at("home")), self.at("data/scratch"), &[self.at("data")]);
        let bounds = SandboxPaths { caps, ..bounds };
        Sandbox::new(env!("CARGO_BIN_EXE_gander").into(), move || bounds, bubblewrap)
    }

    /// Makes the try without a fence.
    pub fn outside(&self, attempt: &Try) -> String {
        self.said(Command::new("/bin/bash"), attempt)
    }

    /// Makes it inside.
    pub fn inside(&self, sandbox: &Sandbox, attempt: &Try) -> String {
        self.fenced(sandbox, attempt, Network::Closed)
    }

    /// Makes it inside, with the network.
    pub fn granted(&self, sandbox: &Sandbox, attempt: &Try) -> String {
        self.fenced(sandbox, attempt, Network::Open)
    }

    fn fenced(&self, sandbox: &Sandbox, attempt: &Try, network: Network) -> String {
        let fence = sandbox.policy_for(&[self.at("ws")], network).expect("a layer is in force");
        let wrap = sandbox.wrap_command(&fence.with_readable_paths([tool()])).expect("the fence can be put up");
        let mut command = wrap.wrapped_command("/bin/bash".as_ref());
        command.envs(wrap.environment());
        // As for every command: what it leaves behind for programs outside is undone unless somebody says yes.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        runtime.block_on(async {
            let watched =
                self.protected.watch_command(&[self.at("ws")]).await.expect("the workspace can be looked through");
            let said = self.said(command, attempt);
            drop(watched.finish_command(OnChange::SetAside).await.expect("the workspace can be looked through"));
            said
        })
    }

    /// True if the try got out.
    pub fn proves(&mut self, attempt: &Try, said: &str) -> bool {
        match attempt.proof {
            Proof::Said => said.contains("ESCAPED"),
            Proof::MadeLater(name) => {
                std::thread::sleep(Duration::from_secs(2));
                self.at(name).exists()
            }
            Proof::Made(name) => self.at(name).exists(),
            Proof::Changed(name) => {
                let planted = PLANTED.iter().find(|(path, _)| *path == name).expect("it was planted").1;
                std::fs::read_to_string(self.at(name)).ok().as_deref() != Some(planted)
            }
            Proof::Killed => {
                std::thread::sleep(Duration::from_millis(200));
                self.is_killed()
            }
        }
    }

    fn said(&self, mut command: Command, attempt: &Try) -> String {
        let line = format!("ulimit -t 20; {}", attempt.script);
        command.arg("-c").arg(line).current_dir(self.at("ws")).stdin(Stdio::null());
        command.env("HOME", self.at("home")).env("DATA", self.at("data")).env("ROOM", self.root());
        command.env("VICTIM", self.victim.id().to_string()).env("MARK", &self.mark).env("TOOL", tool());
        command.env("TCP", self.ports[0].to_string()).env("UDP", self.ports[1].to_string());
        command.env("TCP6", self.ports[2].to_string()).env("AGENT", self.at("home/.gnupg/S.agent"));
        command.env("SOCKET", self.at("data/gander.sock")).env("DATAGRAMS", self.at("data/datagrams"));
        command.env("TEMPORARY_SOCKET", self.elsewhere.path().join("socket")).env("ABSTRACT", &self.mark);
        command.env("TRY", attempt.name).env("SHARED", shared_key().to_string());
        let output = command.output().expect("a shell can be started");
        String::from_utf8_lossy(&output.stdout).into_owned() + &complaint(&output.stderr)
    }

    /// A process with a secret in its environment, in its folder and in an open file.
    fn somebody(&self) -> Child {
        let script = format!("exec 7<.netrc; exec -a {} sleep 600", self.mark);
        let mut command = Command::new("/bin/bash");
        command.arg("-c").arg(script).current_dir(self.at("home")).env("SECRET", BURIED);
        let victim = command.stdin(Stdio::null()).spawn().expect("a process can be started");
        let name = format!("/proc/{}/cmdline", victim.id());
        while !std::fs::read_to_string(&name).is_ok_and(|line| line.starts_with(&self.mark)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        victim
    }

    fn is_killed(&mut self) -> bool {
        self.victim.try_wait().expect("it is our child").is_some()
    }

    fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("it is there")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }
}

impl Drop for SandboxFixture {
    fn drop(&mut self) {
        self.victim.kill().ok();
        self.victim.wait().ok();
        forget_shared();
        std::fs::remove_file(Path::new("/tmp").join(&self.mark)).ok();
    }
}

fn tool() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn nobody() -> Child {
    let mut child = Command::new("/bin/true").spawn().expect("a process can be started");
    child.wait().expect("it ends");
    child
}

/// Errors are shown if a try escapes, but prove nothing.
fn complaint(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).lines().map(|line| format!("[{}]\n", line.replace("ESCAPED", ""))).collect()
}

/// 0 where there is no such network: then what connects to it is no try.
fn listen_tcp(address: &str) -> u16 {
    let Ok(listener) = TcpListener::bind(address) else { return 0 };
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.write_all(b"ESCAPED\n").ok();
        }
    });
    port
}

fn answer_udp() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let port = socket.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 16]) {
            socket.send_to(b"ESCAPED", from).ok();
        }
    });
    port
}

fn greet(listener: UnixListener) {
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.write_all(b"ESCAPED\n").ok();
        }
    });
}

/// A piece of memory that anybody of this user may attach to.
#[allow(unsafe_code)]
fn shared_key() -> libc::key_t {
    let key = 0x6761_0000_u32.wrapping_add(std::process::id()) as libc::key_t;
    // SAFETY: numbers only.
    unsafe { libc::shmget(key, 1, libc::IPC_CREAT | 0o600) };
    key
}

#[allow(unsafe_code)]
fn forget_shared() {
    let key = shared_key();
    // SAFETY: numbers only; there is nothing to be told.
    unsafe { libc::shmctl(libc::shmget(key, 1, 0), libc::IPC_RMID, std::ptr::null_mut()) };
}
