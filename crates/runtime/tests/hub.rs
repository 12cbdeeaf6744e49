//! The hub with a back-end of the test's own, over the model store.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use gander_domain::caller::Caller;
use gander_domain::{
    Accepted, ChoiceKind, Command, CommandError, Delta, DeltaKind, Event, IfBusy, Order, Outcome, Part, Question,
    QuestionOrigin, Recovery, Reply, Report, RunId, Seq, SessionId, StopReason, ToolEnd, ToolGate, ToolResult,
};
use gander_runtime::backend::{Backend, BackendRun, ClientResources};
use gander_runtime::hub::{Ack, Hub, HubError, StartedSession};
use gander_store::{Alias, DeltaForm, MemoryStore, SqliteStore, Store as _, StoreError, StoreOptions, read_all};
use gander_testkit::build;
use tokio::sync::Notify;

type Part1 = Arc<dyn Fn(BackendRun) -> BoxFuture<'static, ()> + Send + Sync>;

/// A back-end that does what a test says.
struct Scripted(Part1);

#[async_trait]
impl Backend for Scripted {
    async fn drive(&self, backend_run: BackendRun) {
        (self.0)(backend_run).await;
    }
}

const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

fn hub<F, W>(store: &Arc<MemoryStore>, part: F) -> Hub
where
    F: Fn(BackendRun) -> W + Send + Sync + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let part: Part1 = Arc::new(move |backend_run| Box::pin(part(backend_run)));
    Hub::new(Arc::clone(store) as _, Arc::new(Scripted(part)), Recovery::default())
}

async fn session(hub: &Hub) -> SessionId {
    hub.create_session(&Caller::local_owner(), build::birth(build::session(1)), Vec::new()).await.unwrap().session
}

fn prompt(n: u128) -> Command {
    let (run, origin, parts) = (build::run(n), build::origin(), vec![Part::text("hello")]);
    Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta: None }
}

fn text(text: &str) -> Report {
    Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: text.to_owned() }])
}

/// Follows the log until the run ends.
async fn until_end(hub: &Hub, session: SessionId, run: RunId) -> Vec<Event> {
    let mut follower = hub.follow_session(session, Seq::ZERO, DeltaForm::Exact);
    let mut events = Vec::new();
    loop {
        let batch = match follower.next_stored().await.unwrap() {
            Some(batch) => batch,
            None => follower.next_batch().await.unwrap().unwrap(),
        };
        for entry in batch.iter() {
            events.push(entry.event.clone());
            if matches!(entry.event, Event::RunEnded { .. }) && entry.run == Some(run) {
                return events;
            }
        }
    }
}

async fn until_rest(hub: &Hub) {
    while hub.active_sessions() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_turn_streams_and_the_session_rests_afterwards() {
    let store = Arc::new(MemoryStore::new());
    let hub = hub(&store, |backend_run| async move {
        for word in ["a", "b", "c"] {
            backend_run.reports.send(text(word)).await.unwrap();
        }
        backend_run.reports.send(END).await.unwrap();
    });
    let session = session(&hub).await;
    let accepted = hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await;
    assert_eq!(accepted, Ok(Accepted::Started(build::run(7))));
    let events = until_end(&hub, session, build::run(7)).await;
    assert!(matches!(events.last(), Some(Event::RunEnded { outcome: Outcome::Completed { .. } })));
    until_rest(&hub).await;
    let stored = read_all(&*store, session, DeltaForm::Exact).await.unwrap();
    assert_eq!(stored.into_iter().map(|entry| entry.event).collect::<Vec<_>>(), events);
    let repeated = hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await;
    assert_eq!(repeated, Ok(Accepted::Repeated(build::run(7))));
}

#[tokio::test]
async fn an_awaiting_session_owns_no_task_and_its_answer_resumes_it() {
    let store = Arc::new(MemoryStore::new());
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let hub = hub(&store, move |mut backend_run| {
        let count = Arc::clone(&count);
        async move {
            let call = build::shell(build::call_id(1));
            if backend_run.context.pending.is_empty() && backend_run.view.run.as_ref().unwrap().tools.is_empty() {
                let gate = ToolGate::Ask(build::permission(build::question_id(1), call.id));
                backend_run.reports.send(Report::ToolWanted { call, gate }).await.unwrap();
                return backend_run.reports.send(Report::Parked).await.unwrap();
            }
            assert_eq!(backend_run.orders.recv().await, Some(Order::Resume { run: backend_run.run }));
            backend_run.reports.send(Report::ToolReady { call: call.id }).await.unwrap();
            assert_eq!(backend_run.orders.recv().await, Some(Order::RunTool { call: call.id }));
            count.fetch_add(1, Ordering::SeqCst);
            let result = ToolResult::text(ToolEnd::Completed, "done");
            backend_run.reports.send(Report::ToolDone { call: call.id, result }).await.unwrap();
            backend_run.reports.send(END).await.unwrap();
        }
    });
    let session = session(&hub).await;
    hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    until_rest(&hub).await;
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let owner = Caller::local_owner();
    let answer = || {
        let reply = Reply::Chosen { choice: "allow".to_owned(), kind: ChoiceKind::AllowOnce };
        let command = Command::Answer { question: build::question_id(1), reply, origin: build::origin(), meta: None };
        hub.execute_command(&owner, session, command, Ack::Synced)
    };
    let (first, second) = tokio::join!(answer(), answer());
    let expected = HubError::Refused(CommandError::NoSuchQuestion(build::question_id(1)));
    assert_eq!([first, second].into_iter().filter_map(Result::err).collect::<Vec<_>>(), [expected]);
    until_end(&hub, session, build::run(7)).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1, "answered twice at once, run once");
}

