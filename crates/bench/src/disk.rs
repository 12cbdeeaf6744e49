//! What the disk can do: how often it makes a small write safe.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Appends of 4 KiB, each made safe, for about this long.
const TIME: Duration = Duration::from_millis(1500);

/// Safe small writes per second in this folder.
pub(crate) fn syncs_per_second(folder: &Path) -> anyhow::Result<f64> {
    let mut file = File::create(folder.join("disk-speed"))?;
    let page = [7; 4096];
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < TIME {
        file.write_all(&page)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}
