//! Entries go in and come out: order, fences, places, forms.

use gander_domain::{Event, Seq, SessionId, State};
use gander_store::{
    Append, Cursor, DeltaForm, Durability, Epoch, Limit, Store, StoreError, join_decoded_deltas, read_all,
};
use serde_json::json;
use uuid::Uuid;

use crate::conformance::Harness;
use crate::story::Story;

/// Later than anything told, so that every run is compacted.
const LONG_AFTER: gander_domain::Timestamp = gander_domain::Timestamp::from_micros(i64::MAX);

pub async fn entries_come_back_as_written(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn().titled("Tïtle \u{0} 🦆").meta(json!({"door": [1, null, {"x": 1.5}]}));
    story.turn().says_with_meta();
    assert_eq!(story.send(&store).await.unwrap().head, story.head());
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    let store = harness.reopen(store).await;
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    assert_eq!(store.head(story.session).await.unwrap(), story.head());
}

/// As deep as protocols let in, and what entries put around it.
pub async fn deep_values_come_back_as_written(harness: &impl Harness) {
    let store = harness.open().await;
    let deep = (0..140).fold(json!(1), |inner, _| json!([inner]));
    let mut story = Story::new(1);
    story.create(&store).await;
    let delta = State::from_iter([("x".to_owned(), deep.clone())]);
    story.titled("deep").meta(deep).push(Event::StateChanged { delta, call: None });
    story.send(&store).await.unwrap();
    let store = harness.reopen(store).await;
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
}

pub async fn unknown_content_comes_back_as_written(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.push(Event::Unknown(json!({"kind": "from_the_future", "z": 1, "a": [{"kind": "title_set"}], "n": null})));
    story.push(Event::Unknown(json!({"kind": "title_set", "titel": "misspelt"})));
    story.push(Event::Unknown(json!({"no": "kind", "big": u64::MAX, "small": i64::MIN, "float": 0.1})));
    story.create(&store).await;
    let store = harness.reopen(store).await;
    let read = read_all(&store, story.session, DeltaForm::Exact).await.unwrap();
    assert_eq!(read, story.entries);
    let text = |entries: &[gander_domain::Entry]| serde_json::to_string(entries).unwrap();
    assert_eq!(text(&read), text(&story.entries), "also the order of fields is kept");
}

pub async fn gaps_and_duplicates_are_refused(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn();
    let entries = story.fresh();
    let send = async |entries: &[gander_domain::Entry]| {
        store.append(Append::new(story.session, story.epoch, entries.to_vec(), Durability::Relaxed)).await
    };
    let gap = |expected, found| StoreError::Gap { expected: Seq(expected), found: Seq(found) };
    assert_eq!(send(&entries[1..]).await, Err(gap(2, 3)));
    send(&entries[..5]).await.unwrap();
    assert_eq!(send(&entries[..5]).await, Err(gap(7, 2)));
    assert_eq!(send(&[&entries[5..7], &entries[8..]].concat()).await, Err(gap(9, 10)));
    let reversed: Vec<_> = entries[5..].iter().rev().cloned().collect();
    assert_eq!(send(&reversed).await, Err(gap(7, story.head().0)));
    send(&entries[5..]).await.unwrap();
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    let nobody = SessionId::new(Uuid::from_u128(77));
    let append = Append::new(nobody, Epoch::FIRST, vec![], Durability::Relaxed);
    assert_eq!(store.append(append).await, Err(StoreError::NotFound(nobody)));
    let again = Append::new(story.session, Epoch::FIRST, story.entries.clone(), Durability::Relaxed);
    assert_eq!(store.create(again, vec![]).await, Err(StoreError::Exists(story.session)));
}

pub async fn an_old_writer_is_fenced(harness: &impl Harness) {
    let store = harness.open().await;
    let mut old = Story::new(1);
    old.create(&store).await;
    let claim = store.claim(old.session).await.unwrap();
    assert_eq!((claim.epoch, claim.head), (Epoch(2), Seq(1)));
    let mut new = old.clone();
    new.epoch = claim.epoch;
    old.titled("old");
    assert_eq!(old.send(&store).await, Err(StoreError::Fenced { current: Epoch(2) }));
    new.titled("new").send(&store).await.unwrap();
    let store = harness.reopen(store).await;
    assert_eq!(store.claim(old.session).await.unwrap().epoch, Epoch(3));
    assert_eq!(new.titled("again").send(&store).await, Err(StoreError::Fenced { current: Epoch(3) }));
    assert_eq!(read_all(&store, old.session, DeltaForm::Exact).await.unwrap(), new.entries[..2]);
}