/// The answer's commit takes a moment; a back-end that parked takes another to be gone. Either may come first.
#[tokio::test]
async fn a_parked_back_end_may_leave_while_its_answer_is_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(StoreOptions::new(folder.path().join("data"))).await.unwrap());
    let round = Arc::new(AtomicUsize::new(0));
    let rounds = Arc::clone(&round);
    let part: Part1 = Arc::new(move |backend_run: BackendRun| {
        let pause = Duration::from_micros(500 * rounds.load(Ordering::SeqCst) as u64);
        Box::pin(async move {
            if backend_run.view.run.as_ref().unwrap().tools.is_empty() {
                let call = build::shell(build::call_id(1));
                let gate = ToolGate::Ask(build::permission(build::question_id(1), call.id));
                backend_run.reports.send(Report::ToolWanted { call, gate }).await.unwrap();
                tokio::time::sleep(pause).await;
                return backend_run.reports.send(Report::Parked).await.unwrap();
            }
            backend_run.reports.send(END).await.unwrap();
        })
    });
    let hub = Hub::new(store as _, Arc::new(Scripted(part)), Recovery::default());
    let session = session(&hub).await;
    for number in 0..40_u8 {
        round.store(number.into(), Ordering::SeqCst);
        let run = u128::from(number) + 1;
        hub.execute_command(&Caller::local_owner(), session, prompt(run), Ack::Committed).await.unwrap();
        let reply = Reply::Chosen { choice: "allow".to_owned(), kind: ChoiceKind::AllowOnce };
        let command = Command::Answer { question: build::question_id(1), reply, origin: build::origin(), meta: None };
        while hub.execute_command(&Caller::local_owner(), session, command.clone(), Ack::Synced).await.is_err() {
            tokio::task::yield_now().await;
        }
        let events = until_end(&hub, session, build::run(run)).await;
        let end = events.last();
        assert!(matches!(end, Some(Event::RunEnded { outcome: Outcome::Completed { .. } })), "round {number}: {end:?}");
    }
}

/// Asks twice and parks; then goes on until it is told to stop.
async fn asks_twice(mut backend_run: BackendRun) {
    let asked = |n| {
        let call = build::shell(build::call_id(n));
        let gate = ToolGate::Ask(build::permission(build::question_id(n), call.id));
        Report::ToolWanted { call, gate }
    };
    if backend_run.view.run.as_ref().unwrap().tools.is_empty() {
        for n in [1, 2] {
            backend_run.reports.send(asked(n)).await.unwrap();
        }
        return backend_run.reports.send(Report::Parked).await.unwrap();
    }
    while backend_run.orders.recv().await.is_some_and(|order| order != Order::Cancel) {}
    drop(backend_run.reports.send(END).await);
}

/// A session on a real disk with a parked run, and the command that answers one of its two questions.
async fn parked(folder: &tempfile::TempDir) -> (Hub, SessionId, Command) {
    let store = SqliteStore::open(StoreOptions::new(folder.path().join("data"))).await.unwrap();
    let part: Part1 = Arc::new(|backend_run| match backend_run.run == build::run(7) {
        true => Box::pin(asks_twice(backend_run)),
        false => Box::pin(async move { backend_run.reports.send(END).await.unwrap() }),
    });
    let hub = Hub::new(Arc::new(store) as _, Arc::new(Scripted(part)), Recovery::default());
    let session = session(&hub).await;
    hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    until_rest(&hub).await;
    let reply = Reply::Chosen { choice: "allow".to_owned(), kind: ChoiceKind::AllowOnce };
    let answer = Command::Answer { question: build::question_id(1), reply, origin: build::origin(), meta: None };
    (hub, session, answer)
}

