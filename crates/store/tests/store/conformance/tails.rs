//! Those who follow a session see what is stored, in order, and nothing else.

use std::sync::Arc;

use gander_domain::{Entry, Principal, Seq, SessionId, Timestamp};
use gander_store::{Append, DeltaForm, Durability, Limit, Store, StoreError, Tail, TailEvent, read_all};

use crate::conformance::Harness;
use crate::story::Story;

pub async fn the_tail_gives_exactly_what_was_written(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let tail = store.subscribe(story.session);
    for _ in 0..5 {
        let before = story.head();
        story.turn().send(&store).await.unwrap();
        let TailEvent::Live(fresh) = tail.next(before).await else { panic!("one turn fits into the tail") };
        assert_eq!(fresh.iter().cloned().collect::<Vec<_>>(), story.entries[before.0 as usize..]);
    }
}

pub async fn live_equals_stored(harness: &impl Harness) {
    let store = Arc::new(harness.open().await);
    let mut story = Story::new(1);
    story.create(&*store).await;
    (0..20).for_each(|_| {
        story.turn();
    });
    let (session, head) = (story.session, story.head());
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (store, tail) = (Arc::clone(&store), store.subscribe(session));
            tokio::spawn(async move { follow(&*store, &tail, session, head).await })
        })
        .collect();
    story.send_in_pieces(&*store, 11).await;
    for reader in readers {
        assert_eq!(reader.await.unwrap(), story.entries);
    }
    assert_eq!(read_all(&*store, session, DeltaForm::Exact).await.unwrap(), story.entries);
}

/// Reads the log until it is dry, then lives on the tail.
async fn follow(store: &impl Store, tail: &Tail, session: SessionId, until: Seq) -> Vec<Entry> {
    let mut seen = read_all(store, session, DeltaForm::Exact).await.unwrap();
    while seen.last().is_none_or(|entry| entry.seq < until) {
        let place = seen.last().map_or(Seq::ZERO, |entry| entry.seq);
        match tail.next(place).await {
            TailEvent::Live(fresh) => {
                seen.extend(fresh.iter().cloned());
                assert_eq!(seen.last().map(|entry| entry.seq), Some(fresh.last_seq()));
            }
            TailEvent::Behind => {
                seen.extend(store.read(session, place, Limit::default(), DeltaForm::Exact).await.unwrap());
            }
            TailEvent::Ended | TailEvent::Failed(_) | TailEvent::Truncated => panic!("the session goes on"),
        }
    }
    seen
}

pub async fn what_is_shown_can_be_read(harness: &impl Harness) {
    let store = Arc::new(harness.open().await);
    let mut story = Story::new(1);
    story.create(&*store).await;
    let (session, tail, reading) = (story.session, store.subscribe(story.session), Arc::clone(&store));
    let reader = tokio::spawn(async move {
        let mut place = Seq(1);
        while place < Seq(300) {
            let next = tail.next(place).await;
            let read = reading.read(session, place, Limit::default(), DeltaForm::Exact).await.unwrap();
            let shown: Vec<Entry> = match next {
                TailEvent::Live(fresh) => fresh.iter().cloned().collect(),
                TailEvent::Behind => read.clone(),
                TailEvent::Ended | TailEvent::Failed(_) | TailEvent::Truncated => panic!("the session goes on"),
            };
            assert_eq!(read[..shown.len()], shown);
            place = shown.last().unwrap().seq;
        }
    });
    while story.head() < Seq(300) {
        story.titled("again").send(&*store).await.unwrap();
    }
    reader.await.unwrap();
}

pub async fn a_reader_that_never_reads_changes_nothing(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let sleepers: Vec<Tail> = (0..100).map(|_| store.subscribe(story.session)).collect();
    let awake = store.subscribe(story.session);
    for _ in 0..200 {
        let before = story.head();
        story.turn().send(&store).await.unwrap();
        let TailEvent::Live(fresh) = awake.next(before).await else { panic!("it keeps up") };
        assert_eq!(fresh.last_seq(), story.head());
    }
    let Some(TailEvent::Behind) = sleepers[0].peek_event(Seq(1)) else { panic!("what it missed is not kept for it") };
    assert!(sleepers[0].peek_event(story.head()).is_none(), "at the end there is nothing to tell");
    let read = read_all(&store, story.session, DeltaForm::Exact).await.unwrap();
    assert_eq!(read, story.entries);
}

pub async fn what_is_big_is_read_from_the_log(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let tail = store.subscribe(story.session);
    story.titled(&"big ".repeat(100_000)).send(&store).await.unwrap();
    assert!(matches!(tail.next(Seq(1)).await, TailEvent::Behind));
    story.titled("small").send(&store).await.unwrap();
    let TailEvent::Live(fresh) = tail.next(Seq(2)).await else { panic!("small ones are live") };
    assert_eq!(fresh.iter().cloned().collect::<Vec<_>>(), story.entries[2..]);
}

pub async fn a_tail_ends_with_its_session(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let tail = store.subscribe(story.session);
    store.delete(story.session, story.entries[0].at).await.unwrap();
    assert!(matches!(tail.next(Seq(1)).await, TailEvent::Ended));
    let append = story.titled("late").append(Durability::Relaxed);
    assert_eq!(store.append(append).await, Err(StoreError::Deleted(story.session)));
}

pub async fn a_tail_ends_with_its_store(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let tail = store.subscribe(story.session);
    store.close().await.unwrap();
    assert!(matches!(tail.next(Seq(1)).await, TailEvent::Ended));
}

pub async fn a_change_wakes_only_those_who_watch_its_owner(harness: &impl Harness) {
    let store = harness.open().await;
    let [owner, guest] = [Principal::owner(), Principal::named("guest")];
    let mut watches = [store.changes(&owner), store.changes(&guest)];
    let mut woken = || {
        watches.each_mut().map(|watch| {
            let changed = watch.has_changed().unwrap();
            watch.mark_unchanged();
            changed
        })
    };
    let mut story = Story::owned(1, guest.clone(), "/workspace");
    story.create(&store).await;
    assert_eq!(woken(), [false, true], "a session was created");
    story.turn();
    let entries = story.entries[1..].to_vec();
    let mut append = Append::new(story.session, story.epoch, entries, Durability::Relaxed);
    append.owner = Some(guest);
    store.append(append).await.unwrap();
    assert_eq!(woken(), [false, true], "a turn was stored");
    store.delete(story.session, Timestamp::from_micros(0)).await.unwrap();
    assert_eq!(woken(), [false, true], "it was deleted");
}
