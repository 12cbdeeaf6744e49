//! What one node does for the others, step by step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::caller::Caller;
use gander_domain::{
    Accepted, Command, CommandError, Delta, DeltaKind, Event, IfBusy, Outcome, Part, Recovery, Report, RunId, Seq,
    SessionId, StopReason,
};
use gander_models::Keys;
use gander_runtime::backend::{Backend, BackendRun, ClientResources};
use gander_runtime::hub::{Ack, ClusterOptions, ClusterTimes, Hub, HubError, NodeRole};
use gander_store::memory::ModelFaults;
use gander_store::{ClusterStore as _, DeltaForm, MemoryStore, NodeId, StoreError, read_all};
use gander_testkit::build;
use uuid::Uuid;

/// An agent that says a word a second, ten times, and counts how many of it are at work.
#[derive(Clone, Default)]
struct Talker {
    at_work: Arc<AtomicUsize>,
}

struct AtWork(Arc<AtomicUsize>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Backend for Talker {
    async fn drive(&self, run: BackendRun) {
        self.at_work.fetch_add(1, Ordering::SeqCst);
        let _at_work = AtWork(Arc::clone(&self.at_work));
        for word in 0..10 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let delta = Delta { growth: DeltaKind::Text, text: format!("{word} ") };
            if run.reports.send(Report::Deltas(vec![delta])).await.is_err() {
                return;
            }
        }
        drop(run.reports.send(Report::Ended(Outcome::Completed { stop: StopReason::EndTurn })).await);
    }
}

struct TestNode {
    hub: Hub,
    agent: Talker,
    id: NodeId,
}

async fn start(store: MemoryStore, id: NodeId, role: NodeRole, label: &str) -> TestNode {
    let agent = Talker::default();
    let pinned = label.to_owned();
    let options = ClusterOptions {
        role,
        label: label.to_owned(),
        version: "1".to_owned(),
        pinned_to: Arc::new(move |view| (view.workspace != "/shared").then(|| pinned.clone())),
        private_folder: Arc::new(|_| None),
        times: ClusterTimes::default(),
    };
    let hub = Hub::new(Arc::new(store), Arc::new(agent.clone()), Recovery::default()).with_cluster(options);
    hub.start_cluster().await.unwrap();
    TestNode { hub, agent, id }
}

async fn node(store: &MemoryStore, number: u128, role: NodeRole, label: &str) -> TestNode {
    let id = NodeId(Uuid::from_u128(number));
    start(store.join_cluster(id), id, role, label).await
}

async fn create(node: &TestNode, workspace: &str) -> SessionId {
    let mut birth = build::birth(build::session(1));
    birth.workspace = workspace.to_owned();
    node.hub.create_session(&Caller::local_owner(), birth, Vec::new()).await.unwrap().session
}

fn prompt(n: u128, if_busy: IfBusy) -> Command {
    Command::Prompt {
        run: build::run(n),
        origin: build::origin(),
        parts: vec![Part::text("talk")],
        if_busy,
        meta: None,
    }
}

async fn command(node: &TestNode, session: SessionId, command: Command) -> Result<Accepted, HubError> {
    node.hub.execute_command(&Caller::local_owner(), session, command, Ack::Synced).await
}