#[tokio::test]
async fn a_cancel_right_after_an_answer_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, session, answer) = parked(&folder).await;
    let cancel = Command::Cancel { run: None, origin: build::origin() };
    let owner = Caller::local_owner();
    let (answered, cancelled) = tokio::join!(
        hub.execute_command(&owner, session, answer, Ack::Synced),
        hub.execute_command(&owner, session, cancel, Ack::Committed)
    );
    assert!(answered.is_ok() && cancelled.is_ok(), "{answered:?} {cancelled:?}");
    let end = tokio::time::timeout(Duration::from_secs(20), until_end(&hub, session, build::run(7))).await;
    let end = end.expect("the run hangs");
    assert!(matches!(end.last(), Some(Event::RunEnded { outcome: Outcome::Cancelled })), "{end:?}");
    tokio::time::timeout(Duration::from_secs(20), until_rest(&hub)).await.expect("the session does not rest");
}

#[tokio::test]
async fn a_prompt_right_after_an_answer_is_not_replaced_by_what_it_superseded() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, session, answer) = parked(&folder).await;
    let (run, origin, parts) = (build::run(8), build::origin(), vec![Part::text("something else")]);
    let next = Command::Prompt { run, origin, parts, if_busy: IfBusy::QueueOrSupersede, meta: None };
    let owner = Caller::local_owner();
    let (answered, prompted) = tokio::join!(
        hub.execute_command(&owner, session, answer, Ack::Synced),
        hub.execute_command(&owner, session, next, Ack::Committed)
    );
    assert!(answered.is_ok() && prompted.is_ok(), "{answered:?} {prompted:?}");
    if matches!(prompted, Ok(Accepted::Queued(_))) {
        let cancel = Command::Cancel { run: Some(build::run(7)), origin: build::origin() };
        drop(hub.execute_command(&Caller::local_owner(), session, cancel, Ack::Committed).await);
    }
    let end = tokio::time::timeout(Duration::from_secs(20), until_end(&hub, session, run)).await;
    let end = end.expect("the second run never ends");
    assert!(matches!(end.last(), Some(Event::RunEnded { outcome: Outcome::Completed { .. } })), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_back_end_that_ignores_a_cancel_is_stopped() {
    let store = Arc::new(MemoryStore::new());
    let hub = hub(&store, |backend_run| async move {
        backend_run.reports.send(text("deaf")).await.unwrap();
        std::future::pending::<()>().await;
    });
    let session = session(&hub).await;
    hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    hub.execute_command(
        &Caller::local_owner(),
        session,
        Command::Cancel { run: None, origin: build::origin() },
        Ack::Synced,
    )
    .await
    .unwrap();
    let events = until_end(&hub, session, build::run(7)).await;
    assert_eq!(events.last(), Some(&Event::RunEnded { outcome: Outcome::Cancelled }));
}

#[tokio::test]
async fn a_back_end_that_panics_hurts_only_its_run() {
    let store = Arc::new(MemoryStore::new());
    let hub = hub(&store, |_| async move { panic!("injected") });
    let session = session(&hub).await;
    hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    let events = until_end(&hub, session, build::run(7)).await;
    assert!(matches!(events.last(), Some(Event::RunEnded { outcome: Outcome::Failed { .. } })));
    hub.execute_command(&Caller::local_owner(), session, prompt(8), Ack::Committed).await.unwrap();
    until_end(&hub, session, build::run(8)).await;
}

#[tokio::test]
async fn a_new_hub_picks_up_what_the_old_one_left_open() {
    let store = Arc::new(MemoryStore::new());
    let old = hub(&store, |backend_run| async move {
        backend_run.reports.send(text("half a sen")).await.unwrap();
        std::future::pending::<()>().await;
    });
    let session = session(&old).await;
    old.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    old.drain_sessions(Duration::ZERO).await;
    assert_eq!(
        old.execute_command(&Caller::local_owner(), session, prompt(8), Ack::Committed).await,
        Err(HubError::Draining)
    );
    let new = hub(&store, |backend_run| async move {
        backend_run.reports.send(text("whole")).await.unwrap();
        backend_run.reports.send(END).await.unwrap();
    });
    assert_eq!(new.recover_open_runs().await, Ok(1));
    let events = until_end(&new, session, build::run(7)).await;
    assert!(events.contains(&Event::RunRecovered { attempt: 1 }));
    let interrupted = |event: &Event| matches!(event, Event::MessageDone { message } if message.interrupted);
    assert!(!events.contains(&Event::RunRecovered { attempt: 2 }));
    let streamed = events.iter().any(|event| matches!(event, Event::PartDelta { text, .. } if text == "half a sen"));
    assert_eq!(events.iter().filter(|event| interrupted(event)).count(), usize::from(streamed));
}

/// It waits for nobody but a child that is gone: no answer could reach it.
#[tokio::test]
async fn a_run_whose_asker_died_with_the_server_is_picked_up() {
    let store = Arc::new(MemoryStore::new());
    let old = hub(&store, |backend_run| async move {
        let question = build::permission(build::question_id(1), build::call_id(1));
        let held = Question { call: None, origin: QuestionOrigin::Held, ..question };
        backend_run.reports.send(Report::Asked(held)).await.unwrap();
        std::future::pending::<()>().await;
    });
    let session = session(&old).await;
    old.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    while store.question(build::question_id(1)).await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    old.drain_sessions(Duration::ZERO).await;
    let new = hub(&store, |backend_run| async move { backend_run.reports.send(END).await.unwrap() });
    assert_eq!(new.recover_open_runs().await, Ok(1));
    let events = until_end(&new, session, build::run(7)).await;
    let given_up =
        |event: &Event| matches!(event, Event::QuestionAnswered { answer, .. } if answer.reply == Reply::Interrupted);
    assert_eq!(events.iter().filter(|event| given_up(event)).count(), 1);
}

#[tokio::test]
async fn deleting_cancels_first_and_the_id_is_used_up() {
    let store = Arc::new(MemoryStore::new());
    let stopped = Arc::new(Notify::new());
    let told = Arc::clone(&stopped);
    let hub = hub(&store, move |mut backend_run| {
        let told = Arc::clone(&told);
        async move {
            while backend_run.orders.recv().await != Some(Order::Cancel) {}
            told.notify_one();
            backend_run.reports.send(Report::Ended(Outcome::Cancelled)).await.unwrap();
        }
    });
    let session = session(&hub).await;
    hub.execute_command(&Caller::local_owner(), session, prompt(7), Ack::Committed).await.unwrap();
    hub.delete_session(&Caller::local_owner(), session).await.unwrap();
    stopped.notified().await;
    assert_eq!(hub.session_view(session).await.map(drop), Err(HubError::Store(StoreError::Deleted(session))));
    let again = hub.create_session(&Caller::local_owner(), build::birth(session), Vec::new()).await.map(drop);
    assert!(matches!(again, Err(HubError::Store(_))), "{again:?}");
}

#[tokio::test]
async fn an_unknown_session_is_said_to_be_unknown() {
    let store = Arc::new(MemoryStore::new());
    let hub = hub(&store, |_| async {});
    let nobody = build::session(99);
    let unknown = HubError::Store(StoreError::NotFound(nobody));
    assert_eq!(hub.execute_command(&Caller::local_owner(), nobody, prompt(1), Ack::Synced).await, Err(unknown.clone()));
    assert_eq!(hub.session_view(nobody).await.map(drop), Err(unknown));
}

#[tokio::test]
async fn a_session_and_its_first_prompt_are_one_append() {
    let store = Arc::new(MemoryStore::default());
    let hub = hub(&store, |backend_run: BackendRun| async move {
        backend_run.reports.send(text("hi")).await.unwrap();
        backend_run.reports.send(END).await.unwrap();
    });
    let begun = hub
        .create_with_prompt(
            &Caller::local_owner(),
            build::birth(build::session(1)),
            vec![name()],
            prompt(7),
            Ack::Committed,
            ClientResources::default(),
        )
        .await;
    let StartedSession { view, mut follower, accepted } = begun;
    assert_eq!((view.session, accepted.await.unwrap()), (build::session(1), Accepted::Started(build::run(7))));
    let first = follower.next_batch().await.unwrap().unwrap();
    let kinds: Vec<bool> = first.iter().take(3).map(|entry| entry.run.is_some()).collect();
    assert_eq!(kinds, [false, true, true], "the session, its run and the prompt");
    let live = until_end(&hub, build::session(1), build::run(7)).await;
    let stored = read_all(&*store, build::session(1), DeltaForm::Exact).await.unwrap();
    assert_eq!(live, stored.iter().map(|entry| entry.event.clone()).collect::<Vec<_>>());
    assert_eq!(store.resolve_alias(&name()).await.unwrap(), Some(build::session(1)));
}

#[tokio::test]
async fn a_session_whose_name_is_taken_does_not_begin() {
    let store = Arc::new(MemoryStore::default());
    let hub = hub(&store, |backend_run: BackendRun| async move { backend_run.reports.send(END).await.unwrap() });
    hub.create_session(&Caller::local_owner(), build::birth(build::session(1)), vec![name()]).await.unwrap();
    let begun = hub
        .create_with_prompt(
            &Caller::local_owner(),
            build::birth(build::session(2)),
            vec![name()],
            prompt(7),
            Ack::Committed,
            ClientResources::default(),
        )
        .await;
    let refused = begun.accepted.await.unwrap_err();
    assert!(matches!(refused, HubError::Store(StoreError::AliasTaken(_))), "{refused}");
    assert!(matches!(hub.session_view(build::session(2)).await, Err(HubError::Store(StoreError::NotFound(_)))));
}

fn name() -> Alias {
    let (door, namespace, text) = ("test".to_owned(), String::new(), "chosen".to_owned());
    Alias { principal: build::origin().by, door, namespace, text }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_that_comes_while_a_task_leaves() {
    let store = Arc::new(MemoryStore::default());
    let hub = hub(&store, |backend_run: BackendRun| async move { backend_run.reports.send(END).await.unwrap() });
    let session = session(&hub).await;
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8 {
        let hub = hub.clone();
        callers.spawn(async move {
            for number in 0..500 {
                let title = format!("{caller}.{number}");
                hub.execute_command(&Caller::local_owner(), session, Command::SetTitle { title }, Ack::Committed)
                    .await
                    .unwrap();
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
}

/// Runs one prompt of so many bytes in a session of its own.
async fn one_turn(hub: &Hub, n: u128, bytes: usize) -> SessionId {
    let session =
        hub.create_session(&Caller::local_owner(), build::birth(build::session(n)), Vec::new()).await.unwrap().session;
    let (run, origin, parts) = (build::run(n), build::origin(), vec![Part::text("x".repeat(bytes))]);
    let prompt = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta: None };
    hub.execute_command(&Caller::local_owner(), session, prompt, Ack::Committed).await.unwrap();
    until_end(hub, session, run).await;
    until_rest(hub).await;
    session
}

#[tokio::test]
async fn idle_sessions_are_cached_up_to_a_size() {
    const LIMIT: usize = 256 << 10;
    let shown = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&shown);
    let part: Part1 = Arc::new(move |backend_run| {
        counted.store(backend_run.context.messages.len(), Ordering::SeqCst);
        Box::pin(async move { backend_run.reports.send(END).await.unwrap() })
    });
    let store = Arc::new(MemoryStore::new());
    let hub = Hub::with_cache(store as _, Arc::new(Scripted(part)), Recovery::default(), LIMIT);
    let mut sessions = Vec::new();
    for n in 1..=8 {
        sessions.push(one_turn(&hub, n, 100 << 10).await);
        let cache = hub.cache_stats();
        assert!(cache.bytes <= LIMIT && cache.limit == LIMIT, "{cache:?}");
    }
    let cache = hub.cache_stats();
    assert!(cache.sessions == 2 && cache.bytes > 200 << 10, "{cache:?}");
    // What is too large for the cache keeps its place with what is small of it.
    sessions.push(one_turn(&hub, 9, 2 * LIMIT).await);
    assert_eq!(hub.cache_stats().sessions, 3, "{:?}", hub.cache_stats());
    for (session, n) in sessions.into_iter().zip(101..) {
        hub.execute_command(&Caller::local_owner(), session, prompt(n), Ack::Committed).await.unwrap();
        until_end(&hub, session, build::run(n)).await;
        assert_eq!(shown.load(Ordering::SeqCst), 2, "the conversation is whole, cached or not");
        until_rest(&hub).await;
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_that_rested_for_minutes_give_their_memory_back_and_go_on() {
    let shown = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&shown);
    let hub = hub(&Arc::new(MemoryStore::new()), move |backend_run| {
        counted.store(backend_run.context.messages.len(), Ordering::SeqCst);
        async move { backend_run.reports.send(END).await.unwrap() }
    });
    hub.start_maintenance();
    let session = one_turn(&hub, 1, 100).await;
    assert_eq!(hub.cache_stats().sessions, 1);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((hub.cache_stats().sessions, hub.cache_stats().bytes), (0, 0));
    hub.execute_command(&Caller::local_owner(), session, prompt(2), Ack::Committed).await.unwrap();
    until_end(&hub, session, build::run(2)).await;
    assert_eq!(shown.load(Ordering::SeqCst), 2, "the conversation is read from the log again");
}
