//! A command at a terminal: what a person reads there, and what it types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitStatus;

use anyhow::{Context, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::PATIENCE;

/// A command whose standard streams are a terminal.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: mpsc::UnboundedReceiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Terminal {
    /// Starts it.
    pub fn start(mut command: Command) -> anyhow::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let theirs = File::options().read(true).write(true).open(std::ffi::OsStr::from_bytes(name.as_bytes()))?;
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs);
        let child = command.spawn().context("cannot run the binary")?;
        // The command holds the terminal's other side: while it does, the screen does not end.
        drop(command);
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone()?;
        let (sender, screen) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut piece = vec![0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keyboard, screen, shown: Vec::new() })
    }

    /// Everything on the screen so far, once it shows this.
    pub async fn until(&mut self, wanted: &str) -> anyhow::Result<String> {
        loop {
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if shown.contains(wanted) {
                return Ok(shown);
            }
            match tokio::time::timeout(PATIENCE, self.screen.recv()).await {
                Ok(Some(piece)) => self.shown.extend(piece),
                Ok(None) => bail!("it ended without {wanted:?}: {shown}"),
                Err(_) => bail!("it does not show {wanted:?}: {shown}"),
            }
        }
    }

    /// Types a line.
    pub fn enter(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(self.keyboard.write_all(format!("{line}\n").as_bytes())?)
    }

    /// How it ended.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        Ok(tokio::time::timeout(PATIENCE, self.child.wait()).await.context("it does not end")??)
    }
}