pub async fn one_that_does_not_fit_does_not_hold_back_the_others(harness: &impl Harness) {
    let store = harness.open().await;
    let mut stories: Vec<Story> = (1..=20).map(Story::new).collect();
    for story in &mut stories {
        story.create(&store).await;
        story.turn();
    }
    for story in stories.iter().step_by(5) {
        store.claim(story.session).await.unwrap();
    }
    let appends: Vec<_> = stories.iter_mut().map(|story| store.append(story.append(Durability::Barrier))).collect();
    let results = futures::future::join_all(appends).await;
    for (index, (story, result)) in stories.iter().zip(results).enumerate() {
        let read = read_all(&store, story.session, DeltaForm::Exact).await.unwrap();
        if index % 5 == 0 {
            assert_eq!(result, Err(StoreError::Fenced { current: Epoch(2) }));
            assert_eq!(read, story.entries[..1]);
        } else {
            assert_eq!(result.unwrap().head, story.head());
            assert_eq!(read, story.entries);
        }
    }
}

pub async fn resume_from_every_place_gives_the_suffix(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn().send_in_pieces(&store, 7).await;
    story.turn().says_with_meta().send_in_pieces(&store, 100).await;
    check_suffixes(&store, &story).await;
    upkeep(&store).await;
    check_suffixes(&store, &story).await;
    let store = harness.reopen(store).await;
    check_suffixes(&store, &story).await;
}

async fn check_suffixes(store: &impl Store, story: &Story) {
    for after in 0..=story.entries.len() {
        let read = store.read(story.session, Seq(after as u64), Limit::default(), DeltaForm::Exact).await.unwrap();
        assert_eq!(read, story.entries[after..], "after {after}");
    }
}

pub async fn joined_is_exact_after_joining(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn().send_in_pieces(&store, 3).await;
    story.turn().says_with_meta().send(&store).await.unwrap();
    for _ in 0..2 {
        for after in 0..story.entries.len() {
            let read = store.read(story.session, Seq(after as u64), Limit::default(), DeltaForm::Joined).await.unwrap();
            assert_eq!(read, join_decoded_deltas(story.entries[after..].to_vec()), "after {after}");
        }
        upkeep(&store).await;
    }
    let joined = join_decoded_deltas(story.entries.clone()).len();
    assert!(joined < story.entries.len() / 4, "many deltas are few joined entries: {joined}");
}

pub async fn a_limit_bounds_a_read(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn().send(&store).await.unwrap();
    let mut read = Vec::new();
    while read.len() < story.entries.len() {
        let limit = Limit { entries: 3, bytes: 1 << 20 };
        let page = store.read(story.session, Seq(read.len() as u64), limit, DeltaForm::Exact).await.unwrap();
        assert!((1..=3).contains(&page.len()));
        read.extend(page);
    }
    assert_eq!(read, story.entries);
    let nothing = Limit { entries: 0, bytes: 0 };
    let page = store.read(story.session, Seq::ZERO, nothing, DeltaForm::Exact).await.unwrap();
    assert_eq!(page, story.entries[..1], "a reader always gets on");
}

pub async fn a_place_beyond_the_end_is_told(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let truncated = |asked| StoreError::Truncated { asked: Seq(asked), head: Seq(1) };
    let read = async |after| store.read(story.session, Seq(after), Limit::default(), DeltaForm::Exact).await;
    assert_eq!(read(1).await, Ok(vec![]));
    assert_eq!(read(2).await, Err(truncated(2)));
    let incarnation = store.incarnation();
    let validate =
        async |incarnation, seq| store.validate_cursor(story.session, Cursor { incarnation, seq: Seq(seq) }).await;
    assert_eq!(validate(incarnation, 1).await, Ok(Seq(1)));
    assert_eq!(validate(incarnation, 9).await, Err(truncated(9)));
    assert_eq!(validate(incarnation + 1, 1).await, Err(truncated(1)));
    let incarnation_after = harness.reopen(store).await.incarnation();
    assert_eq!(incarnation_after, incarnation, "a clean restart keeps every cursor");
}

pub async fn a_long_session_comes_back_whole(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    while story.entries.len() < 10_000 {
        story.turn();
    }
    story.send_in_pieces(&store, 997).await;
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    assert_eq!(
        read_all(&store, story.session, DeltaForm::Joined).await.map(join_decoded_deltas).unwrap(),
        join_decoded_deltas(story.entries.clone())
    );
}

pub async fn barriers_are_counted(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let before = store.stats();
    story.turn().send(&store).await.unwrap();
    let relaxed = store.stats();
    assert_eq!((relaxed.commits, relaxed.barriers), (before.commits + 1, before.barriers));
    assert_eq!(relaxed.entries - before.entries, story.entries.len() as u64 - 1);
    assert_eq!(relaxed.deltas - before.deltas, 46);
    store.append(story.titled("kept").append(Durability::Barrier)).await.unwrap();
    let barrier = store.stats();
    assert_eq!((barrier.commits, barrier.barriers), (relaxed.commits + 1, relaxed.barriers + 1));
}

async fn upkeep(store: &impl Store) {
    while store.maintain(LONG_AFTER).await.unwrap().more {}
}
