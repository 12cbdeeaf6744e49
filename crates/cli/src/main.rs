//! The `gander` binary.

mod commands;
mod output;
mod terminal;
mod trace;

use std::process::ExitCode;

use commands::Allocator;

/// Many small things are made and dropped on many threads: a seventh less work per short run than with the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    give_back::keep_no_large_blocks();
    commands::main(Allocator { collect_thread: give_back::collect_thread, trim_process: give_back::trim_process })
}

/// What no crate wraps. None of these takes or gives a pointer, and all may be called at any time.
#[allow(unsafe_code)]
mod give_back {
    unsafe extern "C" {
        safe fn mi_collect(force: bool);
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        safe fn mallopt(parameter: i32, value: i32) -> i32;
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        safe fn malloc_trim(pad: usize) -> i32;
    }

    /// SQLite has the system's allocator. That learns to keep large blocks, up to 64 MiB for each thread and for good,
    /// unless it is told from which size on a block goes back to the system at once.
    pub(super) fn keep_no_large_blocks() {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            const M_MMAP_THRESHOLD: i32 = -3;
            mallopt(M_MMAP_THRESHOLD, 512 << 10);
        }
    }

    /// What this thread freed goes back to the system.
    pub(super) fn collect_thread() {
        mi_collect(true);
    }

    /// The same for SQLite.
    pub(super) fn trim_process() {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        malloc_trim(0);
    }
}
