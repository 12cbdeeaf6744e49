//! What lies beside the entries: snapshots, names, tombstones, scopes, runs and questions.

use gander_domain::{Outcome, Principal, QuestionOrigin, Seq, StopReason, Timestamp};
use gander_store::{
    Alias, Append, DeltaForm, Durability, Epoch, Health, Limit, QuestionRow, RunState, ScopeAppend, ScopeEntry,
    SessionStatus, Snapshot, Store, StoreError, sessions_of,
};
use serde_json::json;

use crate::conformance::Harness;
use crate::story::Story;

pub async fn snapshots_are_found_by_place_and_version(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let snapshot = |version, seq| Snapshot { version, seq: Seq(seq), body: vec![0, 255, version as u8, seq as u8] };
    for (version, seq) in [(1, 2), (1, 3), (2, 4)] {
        let append = story.titled("t").append(Durability::Relaxed);
        store.append(Append { snapshot: Some(snapshot(version, seq)), ..append }).await.unwrap();
    }
    let store = harness.reopen(store).await;
    let find = async |version, upto| store.snapshot(story.session, version, Seq(upto)).await.unwrap();
    assert_eq!(find(1, 1).await, None);
    assert_eq!(find(1, 2).await, Some(snapshot(1, 2)));
    assert_eq!(find(1, u64::MAX).await, Some(snapshot(1, 3)));
    assert_eq!(find(2, 3).await, None);
    assert_eq!(find(2, 4).await, Some(snapshot(2, 4)));
}

pub async fn names_lead_to_sessions_until_they_are_freed(harness: &impl Harness) {
    let store = harness.open().await;
    let (mut one, mut two) = (Story::new(1), Story::new(2));
    let append = one.append(Durability::Barrier);
    store.create(append, vec![name("a"), name("b")]).await.unwrap();
    two.create(&store).await;
    store.set_alias(name("c"), two.session).await.unwrap();
    store.set_alias(name("c"), two.session).await.unwrap();
    assert_eq!(store.set_alias(name("a"), two.session).await, Err(StoreError::AliasTaken(one.session)));
    let store = harness.reopen(store).await;
    assert_eq!(store.resolve_alias(&name("a")).await.unwrap(), Some(one.session));
    assert_eq!(store.resolve_alias(&name("c")).await.unwrap(), Some(two.session));
    let stranger = Alias { principal: Principal::named("eve"), ..name("a") };
    assert_eq!(store.resolve_alias(&stranger).await.unwrap(), None);
    assert_eq!(store.aliases(one.session).await.unwrap(), [name("a"), name("b")]);
    assert!(store.remove_alias(&name("a")).await.unwrap());
    assert!(!store.remove_alias(&name("a")).await.unwrap());
    store.set_alias(name("a"), two.session).await.unwrap();
    assert_eq!(store.resolve_alias(&name("a")).await.unwrap(), Some(two.session));
}

pub async fn names_of_one_namespace_are_listed_in_pages(harness: &impl Harness) {
    let store = harness.open().await;
    let (mut one, mut two) = (Story::new(1), Story::new(2));
    let mine = ["b", "a", "\u{e4}", "B", "z", "a/b"].map(name);
    store.create(one.append(Durability::Barrier), mine[..4].to_vec()).await.unwrap();
    store.create(two.append(Durability::Barrier), mine[4..].to_vec()).await.unwrap();
    let strangers = [
        Alias { principal: Principal::named("eve"), ..name("c") },
        Alias { door: "goose".into(), ..name("d") },
        Alias { namespace: "app/user2".into(), ..name("e") },
    ];
    for stranger in strangers {
        store.set_alias(stranger, one.session).await.unwrap();
    }
    let store = harness.reopen(store).await;
    let owner = Principal::owner();
    let listed = async |after: Option<String>, limit| {
        store.aliases_in(&owner, "adk", "app/user", after.as_deref(), limit).await.unwrap()
    };
    let found = |text: &str, story: &Story| (text.to_owned(), story.session);
    let all = [
        found("B", &one),
        found("a", &one),
        found("a/b", &two),
        found("b", &one),
        found("z", &two),
        found("\u{e4}", &one),
    ];
    assert_eq!(listed(None, 100).await, all, "in the order of their bytes, of this namespace alone");
    for size in 1..=all.len() {
        let (mut pages, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = listed(after, u32::try_from(size).unwrap()).await;
            assert!(page.len() <= size);
            after = page.last().map(|(last, _)| last.clone());
            if after.is_none() {
                break;
            }
            pages.extend(page);
        }
        assert_eq!(pages, all, "in pages of {size}");
    }
    assert_eq!(listed(Some("b/".to_owned()), 1).await, all[4..5], "after a name that is not there");
    assert!(store.remove_alias(&name("a")).await.unwrap());
    store.delete(two.session, Timestamp::from_micros(5)).await.unwrap();
    assert_eq!(listed(None, 100).await, [all[0].clone(), all[3].clone(), all[5].clone()], "without what is gone");
    assert_eq!(store.aliases_in(&owner, "adk", "app/nobody", None, 9).await.unwrap(), []);
}

