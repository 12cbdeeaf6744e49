//! Which secret files were opened: what reads one may show it in a form in which nobody finds it again.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

use crate::tree::Tree;

/// Secret files that the product itself does not look at while commands run, and files beside the workspace.
const WATCHED: [&str; 13] = [
    "ws/.env",
    "ws/.ENV.local",
    "ws/config/.env.production",
    "ws/config/prod.env",
    "ws/deploy/server.pem",
    "ws/deploy/server.key",
    "ws/id_rsa",
    "ws/.aws/credentials",
    "ws/.ssh/config",
    "ws/credentials.json",
    "outside/private.txt",
    "outside/folder/deep.rs",
    "home/.ssh/id_rsa",
];

/// ContextFiles who is opened from now on.
pub struct Opened {
    notes: OwnedFd,
    watched: Vec<(i32, PathBuf)>,
}

impl Opened {
    pub fn from_now_on(tree: &Tree) -> Self {
        let notes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let watch = |name: &str| (inotify::add_watch(&notes, tree.at(name), WatchFlags::OPEN).unwrap(), tree.at(name));
        let watched = WATCHED.into_iter().map(watch).collect();
        Self { notes, watched }
    }

    /// The first of them, if there is one.
    pub fn first(self) -> Option<PathBuf> {
        let mut room = [MaybeUninit::uninit(); 512];
        let number = Reader::new(self.notes, &mut room).next().ok()?.wd();
        self.watched.into_iter().find(|(watched, _)| *watched == number).map(|(_, path)| path)
    }
}
