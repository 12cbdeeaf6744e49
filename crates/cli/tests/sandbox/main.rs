//! The escape suite: what works outside of the sandbox must not work inside of it.
//!
//! Every try is first made outside. One that fails there says nothing and does not count; eighty must be left, with
//! and without bubblewrap, for root and for anybody else.
// Which layers are in force, and which tries count, is for people to read.
#![allow(clippy::print_stdout)]

mod calls;
mod fixture;
mod outlive;
mod plants;
mod tries;

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use gander_testkit::skip::skipped;
use gander_tools::sandbox::{Around, Bubblewrap, Layers, Sandbox, SandboxLimits};

use fixture::SandboxFixture;
use plants::PLANTS;
use tries::{TRIES, Try, Wants};

/// Tries that must count.
const ENOUGH: usize = 80;

/// Somebody who is not root.
const NOBODY: u32 = 65534;

/// The tries that are system calls: this very program, started again.
#[test]
fn tool() {
    if let Some(name) = std::env::var_os("TRY") {
        calls::run(&name.to_string_lossy());
    }
}

#[test]
fn nothing_escapes_from_the_kernels_fences_alone() {
    suite(Bubblewrap::Never);
}

#[test]
fn nothing_escapes_from_bubblewrap_and_the_kernels_fences() {
    suite(Bubblewrap::IfItWorks);
}

/// Root's tests are the two above, started again by somebody else.
#[test]
fn nothing_escapes_from_somebody_who_is_not_root() {
    if !rustix::process::geteuid().is_root() {
        return skipped("sandbox::nothing_escapes_from_somebody_who_is_not_root", "this is not root");
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root gives folders away");
    if !is_reachable(folder.path()) {
        return skipped("sandbox::reachable", &format!("nobody but root reaches {}", folder.path().display()));
    }
    for test in
        ["nothing_escapes_from_the_kernels_fences_alone", "nothing_escapes_from_bubblewrap_and_the_kernels_fences"]
    {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", test, "--nocapture"]).env("YARD", folder.path()).uid(NOBODY).gid(NOBODY);
        let output = command.current_dir("/").output().expect("it can be started by somebody else");
        let said = String::from_utf8_lossy(&output.stdout);
        print!("{said}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{test}: {complaint}");
        assert!(said.contains("tries work outside") || std::env::var_os("CI").is_none(), "{said}");
    }
}

fn is_reachable(folder: &Path) -> bool {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "test -x \"$0\" && test -w \"$1\""]).arg(env!("CARGO_BIN_EXE_gander")).arg(folder);
    command.uid(NOBODY).gid(NOBODY).current_dir("/").status().is_ok_and(|status| status.success())
}

fn suite(bubblewrap: Bubblewrap) {
    let mut fixture = SandboxFixture::new();
    let sandbox = fixture.sandbox(bubblewrap);
    let layers = sandbox.available_layers();
    let who = if rustix::process::geteuid().is_root() { "root" } else { "somebody else" };
    println!("layers in force: {layers}, for {who}");
    for shortfall in layers.missing_layers() {
        println!("  {shortfall}");
    }
    let Layers::Some(standing) = &layers else {
        return skipped("sandbox::layers", &format!("no layer is in force: {layers:?}"));
    };
    let whole = standing.around == Around::Bubblewrap;
    if bubblewrap == Bubblewrap::IfItWorks && !whole {
        skipped("sandbox::bubblewrap", "bubblewrap is not there or does not work: the kernel's layers are tried again");
    }
    let (mut counted, mut escaped) = (0, Vec::new());
    for attempt in TRIES.iter().chain(PLANTS).filter(|attempt| whole || attempt.wants == Wants::Kernel) {
        match verdict(&mut fixture, &sandbox, attempt) {
            Verdict::Broken => println!("does not work outside either, not counted: {}", attempt.name),
            Verdict::Kept => counted += 1,
            Verdict::Escaped(said) => escaped.push(format!("{}: {said}", attempt.name)),
        }
    }
    println!("{counted} tries work outside and fail inside: {layers}, for {who}");
    assert!(escaped.is_empty(), "escaped: {escaped:#?}");
    assert!(counted >= ENOUGH, "only {counted} tries count");
}