pub async fn a_taken_name_creates_nothing(harness: &impl Harness) {
    let store = harness.open().await;
    let (mut one, mut two, mut three) = (Story::new(1), Story::new(2), Story::new(3));
    let (first, second) = (one.append(Durability::Barrier), two.append(Durability::Barrier));
    store.create(first, vec![name("a")]).await.unwrap();
    let (taken, other) = tokio::join!(
        store.create(second.clone(), vec![name("b"), name("a")]),
        store.create(three.append(Durability::Relaxed), vec![])
    );
    assert_eq!(taken, Err(StoreError::AliasTaken(one.session)));
    assert_eq!(other.unwrap().head, Seq(1));
    assert_eq!(store.head(two.session).await, Err(StoreError::NotFound(two.session)));
    assert_eq!(store.resolve_alias(&name("b")).await.unwrap(), None);
    store.create(second, vec![name("b")]).await.unwrap();
    let nameless = Append::new(Story::new(4).session, Epoch::FIRST, vec![], Durability::Relaxed);
    assert!(matches!(store.create(nameless, vec![]).await, Err(StoreError::Invalid(_))));
}

pub async fn a_deleted_session_leaves_only_its_id(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    let run = story.run();
    let append = story.append(Durability::Barrier);
    store.create(append.clone(), vec![name("a")]).await.unwrap();
    story.opens().says("secret").closes().ends().send(&store).await.unwrap();
    store.delete(story.session, Timestamp::from_micros(5)).await.unwrap();
    let gone = StoreError::Deleted(story.session);
    for round in 0..2 {
        let read = store.read(story.session, Seq::ZERO, Limit::default(), DeltaForm::Exact).await;
        assert_eq!(read, Err(gone.clone()), "round {round}");
        assert_eq!(store.head(story.session).await, Err(gone.clone()));
        assert_eq!(store.session_summary(story.session).await, Err(gone.clone()));
        assert_eq!(store.claim(story.session).await, Err(gone.clone()));
        assert_eq!(store.deleted_owner(story.session).await.unwrap(), Some(Principal::owner()));
        assert_eq!(store.delete(story.session, Timestamp::from_micros(6)).await, Err(gone.clone()));
        assert_eq!(store.create(append.clone(), vec![]).await, Err(gone.clone()), "an id is used once");
        assert_eq!(store.run(run).await.unwrap(), None);
        assert_eq!(store.resolve_alias(&name("a")).await.unwrap(), None);
        assert_eq!(store.sessions(sessions_of(Principal::owner())).await.unwrap().sessions, []);
        while store.maintain(Timestamp::from_micros(i64::MAX)).await.unwrap().more {}
    }
    let mut other = Story::new(2);
    let append = other.append(Durability::Barrier);
    store.create(append, vec![name("a")]).await.unwrap();
    assert_eq!(store.deleted_owner(other.session).await.unwrap(), None);
}

pub async fn scopes_are_logs_of_their_own(harness: &impl Harness) {
    let store = harness.open().await;
    let append = |scope: &str, after, facts: &[i32]| {
        let facts = facts.iter().map(|fact| json!({ "fact": fact })).collect();
        ScopeAppend { scope: scope.to_owned(), at: Timestamp::from_micros(7), facts, after }
    };
    assert_eq!(store.append_scope(append("user/anna", None, &[1, 2]), Durability::Barrier).await, Ok(Seq(2)));
    assert_eq!(store.append_scope(append("user/bob", Some(Seq(0)), &[9]), Durability::Relaxed).await, Ok(Seq(1)));
    let stale = store.append_scope(append("user/anna", Some(Seq(1)), &[3]), Durability::Barrier).await;
    assert_eq!(stale, Err(StoreError::Gap { expected: Seq(3), found: Seq(2) }));
    let store = harness.reopen(store).await;
    assert_eq!(store.append_scope(append("user/anna", Some(Seq(2)), &[3]), Durability::Barrier).await, Ok(Seq(3)));
    let entry =
        |seq, fact: i32| ScopeEntry { seq: Seq(seq), at: Timestamp::from_micros(7), fact: json!({ "fact": fact }) };
    assert_eq!(store.read_scope("user/anna", Seq(0), 10).await.unwrap(), [entry(1, 1), entry(2, 2), entry(3, 3)]);
    assert_eq!(store.read_scope("user/anna", Seq(1), 1).await.unwrap(), [entry(2, 2)]);
    store.append_scope(append("users", None, &[1]), Durability::Relaxed).await.unwrap();
    let named = |name: &str| (name.to_owned(), Timestamp::from_micros(7));
    assert_eq!(store.scopes("user/", None, 9).await.unwrap(), [named("user/anna"), named("user/bob")]);
    assert_eq!(store.scopes("user/", None, 1).await.unwrap(), [named("user/anna")]);
    assert_eq!(store.scopes("user/", Some("user/anna"), 9).await.unwrap(), [named("user/bob")]);
    assert_eq!(store.scopes("nobody", None, 9).await.unwrap(), []);
    store.delete_scope("user/anna").await.unwrap();
    assert_eq!(store.read_scope("user/anna", Seq(0), 10).await.unwrap(), []);
    assert_eq!(store.read_scope("user/bob", Seq(0), 10).await.unwrap(), [entry(1, 9)]);
    assert_eq!(store.append_scope(append("user/anna", None, &[4]), Durability::Relaxed).await, Ok(Seq(1)));
}