async fn log_at_end(node: &TestNode, session: SessionId, run: RunId) -> Vec<Event> {
    let mut follower = node.hub.follow_session(session, Seq::ZERO, DeltaForm::Exact);
    let mut events = Vec::new();
    loop {
        for entry in follower.next_batch().await.unwrap().unwrap().iter() {
            events.push(entry.event.clone());
            if entry.run == Some(run) && matches!(entry.event, Event::RunEnded { .. }) {
                return events;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_for_another_nodes_session_is_carried_out_there() {
    let store = MemoryStore::new();
    let (one, two) = (node(&store, 1, NodeRole::All, "a").await, node(&store, 2, NodeRole::All, "a").await);
    let session = create(&one, "/shared").await;
    assert_eq!(command(&one, session, prompt(1, IfBusy::Refuse)).await, Ok(Accepted::Started(build::run(1))));
    let refused = command(&two, session, prompt(2, IfBusy::Refuse)).await;
    assert_eq!(refused, Err(HubError::Refused(CommandError::RunActive(build::run(1)))), "the owner's own words");
    assert_eq!(command(&two, session, prompt(3, IfBusy::Queue)).await, Ok(Accepted::Queued(build::run(3))));
    let others = Caller { principal: gander_domain::Principal::named("other"), ..Caller::local_owner() };
    let unknown = two.hub.execute_command(&others, session, prompt(4, IfBusy::Queue), Ack::Synced).await;
    assert_eq!(unknown, Err(HubError::Store(StoreError::NotFound(session))));
    log_at_end(&two, session, build::run(3)).await;
    assert_eq!((one.agent.at_work.load(Ordering::SeqCst), two.agent.at_work.load(Ordering::SeqCst)), (0, 0));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(command(&two, session, prompt(5, IfBusy::Refuse)).await, Ok(Accepted::Started(build::run(5))));
    assert_eq!(two.agent.at_work.load(Ordering::SeqCst), 1, "a session at rest is taken by whoever is asked");
    assert_eq!(one.hub.session_view(session).await.unwrap().run.map(|run| run.id), Some(build::run(5)));
    two.hub.delete_session(&Caller::local_owner(), session).await.unwrap();
    assert_eq!(one.hub.session_view(session).await, Err(StoreError::Deleted(session).into()));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_lends_to_another_nodes_run_is_told_in_the_log() {
    let store = MemoryStore::new();
    let gateway = node(&store, 1, NodeRole::Gateway, "a").await;
    let worker = node(&store, 2, NodeRole::Worker, "a").await;
    let session = create(&gateway, "/shared").await;
    let lent = ClientResources { host: None, keys: Some(Keys::default()) };
    let sent = prompt(1, IfBusy::Refuse);
    let accepted = gateway.hub.submit_command(&Caller::local_owner(), session, sent, Ack::Synced, lent).await.await;
    assert_eq!(accepted, Ok(Accepted::Started(build::run(1))));
    assert_eq!((gateway.agent.at_work.load(Ordering::SeqCst), worker.agent.at_work.load(Ordering::SeqCst)), (0, 1));
    let events = log_at_end(&gateway, session, build::run(1)).await;
    let notices = events.iter().filter(|event| matches!(event, Event::Noticed { .. })).count();
    assert_eq!(notices, 1, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_on_a_local_disk_waits_for_its_node() {
    let store = MemoryStore::new();
    let one = node(&store, 1, NodeRole::All, "disk-1").await;
    let two = node(&store, 2, NodeRole::All, "disk-2").await;
    let session = create(&one, "/local").await;
    assert_eq!(command(&two, session, prompt(1, IfBusy::Refuse)).await, Ok(Accepted::Started(build::run(1))));
    assert_eq!((one.agent.at_work.load(Ordering::SeqCst), two.agent.at_work.load(Ordering::SeqCst)), (1, 0));
    log_at_end(&two, session, build::run(1)).await;
    one.hub.drain_sessions(Duration::ZERO).await;
    let refused = command(&two, session, prompt(2, IfBusy::Refuse)).await;
    assert_eq!(refused, Err(HubError::Store(StoreError::Pinned("disk-1".to_owned()))));
    assert_eq!(two.hub.session_view(session).await.unwrap().run, None, "it is shown all the same");
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_hands_its_run_over_at_once() {
    let store = MemoryStore::new();
    let (one, two) = (node(&store, 1, NodeRole::All, "a").await, node(&store, 2, NodeRole::All, "a").await);
    let session = create(&one, "/shared").await;
    command(&one, session, prompt(1, IfBusy::Refuse)).await.unwrap();
    one.hub.drain_sessions(Duration::from_secs(2)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((one.agent.at_work.load(Ordering::SeqCst), two.agent.at_work.load(Ordering::SeqCst)), (0, 1));
    let events = log_at_end(&two, session, build::run(1)).await;
    assert!(matches!(events.last(), Some(Event::RunEnded { outcome: Outcome::Completed { .. } })));
    assert_eq!(store.join_cluster(NodeId(Uuid::from_u128(9))).nodes().await.unwrap().len(), 1);
}

/// A store that does not answer.
struct CutOff(tokio::sync::watch::Receiver<bool>);

#[async_trait]
impl ModelFaults for CutOff {
    async fn before_call(&self) -> Result<(), StoreError> {
        let mut cut = self.0.clone();
        cut.wait_for(|cut| !cut).await.map(drop).map_err(|_| StoreError::Closed)
    }

    async fn after_write(&self) -> Result<(), StoreError> {
        self.before_call().await
    }

    fn hint_delays(&self) -> Vec<Duration> {
        Vec::new() // every hint is lost
    }
}

/// A store that stores and does not say so.
struct SilentWrites(tokio::sync::watch::Receiver<bool>);

#[async_trait]
impl ModelFaults for SilentWrites {
    async fn before_call(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn after_write(&self) -> Result<(), StoreError> {
        let mut silent = self.0.clone();
        silent.wait_for(|silent| !silent).await.map(drop).map_err(|_| StoreError::Closed)
    }

    fn hint_delays(&self) -> Vec<Duration> {
        vec![Duration::ZERO]
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_stop_is_not_handed_over() {
    let store = MemoryStore::new();
    let (silence, is_silent) = tokio::sync::watch::channel(false);
    let id = NodeId(Uuid::from_u128(1));
    let one = start(store.join_with_faults(id, Arc::new(SilentWrites(is_silent))), id, NodeRole::All, "a").await;
    let session = create(&one, "/shared").await;
    command(&one, session, prompt(1, IfBusy::Refuse)).await.unwrap();
    silence.send_replace(true);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    one.hub.drain_sessions(Duration::ZERO).await;
    let observer = store.join_cluster(NodeId(Uuid::from_u128(9)));
    assert_eq!(observer.nodes().await.unwrap()[0].sessions, 1, "its owner until the lease ends");
}

/// A store that deletes nothing.
struct Undeletable(Arc<AtomicBool>);

#[async_trait]
impl ModelFaults for Undeletable {
    async fn before_call(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn after_write(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn hint_delays(&self) -> Vec<Duration> {
        vec![Duration::ZERO]
    }

    fn refuses_delete(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_fails_elsewhere_is_told_and_can_be_tried_again() {
    let store = MemoryStore::new();
    let refuses = Arc::new(AtomicBool::new(true));
    let id = NodeId(Uuid::from_u128(2));
    let faulty = store.join_with_faults(id, Arc::new(Undeletable(Arc::clone(&refuses))));
    let gateway = node(&store, 1, NodeRole::Gateway, "a").await;
    let worker = start(faulty, id, NodeRole::Worker, "a").await;
    let session = create(&gateway, "/shared").await;
    command(&gateway, session, prompt(1, IfBusy::Refuse)).await.unwrap();
    let owner = Caller::local_owner();
    let both = tokio::join!(gateway.hub.delete_session(&owner, session), gateway.hub.delete_session(&owner, session));
    for refused in [both.0, both.1] {
        assert!(matches!(refused, Err(HubError::Store(StoreError::Failed(_)))), "{refused:?}");
    }
    assert_eq!(worker.agent.at_work.load(Ordering::SeqCst), 0);
    refuses.store(false, Ordering::SeqCst);
    gateway.hub.delete_session(&owner, session).await.unwrap();
    assert_eq!(gateway.hub.session_view(session).await, Err(StoreError::Deleted(session).into()));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_its_lease_stops_before_another_takes_over() {
    let store = MemoryStore::new();
    let (cut, is_cut) = tokio::sync::watch::channel(false);
    let id = NodeId(Uuid::from_u128(1));
    let one = start(store.join_with_faults(id, Arc::new(CutOff(is_cut))), id, NodeRole::All, "a").await;
    let two = node(&store, 2, NodeRole::All, "a").await;
    let session = create(&one, "/shared").await;
    command(&one, session, prompt(1, IfBusy::Refuse)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    cut.send_replace(true);
    let began = tokio::time::Instant::now();
    while one.agent.at_work.load(Ordering::SeqCst) > 0 {
        assert_eq!(two.agent.at_work.load(Ordering::SeqCst), 0, "both at work");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
    assert!(!one.hub.has_lease());
    while two.agent.at_work.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let taken = began.elapsed();
    assert!((Duration::from_secs(12)..Duration::from_secs(25)).contains(&taken), "{taken:?}");
    cut.send_replace(false);
    log_at_end(&two, session, build::run(1)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(one.hub.has_lease());
    assert_eq!(one.agent.at_work.load(Ordering::SeqCst), 0, "what it had was taken");
    let log = read_all(&store, session, DeltaForm::Exact).await.unwrap();
    let recovered = log.iter().filter(|entry| matches!(entry.event, Event::RunRecovered { .. })).count();
    assert_eq!(recovered, 1);
    assert_eq!(store.join_cluster(NodeId(Uuid::from_u128(9))).owned_sessions().await.unwrap(), []);
    assert_eq!((one.id, two.hub.cluster_nodes().await.unwrap().map(|nodes| nodes.len())), (id, Some(2)));
}