enum Verdict {
    Broken,
    Kept,
    Escaped(String),
}

fn verdict(fixture: &mut SandboxFixture, sandbox: &Sandbox, attempt: &Try) -> Verdict {
    fixture.plant();
    let outside = fixture.outside(attempt);
    if !fixture.proves(attempt, &outside) {
        return Verdict::Broken;
    }
    fixture.plant();
    let inside = fixture.inside(sandbox, attempt);
    match fixture.proves(attempt, &inside) {
        true => Verdict::Escaped(inside),
        false => Verdict::Kept,
    }
}

#[test]
fn ordinary_work_goes_on_inside() {
    let mut fixture = SandboxFixture::new();
    for bubblewrap in [Bubblewrap::Never, Bubblewrap::IfItWorks] {
        let sandbox = fixture.sandbox(bubblewrap);
        if !sandbox.is_in_force() {
            skipped("sandbox::layers", "no layer is in force");
            continue;
        }
        fixture.plant();
        let work = "set -e; echo one > new; mkdir -p deep/er; mv new deep/er/moved; cat deep/er/moved; ln -s deep/er link; \
            ls link/; (echo a; echo b) | sort -r | head -1; echo x > \"$TMPDIR/t\"; cat \"$TMPDIR/t\"; test -r /etc/passwd; \
            ~/.cargo/bin/tool; \"$TOOL\" --exact tool --nocapture | grep -o CALLED; chmod +x deep/er/moved; sh -c 'kill -0 $$'; rm -r deep; sleep 0.01 & wait; echo WORKED";
        let attempt = Try { name: "ordinary work", script: work, proof: tries::Proof::Said, wants: Wants::Kernel };
        let said = fixture.inside(&sandbox, &attempt);
        assert_eq!(said, "one\nmoved\nb\nx\ntool\nCALLED\nWORKED\n", "{}", sandbox.available_layers());
    }
}

#[test]
fn the_network_is_there_once_it_is_granted() {
    let mut fixture = SandboxFixture::new();
    for bubblewrap in [Bubblewrap::Never, Bubblewrap::IfItWorks] {
        let sandbox = fixture.sandbox(bubblewrap);
        if !sandbox.is_in_force() {
            skipped("sandbox::layers", "no layer is in force");
        } else {
            let attempt = TRIES.iter().find(|attempt| attempt.name == "connect over TCP").expect("it is in the table");
            let said = fixture.granted(&sandbox, attempt);
            assert!(fixture.proves(attempt, &said), "{}: {said}", sandbox.available_layers());
        }
    }
}

/// What one command does with much memory and many processes, as far as it comes.
const GREEDY: &str = "head -c 300000000 /dev/zero | tail -c 300000000 | wc -c; \
    ulimit -u; sh -c 'n=0; while [ $n -lt 80 ]; do sleep 1 & n=$((n+1)); done; echo FORKED'";

#[test]
fn a_command_has_no_more_memory_and_processes_than_it_may() {
    let fixture = SandboxFixture::new();
    let greedy = Try { name: "greedy", script: GREEDY, proof: tries::Proof::Said, wants: Wants::Kernel };
    let caps = SandboxLimits { memory: Some(100 << 20), processes: Some(40) };
    for bubblewrap in [Bubblewrap::Never, Bubblewrap::IfItWorks] {
        let free = fixture.sandbox(bubblewrap);
        if !free.is_in_force() {
            skipped("sandbox::layers", "no layer is in force");
            continue;
        }
        let said = fixture.inside(&free, &greedy);
        assert!(said.contains("300000000") && said.contains("FORKED"), "without limits it comes through: {said}");
        let said = fixture.inside(&fixture.sandbox_with(bubblewrap, caps), &greedy);
        assert!(!said.contains("300000000"), "{}: memory has a limit: {said}", free.available_layers());
        // The kernel holds nobody to it whose user outside is root.
        let root = rustix::process::geteuid().is_root();
        assert_eq!(said.contains("FORKED"), root, "{}: processes have a limit: {said}", free.available_layers());
        assert!(!root || said.contains("\n40\n"), "{}: it is set all the same: {said}", free.available_layers());
    }
}