async fn read(store: &impl Store, scope: &str, after: u64) -> Vec<(u64, serde_json::Value)> {
    let entries = store.read_scope(scope, Seq(after), 10).await.unwrap();
    entries.into_iter().map(|entry| (entry.seq.0, entry.fact)).collect()
}

pub async fn a_shortened_scope_goes_on_from_its_place(harness: &impl Harness) {
    let store = harness.open().await;
    let append = |scope: &str, after, facts: &[i32]| {
        let facts = facts.iter().map(|fact| json!(fact)).collect();
        ScopeAppend { scope: scope.to_owned(), at: Timestamp::from_micros(7), facts, after }
    };
    let at = Timestamp::from_micros(7);
    for scope in ["a", "b"] {
        store.append_scope(append(scope, None, &[1, 2, 3, 4]), Durability::Barrier).await.unwrap();
    }
    store.compact_scope("a", Seq(3), at, json!("1 to 3")).await.unwrap();
    let short = [(3, json!("1 to 3")), (4, json!(4))];
    assert_eq!(read(&store, "a", 0).await, short);
    assert_eq!(read(&store, "a", 2).await, short, "who had read less reads it whole");
    assert_eq!(read(&store, "a", 3).await, short[1..]);
    assert_eq!(read(&store, "b", 0).await.len(), 4, "no other is touched");
    // Nothing happens where the entry is gone, or is another one.
    store.compact_scope("a", Seq(2), at, json!("late")).await.unwrap();
    store.compact_scope("a", Seq(4), Timestamp::from_micros(8), json!("another")).await.unwrap();
    store.compact_scope("nobody", Seq(1), at, json!("nothing")).await.unwrap();
    let store = harness.reopen(store).await;
    assert_eq!(read(&store, "a", 0).await, short);
    assert_eq!(store.append_scope(append("a", Some(Seq(4)), &[5]), Durability::Barrier).await, Ok(Seq(5)));
    store.compact_scope("a", Seq(5), at, json!("all")).await.unwrap();
    assert_eq!(read(&store, "a", 0).await, [(5, json!("all"))]);
    assert_eq!(store.append_scope(append("a", None, &[6]), Durability::Relaxed).await, Ok(Seq(6)));
}

pub async fn scope_facts_share_their_sessions_fate(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let scope = |scope: &str, after| ScopeAppend {
        scope: scope.to_owned(),
        at: Timestamp::default(),
        facts: vec![json!(1), json!(2)],
        after,
    };
    let append = story.titled("with facts").append(Durability::Barrier);
    let together =
        Append { scopes: vec![scope("a", None), scope("b", Some(Seq(0))), scope("a", Some(Seq(2)))], ..append };
    store.append(together.clone()).await.unwrap();
    assert!(matches!(store.append(together).await, Err(StoreError::Gap { .. })));
    let append = story.titled("refused").append(Durability::Barrier);
    let refused = Append { scopes: vec![scope("a", None), scope("b", Some(Seq(7)))], ..append };
    assert!(matches!(store.append(refused).await, Err(StoreError::Gap { .. })));
    assert_eq!(store.read_scope("a", Seq(0), 10).await.unwrap().len(), 4);
    assert_eq!(store.read_scope("b", Seq(0), 10).await.unwrap().len(), 2);
    assert_eq!(store.head(story.session).await.unwrap(), Seq(2));
}

