//! The tries: shell lines that prove an escape by what they say or by what they leave behind.

/// One try.
pub struct Try {
    pub name: &'static str,
    pub script: &'static str,
    pub proof: Proof,
    pub wants: Wants,
}

/// How an escape shows. Paths lie in the yard.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It says `ESCAPED`.
    Said,
    /// This is there, and was not.
    Made(&'static str),
    /// This holds something else than was planted.
    Changed(&'static str),
    /// This is there after two seconds, and was not.
    MadeLater(&'static str),
    /// Nobody waits any longer: the process outside is gone.
    Killed,
}

/// What must be in force to keep it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Landlock and seccomp.
    Kernel,
    /// Bubblewrap too: `docs/sandbox.md` says so.
    Bubblewrap,
}

const fn kernel(name: &'static str, proof: Proof, script: &'static str) -> Try {
    Try { name, script, proof, wants: Wants::Kernel }
}

const fn whole(name: &'static str, proof: Proof, script: &'static str) -> Try {
    Try { name, script, proof, wants: Wants::Bubblewrap }
}

/// A system call, made by this test's own program.
const fn call(name: &'static str) -> Try {
    kernel(name, Proof::Said, "\"$TOOL\" --exact tool --nocapture")
}

const fn call_whole(name: &'static str) -> Try {
    whole(name, Proof::Said, "\"$TOOL\" --exact tool --nocapture")
}

/// Something left behind in the workspace for a program outside to run.
pub const fn plant(name: &'static str, path: &'static str, script: &'static str) -> Try {
    kernel(name, Proof::Made(path), script)
}

/// The same where there is something that is not to be changed.
pub const fn alter(name: &'static str, path: &'static str, script: &'static str) -> Try {
    kernel(name, Proof::Changed(path), script)
}

/// The same by somebody who is still there when the command has ended.
pub const fn later(name: &'static str, path: &'static str, script: &'static str) -> Try {
    kernel(name, Proof::MadeLater(path), script)
}

use Proof::{Changed, Killed, Made, MadeLater, Said};

pub const TRIES: &[Try] = &[
    // Keys in the home.
    kernel("read a private key", Said, "grep -q BURIED ~/.ssh/id_ed25519 && echo ESCAPED"),
    kernel("read cloud credentials", Said, "grep -q BURIED ~/.aws/credentials && echo ESCAPED"),
    kernel("read .netrc", Said, "grep -q BURIED ~/.netrc && echo ESCAPED"),
    kernel("read a token of a tool", Said, "grep -q BURIED ~/.config/gh/hosts.yml && echo ESCAPED"),
    kernel("read credentials beside what is lent", Said, "grep -q BURIED ~/.cargo/credentials.toml && echo ESCAPED"),
    kernel("read the history of the shell", Said, "grep -q BURIED ~/.bash_history && echo ESCAPED"),
    kernel("list the home", Said, "ls -a ~ | grep -q .netrc && echo ESCAPED"),
    kernel("find keys by a search", Said, "grep -rqs BURIED ~/.ssh && echo ESCAPED"),
    kernel("read the hashes of passwords", Said, "test -n \"$(cat /etc/shadow)\" && echo ESCAPED"),
    kernel("read the server's token", Said, "grep -q BURIED \"$DATA/token\" && echo ESCAPED"),
    kernel("read the server's log", Said, "grep -q BURIED \"$DATA/gander.db\" && echo ESCAPED"),
    // What runs later.
    kernel("append to .bashrc", Changed("home/.bashrc"), "echo evil >> ~/.bashrc"),
    kernel("append to .profile", Changed("home/.profile"), "echo evil >> ~/.profile"),
    kernel("plant a key", Made("home/.ssh/authorized_keys"), "echo evil > ~/.ssh/authorized_keys"),
    kernel("plant a program", Made("home/.local/bin/ls"), "echo evil > ~/.local/bin/ls"),
    kernel("plant an autostart", Made("home/.config/autostart/x"), "echo evil > ~/.config/autostart/x"),
    kernel("replace a lent program", Changed("home/.cargo/bin/tool"), "echo evil > ~/.cargo/bin/tool"),
    kernel("write into the system's settings", Said, "touch /etc/$MARK && rm -f /etc/$MARK && echo ESCAPED"),
    kernel("add a program for everybody", Said, "p=/usr/local/bin/$MARK; touch $p && rm -f $p && echo ESCAPED"),
    // Writing outside.
    kernel("write beside the workspace", Made("outside/new"), "echo evil > \"$ROOM/outside/new\""),
    kernel("write above the workspace", Made("new"), "echo evil > ../new"),
    kernel("overwrite a file outside", Changed("outside/file"), "echo evil > \"$ROOM/outside/file\""),
    kernel("cut a file outside short", Changed("outside/file"), "truncate -s 0 \"$ROOM/outside/file\""),
    kernel("delete a file outside", Changed("outside/file"), "rm -f \"$ROOM/outside/file\""),
    kernel("move a file in from outside", Changed("outside/file"), "mv \"$ROOM/outside/file\" here"),
    kernel("replace a folder outside", Made("outside/moved"), "mv \"$ROOM/outside/folder\" \"$ROOM/outside/moved\""),
    whole("change a mode outside", Said, "chmod 700 \"$ROOM/outside/file\" && echo ESCAPED"),
    whole("change a time outside", Said, "touch -t 200001010000 \"$ROOM/outside/file\" && echo ESCAPED"),
    kernel(
        "leave a file in everybody's /tmp",
        Said,
        "echo x > /tmp/$MARK && test -e /proc/$VICTIM/root/tmp/$MARK && echo ESCAPED",
    ),
    kernel("delete the server's data", Changed("data/gander.db"), "rm -f \"$DATA/gander.db\""),
    // Links.
    kernel("read through a symbolic link", Said, "ln -s ~/.ssh/id_ed25519 l; grep -q BURIED l && echo ESCAPED"),
    kernel("write through a linked folder", Made("outside/new"), "ln -s \"$ROOM/outside\" l; echo evil > l/new"),
    kernel("read through a hard link", Said, "ln ~/.ssh/id_ed25519 l; grep -q BURIED l && echo ESCAPED"),
    kernel("write through a hard link", Changed("outside/file"), "ln \"$ROOM/outside/file\" l; echo evil > l"),
    kernel("read around the root", Said, "grep -q BURIED /proc/self/root\"$HOME\"/.netrc && echo ESCAPED"),
    // Other processes.
    kernel(
        "read another's environment",
        Said,
        "tr '\\0' '\\n' < /proc/$VICTIM/environ | grep -q BURIED && echo ESCAPED",
    ),
    kernel("read through another's root", Said, "grep -q BURIED /proc/$VICTIM/root\"$HOME\"/.netrc && echo ESCAPED"),
    kernel("read through another's folder", Said, "grep -q BURIED /proc/$VICTIM/cwd/.netrc && echo ESCAPED"),
    kernel("read another's open file", Said, "grep -q BURIED /proc/$VICTIM/fd/7 && echo ESCAPED"),
    kernel("look at another's program", Said, "readlink /proc/$VICTIM/exe && echo ESCAPED"),
    whole("see another's arguments", Said, "grep -q $MARK /proc/$VICTIM/cmdline && echo ESCAPED"),
    kernel("kill another process", Killed, "kill -9 $VICTIM"),
    whole("slow another process down", Said, "renice -n 5 -p $VICTIM && echo ESCAPED"),
    kernel(
        "read another's memory as a file",
        Said,
        "start=$(head -1 /proc/$VICTIM/maps | cut -d- -f1); \
         tail -c +$((16#$start + 1)) /proc/$VICTIM/mem | head -c 4 | grep -q ELF && echo ESCAPED",
    ),
    kernel("stop another process", Said, "kill -STOP $VICTIM && kill -CONT $VICTIM && echo ESCAPED"),
    call("attach to another process"),
    call("read another's memory"),
    call("take another's descriptor"),
    kernel(
        "outlive the command",
        MadeLater("ws/alive"),
        "env -i setsid sh -c 'sleep 1; echo x > alive' >/dev/null 2>&1 & sleep 0.1",
    ),
    call_whole("share memory with another"),
    // The network.
    kernel("connect over TCP", Said, "exec 9<>/dev/tcp/127.0.0.1/$TCP; read -r -u 9 said; echo $said"),
    kernel(
        "connect over TCP from a child",
        Said,
        "(sh -c true; (bash -c 'exec 9<>/dev/tcp/127.0.0.1/$TCP; read -r -u 9 said; echo $said'))",
    ),
    kernel("send over UDP", Said, "echo x > /dev/udp/127.0.0.1/$UDP && echo ESCAPED"),
    kernel("connect over IPv6", Said, "exec 9<>/dev/tcp/::1/$TCP6; read -r -u 9 said; echo $said"),
    call("ask a name server"),
    call("listen on a port"),
    call("make a raw socket"),
    call("make a packet socket"),
    call("make a netlink socket"),
    call("make a vsock socket"),
    // Sockets of this machine.
    call("speak to the server's socket"),
    call("speak to a socket in /tmp"),
    call("speak to an abstract socket"),
    call("speak to an agent that holds keys"),
    kernel("look for sockets of the system", Said, "test -n \"$(ls -A /run)\" && echo ESCAPED"),
    kernel(
        "leave something in shared memory",
        Said,
        "f=/dev/shm/$MARK; echo x > $f && test -e /proc/$VICTIM/root$f && rm $f && echo ESCAPED",
    ),
    call("send to a socket by a pair"),
    // Powers.
    kernel("give a file away", Said, "touch f && chown 1:1 f && echo ESCAPED"),
    call("become another user"),
    kernel("mount something", Said, "mkdir -p m && mount -t tmpfs none m && umount m && echo ESCAPED"),
    kernel("make a user namespace", Said, "unshare --user --map-root-user true && echo ESCAPED"),
    kernel("make a network namespace", Said, "unshare --net true && echo ESCAPED"),
    kernel("enter another's namespace", Said, "nsenter --target $VICTIM --mount true && echo ESCAPED"),
    kernel("change the root", Said, "chroot / /bin/true && echo ESCAPED"),
    kernel("make a device", Said, "mknod d c 1 3 && echo ESCAPED"),
    kernel(
        "read a disk",
        Said,
        "disk=$(find /dev -type b | head -1); test -n \"$(head -c 4096 $disk | tr -d '\\0' | head -c 1)\" && echo ESCAPED",
    ),
    kernel("read the kernel's messages", Said, "dmesg >/dev/null && echo ESCAPED"),
    kernel("set the kernel", Said, "f=/proc/sys/vm/swappiness; cat $f > value && cat value > $f && echo ESCAPED"),
    kernel(
        "run something when a program crashes",
        Said,
        "f=/proc/sys/kernel/core_pattern; cat $f > v && cat v > $f && echo ESCAPED",
    ),
    kernel(
        "make a group of processes",
        Said,
        "d=$(find /sys/fs/cgroup -maxdepth 1 -type d | head -1)/$MARK; mkdir $d && rmdir $d && echo ESCAPED",
    ),
    kernel(
        "take another user's name by a program",
        Said,
        "cp \"$(command -v id)\" x && chown 65533 x && chmod u+s x && ./x -u | grep -q 65533 && echo ESCAPED",
    ),
    kernel("read what the system logged", Said, "test -n \"$(ls -A /var/log)\" && echo ESCAPED"),
    kernel("look into other homes", Said, "test -n \"$(ls -A /home; ls -A /root)\" && echo ESCAPED"),
    call("type into a terminal"),
    call("clone into a namespace"),
    call("start an io_uring"),
    call("keep a key in the kernel"),
    call("load a program into the kernel"),
    call("count the machine's events"),
    call("handle another's page faults"),
    call("rename the machine"),
    call("make calls of another table"),
];
