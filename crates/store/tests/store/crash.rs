//! A process that is killed in mid-write loses nothing that it acknowledged.
//!
//! The test starts itself again as the writer, which prints every acknowledged place, and kills it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use gander_domain::{Entry, Seq};
use gander_store::{Append, DeltaForm, Durability, SqliteStore, Store, StoreOptions, read_all};

use crate::story::Story;

const DIRECTORY: &str = "GANDER_TEST_CRASH_DIRECTORY";
const KILLS: u64 = 12;

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        return write_for_ever(Path::new(&directory)).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut incarnation = None;
    for kill in 0..KILLS {
        let acknowledged = run_and_kill(directory.path(), 3 + kill * 7);
        let store = SqliteStore::open(StoreOptions::new(directory.path())).await.unwrap();
        let expected = tale();
        let read = read_all(&store, expected.session, DeltaForm::Exact).await.unwrap();
        assert!(read.len() as u64 >= acknowledged, "kill {kill}: {} of {acknowledged} are there", read.len());
        assert_eq!(read, expected.entries[..read.len()], "kill {kill}");
        assert_eq!(*incarnation.get_or_insert(store.incarnation()), store.incarnation(), "cursors outlive a kill");
        store.close().await.unwrap();
    }
}

/// Starts the writer, waits for some acknowledgements, kills it; gives the last acknowledged place.
fn run_and_kill(directory: &Path, acknowledgements: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::what_was_acknowledged_survives_a_kill", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut places = lines.filter_map(|line| line.strip_prefix("acknowledged ").map(|place| place.parse().unwrap()));
    let mut last = 0;
    for _ in 0..acknowledgements {
        last = places.next().expect("the writer goes on until it is killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    places.last().unwrap_or(last)
}

/// Goes on with the tale where the log ends.
async fn write_for_ever(directory: &Path) {
    let store = SqliteStore::open(StoreOptions::new(directory)).await.unwrap();
    let tale = tale();
    let (epoch, head) = match store.claim(tale.session).await {
        Ok(claim) => (claim.epoch, claim.head),
        Err(_) => {
            let birth = Append::new(tale.session, tale.epoch, tale.entries[..1].to_vec(), Durability::Barrier);
            (tale.epoch, store.create(birth, vec![]).await.unwrap().head)
        }
    };
    for piece in tale.entries[head.0 as usize..].chunks(5) {
        let sync = if piece.iter().all(|entry: &Entry| entry.event.is_delta()) {
            Durability::Relaxed
        } else {
            Durability::Barrier
        };
        let Seq(place) = store.append(Append::new(tale.session, epoch, piece.to_vec(), sync)).await.unwrap().head;
        println!("acknowledged {place}");
    }
}

/// The same long session every time.
fn tale() -> Story {
    let mut story = Story::new(1);
    (0..600).for_each(|_| {
        story.turn();
    });
    story
}