pub async fn runs_and_questions_follow_the_log(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let run = story.run();
    let first = story.head();
    let waiting = story.queued();
    let state = async |run| store.run(run).await.unwrap().map(|row| row.state);
    story.send(&store).await.unwrap();
    assert_eq!((state(run).await, state(waiting).await), (Some(RunState::Running), Some(RunState::Queued)));
    let aside = story.asks_from(QuestionOrigin::NonBlocking);
    story.send(&store).await.unwrap();
    assert_eq!(state(run).await, Some(RunState::Running), "it goes on without the answer");
    assert_eq!(store.session_summary(story.session).await.unwrap().state, SessionStatus::Running);
    assert_eq!(store.question(aside).await.unwrap().map(|row| (row.session, row.run)), Some((story.session, None)));
    let question = story.asks();
    let other = story.asks();
    let asked = story.head();
    story.send(&store).await.unwrap();
    assert_eq!(state(run).await, Some(RunState::Awaiting));
    let open: Vec<_> = store.open_runs(None, 10).await.unwrap();
    assert_eq!(open.iter().map(|row| row.run).collect::<Vec<_>>(), [run, waiting]);
    assert_eq!(open[0].first, first);
    let rest = store.open_runs(Some((run, story.session)), 10).await.unwrap();
    assert_eq!(rest.iter().map(|row| row.run).collect::<Vec<_>>(), [waiting]);
    let held = story.asks_from(QuestionOrigin::Held);
    story.send(&store).await.unwrap();
    let picked_up = async || store.open_runs(None, 1).await.unwrap()[0].state.clone();
    assert_eq!((state(run).await, picked_up().await), (Some(RunState::Awaiting), RunState::Running));
    story.answers(held).send(&store).await.unwrap();
    assert_eq!(picked_up().await, RunState::Awaiting, "it waits for people alone");
    story.answers(question).send(&store).await.unwrap();
    assert_eq!(state(run).await, Some(RunState::Awaiting), "one question is open");
    story.answers(other).send(&store).await.unwrap();
    assert_eq!(state(run).await, Some(RunState::Running));
    let answered = Some(story.head());
    let row = QuestionRow { question: other, session: story.session, run: Some(run), asked, answered, held: false };
    assert_eq!(store.question(other).await.unwrap(), Some(row));
    story.ends().send(&store).await.unwrap();
    let store = harness.reopen(store).await;
    let ended = RunState::Ended(story.head(), Outcome::Completed { stop: StopReason::EndTurn });
    assert_eq!(store.run(run).await.unwrap().map(|row| row.state), Some(ended));
    let open = store.open_runs(None, 10).await.unwrap();
    assert_eq!(open.iter().map(|row| row.run).collect::<Vec<_>>(), [waiting]);
}

pub async fn folds_can_be_made_again(harness: &impl Harness) {
    let store = harness.open().await;
    let mut stories: Vec<Story> = (1..=5).map(Story::new).collect();
    let mut runs = Vec::new();
    let mut questions = Vec::new();
    for story in &mut stories {
        story.create(&store).await;
        story.titled("Títle").turn().turn();
        runs.extend([story.run(), story.queued()]);
        questions.extend([story.asks(), story.asks()]);
        story.answers(questions[questions.len() - 1]).send_in_pieces(&store, 9).await;
    }
    store.delete(stories[4].session, Timestamp::default()).await.unwrap();
    while store.maintain(Timestamp::from_micros(i64::MAX)).await.unwrap().more {}
    let before = folds(&store, &runs, &questions).await;
    assert_eq!(store.rebuild_folds().await.unwrap(), 4);
    assert_eq!(folds(&store, &runs, &questions).await, before);
}

async fn folds(
    store: &impl Store,
    runs: &[gander_domain::RunId],
    questions: &[gander_domain::QuestionId],
) -> Vec<String> {
    let mut all = vec![format!("{:?}", store.sessions(sessions_of(Principal::owner())).await.unwrap())];
    for run in runs {
        all.push(format!("{:?}", store.run(*run).await.unwrap()));
    }
    for question in questions {
        all.push(format!("{:?}", store.question(*question).await.unwrap()));
    }
    all.push(format!("{:?}", store.open_runs(None, 1000).await.unwrap()));
    all
}

pub async fn a_closed_store_says_so(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    assert_eq!(store.health().await, Health::Ready);
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(story.titled("late").send(&store).await, Err(StoreError::Closed));
    assert_eq!(store.head(story.session).await, Err(StoreError::Closed));
}

fn name(text: &str) -> Alias {
    Alias { principal: Principal::owner(), door: "adk".into(), namespace: "app/user".into(), text: text.to_owned() }
}
