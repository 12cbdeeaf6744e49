//! Several nodes over one store: owners, fences, commands, and readers elsewhere.

use std::time::Duration;

use gander_domain::Seq;
use gander_store::{
    Append, ClusterStore, CommandAnswer, CommandId, DeltaForm, Durability, Limit, MemoryStore, NodeId, NodeInfo,
    Ownership, PostgresOptions, PostgresStore, SessionCommand, Store, StoreError, TailEvent,
};
use serde_json::json;
use uuid::Uuid;

use super::{Memory, Postgres};
use crate::story::Story;

/// Longer than any case takes.
const LONG: Duration = Duration::from_secs(120);

/// Over before the next look.
const SHORT: Duration = Duration::from_millis(50);

/// Makes several nodes' handles of one store, empty at first.
pub(crate) trait ClusterHarness {
    type S: Store;

    async fn nodes(&self, count: u128) -> Vec<Self::S>;
}

impl ClusterHarness for Memory {
    type S = MemoryStore;

    async fn nodes(&self, count: u128) -> Vec<MemoryStore> {
        let store = MemoryStore::new();
        (1..=count).map(|node| store.join_cluster(NodeId(Uuid::from_u128(node)))).collect()
    }
}

impl ClusterHarness for Postgres {
    type S = PostgresStore;

    async fn nodes(&self, count: u128) -> Vec<PostgresStore> {
        let open = |node| {
            let node = Some(NodeId(Uuid::from_u128(node)));
            PostgresStore::open(PostgresOptions { node, ..self.0.clone() })
        };
        futures::future::join_all((1..=count).map(open)).await.into_iter().map(Result::unwrap).collect()
    }
}

fn info(label: &str) -> NodeInfo {
    NodeInfo { label: label.to_owned(), role: "all".to_owned(), version: "1".to_owned(), draining: false }
}

/// So many nodes with leases that last.
async fn joined<H: ClusterHarness>(harness: &H, count: u128) -> Vec<H::S> {
    let nodes = harness.nodes(count).await;
    for node in &nodes {
        cluster(node).renew_lease(&info("here"), LONG).await.unwrap();
    }
    nodes
}

fn cluster(store: &impl Store) -> &dyn ClusterStore {
    store.cluster().expect("a store of several nodes")
}

/// As a hub writes while something runs.
fn kept(append: Append) -> Append {
    Append { ownership: Ownership::Keep, ..append }
}

async fn create_kept(story: &mut Story, store: &impl Store) {
    store.create(kept(story.append(Durability::Barrier)), vec![]).await.unwrap();
}

fn command(number: u128, story: &Story, origin: &impl Store) -> SessionCommand {
    SessionCommand {
        id: CommandId(Uuid::from_u128(number)),
        session: story.session,
        origin: cluster(origin).node(),
        body: json!({"number": number as u64, "text": "ünïcode \u{0}"}),
    }
}

pub async fn one_node_owns_a_session_until_its_lease_ends(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let (one, two) = (&nodes[0], &nodes[1]);
    let mut story = Story::new(1);
    create_kept(&mut story, one).await;
    let owner = cluster(one).node();
    assert_eq!(two.claim(story.session).await, Err(StoreError::Owned(owner)), "who creates owns");
    assert_eq!(cluster(two).claim_work(9).await.unwrap(), [], "its lease lasts");
    assert_eq!(cluster(two).nodes().await.unwrap()[0].sessions, 1);
    cluster(one).renew_lease(&info("here"), SHORT).await.unwrap();
    tokio::time::sleep(SHORT * 3).await;
    let status = cluster(two).nodes().await.unwrap();
    assert_eq!((status[0].lease, status[1].lease.is_some()), (None, true));
    let claim = two.claim(story.session).await.unwrap();
    assert!(claim.epoch > story.epoch);
    story.titled("too late");
    assert_eq!(story.send(one).await, Err(StoreError::Fenced { current: claim.epoch }));
    cluster(one).renew_lease(&info("here"), LONG).await.unwrap();
    assert_eq!(
        one.claim(story.session).await,
        Err(StoreError::Owned(cluster(two).node())),
        "a lease brings nothing back"
    );
    let late = Append::new(story.session, claim.epoch, story.entries[1..].to_vec(), Durability::Relaxed);
    two.append(late).await.unwrap();
}

pub async fn a_released_session_is_free_and_kept_again_by_its_writer(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let (one, two) = (&nodes[0], &nodes[1]);
    let mut story = Story::new(1);
    one.create(story.append(Durability::Barrier), vec![]).await.unwrap();
    assert_eq!(cluster(two).claim_work(9).await.unwrap(), [], "released without work");
    story.titled("kept again");
    one.append(kept(story.append(Durability::Relaxed))).await.unwrap();
    assert_eq!(two.claim(story.session).await, Err(StoreError::Owned(cluster(one).node())));
    story.titled("released again");
    one.append(story.append(Durability::Relaxed)).await.unwrap();
    let claim = two.claim(story.session).await.unwrap();
    assert_eq!(claim.head, story.head());
    story.titled("one does not know");
    assert_eq!(story.send(one).await, Err(StoreError::Fenced { current: claim.epoch }));
}

pub async fn work_is_claimed_once(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 3).await;
    for number in 1..=20 {
        create_kept(&mut Story::new(number), &nodes[0]).await;
    }
    cluster(&nodes[0]).renew_lease(&info("here"), SHORT).await.unwrap();
    tokio::time::sleep(SHORT * 3).await;
    assert_eq!(cluster(&nodes[1]).claim_work(3).await.unwrap().len(), 3);
    let mut claimed = 3;
    for _ in 0..20 {
        let both = tokio::join!(cluster(&nodes[1]).claim_work(4), cluster(&nodes[2]).claim_work(4));
        claimed += both.0.unwrap().len() + both.1.unwrap().len();
    }
    assert_eq!(claimed, 20, "each by one of them");
    let sessions: Vec<u64> = cluster(&nodes[1]).nodes().await.unwrap().iter().map(|node| node.sessions).collect();
    assert_eq!((sessions[0], sessions[1] + sessions[2]), (0, 20));
    assert_eq!(cluster(&nodes[0]).owned_sessions().await.unwrap(), []);
    assert_eq!(cluster(&nodes[1]).owned_sessions().await.unwrap().len() as u64, sessions[1]);
}

pub async fn who_leaves_hands_its_sessions_over(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let mut story = Story::new(1);
    create_kept(&mut story, &nodes[0]).await;
    cluster(&nodes[0]).leave().await.unwrap();
    assert_eq!(cluster(&nodes[1]).nodes().await.unwrap().len(), 1);
    let claimed = cluster(&nodes[1]).claim_work(9).await.unwrap();
    assert_eq!(claimed.iter().map(|(session, _)| *session).collect::<Vec<_>>(), [story.session]);
}

pub async fn a_pinned_session_stays_with_its_label(harness: &impl ClusterHarness) {
    let nodes = harness.nodes(3).await;
    for (node, label) in nodes.iter().zip(["disk-1", "disk-2", "disk-1"]) {
        cluster(node).renew_lease(&info(label), LONG).await.unwrap();
    }
    let mut story = Story::new(1);
    let append = Append { pinned_to: Some("disk-1".to_owned()), ..kept(story.append(Durability::Barrier)) };
    nodes[0].create(append, vec![]).await.unwrap();
    cluster(&nodes[0]).leave().await.unwrap();
    assert_eq!(cluster(&nodes[1]).claim_work(9).await.unwrap(), []);
    assert_eq!(nodes[1].claim(story.session).await, Err(StoreError::Pinned("disk-1".to_owned())));
    assert_eq!(cluster(&nodes[2]).claim_work(9).await.unwrap().len(), 1);
}

pub async fn commands_reach_the_owner_and_answers_the_sender(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let (owner, sender) = (&nodes[0], &nodes[1]);
    let mut story = Story::new(1);
    create_kept(&mut story, owner).await;
    let sent: Vec<SessionCommand> = (1..=3).map(|number| command(number, &story, sender)).collect();
    for command in sent.clone() {
        cluster(sender).send_command(command).await.unwrap();
    }
    let hint = tokio::time::timeout(LONG, cluster(owner).next_hint()).await.unwrap();
    assert!(hint.commands, "{hint:?}");
    assert_eq!(cluster(sender).pending_commands(9).await.unwrap(), [], "not its session");
    assert_eq!(cluster(owner).pending_commands(2).await.unwrap(), sent[..2]);
    story.titled("done");
    let answers = vec![
        CommandAnswer { command: sent[0].id, body: json!("yes") },
        CommandAnswer { command: sent[1].id, body: json!({"no": ["because"]}) },
    ];
    owner.append(Append { answers: answers.clone(), ..kept(story.append(Durability::Barrier)) }).await.unwrap();
    let hint = tokio::time::timeout(LONG, cluster(sender).next_hint()).await.unwrap();
    assert!(hint.answers, "{hint:?}");
    let mut taken = cluster(sender).take_answers().await.unwrap();
    taken.sort_by_key(|answer| answer.command);
    assert_eq!(taken, answers);
    assert_eq!(cluster(sender).take_answers().await.unwrap(), [], "each is given once");
    assert_eq!(cluster(owner).pending_commands(9).await.unwrap(), sent[2..]);
    let nobody = Story::new(2);
    let missing = cluster(sender).send_command(command(9, &nobody, sender)).await;
    assert_eq!(missing, Err(StoreError::NotFound(nobody.session)));
}

pub async fn a_command_is_answered_with_its_entries_or_not_at_all(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let mut story = Story::new(1);
    create_kept(&mut story, &nodes[0]).await;
    let sent = command(1, &story, &nodes[1]);
    cluster(&nodes[1]).send_command(sent.clone()).await.unwrap();
    cluster(&nodes[0]).renew_lease(&info("here"), SHORT).await.unwrap();
    tokio::time::sleep(SHORT * 3).await;
    let claim = nodes[1].claim(story.session).await.unwrap();
    story.titled("fenced");
    let answers = vec![CommandAnswer { command: sent.id, body: json!("yes") }];
    let late = Append { answers, ..story.append(Durability::Barrier) };
    assert_eq!(nodes[0].append(late).await, Err(StoreError::Fenced { current: claim.epoch }));
    assert_eq!(cluster(&nodes[1]).take_answers().await.unwrap(), []);
    assert_eq!(cluster(&nodes[1]).pending_commands(9).await.unwrap(), [sent], "the new owner has it now");
}

pub async fn commands_that_wait_are_work(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let (one, two) = (&nodes[0], &nodes[1]);
    let mut story = Story::new(1);
    one.create(story.append(Durability::Barrier), vec![]).await.unwrap();
    let first = command(1, &story, one);
    cluster(one).send_command(first.clone()).await.unwrap();
    let hint = tokio::time::timeout(LONG, cluster(two).next_hint()).await.unwrap();
    assert!(hint.work, "{hint:?}");
    let claimed = cluster(two).claim_work(9).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(cluster(two).pending_commands(9).await.unwrap(), std::slice::from_ref(&first));
    let second = command(2, &story, one);
    cluster(one).send_command(second.clone()).await.unwrap();
    let answers = vec![CommandAnswer { command: first.id, body: json!("yes") }];
    let release = Append::new(story.session, claimed[0].1.epoch, vec![], Durability::Relaxed);
    two.append(Append { answers, ..release }).await.unwrap();
    let claimed = cluster(one).claim_work(9).await.unwrap();
    assert_eq!(claimed.len(), 1, "released with a command that waits: it is work");
    assert_eq!(cluster(one).pending_commands(9).await.unwrap(), [second]);
}

pub async fn a_withdrawn_command_is_gone(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let mut story = Story::new(1);
    nodes[0].create(story.append(Durability::Barrier), vec![]).await.unwrap();
    let sent = command(1, &story, &nodes[0]);
    cluster(&nodes[0]).send_command(sent.clone()).await.unwrap();
    assert!(cluster(&nodes[0]).withdraw_command(sent.id).await.unwrap());
    assert!(!cluster(&nodes[0]).withdraw_command(sent.id).await.unwrap());
    assert_eq!(cluster(&nodes[1]).claim_work(9).await.unwrap(), []);
}

pub async fn a_withdrawn_command_is_not_carried_out(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let (owner, sender) = (&nodes[0], &nodes[1]);
    let (mut story, mut other) = (Story::new(1), Story::new(2));
    create_kept(&mut story, owner).await;
    create_kept(&mut other, owner).await;
    let sent = command(1, &story, sender);
    cluster(sender).send_command(sent.clone()).await.unwrap();
    assert_eq!(cluster(owner).pending_commands(9).await.unwrap().len(), 1, "its owner has read it");
    assert!(cluster(sender).withdraw_command(sent.id).await.unwrap());
    let answers = || vec![CommandAnswer { command: sent.id, body: json!("yes") }];
    let mut late = story.clone();
    let late = Append { answers: answers(), ..kept(late.titled("late").append(Durability::Barrier)) };
    let beside = kept(other.titled("beside").append(Durability::Barrier));
    let (late, beside) = tokio::join!(owner.append(late), owner.append(beside));
    assert!(matches!(late, Err(StoreError::Busy(_))), "{late:?}");
    assert_eq!(beside.unwrap().head, other.head(), "another session's is stored");
    assert_eq!(owner.head(story.session).await.unwrap(), story.head());
    story.titled("something else").send(owner).await.unwrap();
    // A command that caused nothing needs no answer either.
    let refusal = Append::new(story.session, story.epoch, vec![], Durability::Relaxed);
    owner.append(Append { answers: answers(), ..refusal }).await.unwrap();
}

pub async fn a_command_that_its_reader_cannot_read_is_refused(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let mut story = Story::new(1);
    create_kept(&mut story, &nodes[0]).await;
    let nested = (0..127).fold(json!("deep"), |inner, _| json!([inner]));
    let deep = SessionCommand { body: json!({ "wrapped": nested }), ..command(1, &story, &nodes[1]) };
    let refused = cluster(&nodes[1]).send_command(deep).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    let next = command(2, &story, &nodes[1]);
    cluster(&nodes[1]).send_command(next.clone()).await.unwrap();
    assert_eq!(cluster(&nodes[0]).pending_commands(9).await.unwrap(), [next]);
}

pub async fn a_reader_elsewhere_sees_everything_once(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let (owner, reader) = (&nodes[0], &nodes[1]);
    let mut story = Story::new(1);
    create_kept(&mut story, owner).await;
    let tail = reader.subscribe(story.session);
    story.turn().turn().titled("end");
    let (told, head) = (story.entries.clone(), story.head());
    let read = async {
        let mut seen = Vec::new();
        while seen.len() < told.len() {
            let at = Seq(seen.len() as u64);
            let page = reader.read(story.session, at, Limit::default(), DeltaForm::Exact).await.unwrap();
            if page.is_empty() {
                match tokio::time::timeout(LONG, tail.next(at)).await.unwrap() {
                    TailEvent::Behind => {}
                    TailEvent::Live(batch) => seen.extend(batch.iter().cloned()),
                    TailEvent::Ended | TailEvent::Failed(_) | TailEvent::Truncated => panic!("the session goes on"),
                }
            }
            seen.extend(page);
        }
        seen
    };
    let mut writer = story.clone();
    let (seen, ()) = tokio::join!(read, writer.send_in_pieces(owner, 3));
    assert_eq!((seen, head), (told, writer.head()));
    // The session moves: what this node writes must not hide what the other one wrote before.
    let claim = {
        writer.titled("released");
        owner.append(writer.append(Durability::Relaxed)).await.unwrap();
        reader.claim(story.session).await.unwrap()
    };
    // The hint about the other node's last entry may still be on its way.
    let told = async {
        while tail.peek_event(Seq(head.0 - 1)).is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, told).await.unwrap();
    let before = tail.peek_event(Seq(head.0 - 1));
    assert!(matches!(before, Some(TailEvent::Behind)), "{before:?}");
    writer.epoch = claim.epoch;
    writer.titled("from here").titled("and here");
    writer.send(reader).await.unwrap();
    assert!(matches!(tail.peek_event(Seq(head.0 - 1)), Some(TailEvent::Behind)), "entries between are not skipped");
    let TailEvent::Live(live) = tail.next(claim.head).await else { panic!("the newest are live") };
    assert_eq!(live.iter().count(), 2);
}

pub async fn a_reader_elsewhere_needs_no_hint(harness: &impl ClusterHarness) {
    let nodes = joined(harness, 2).await;
    let mut story = Story::new(1);
    create_kept(&mut story, &nodes[0]).await;
    let tail = nodes[1].subscribe(story.session);
    cluster(&nodes[1]).refresh_tails().await.unwrap();
    assert!(matches!(tail.peek_event(Seq::ZERO), Some(TailEvent::Behind)), "found by looking");
    assert!(tail.peek_event(story.head()).is_none());
    nodes[0].delete(story.session, gander_domain::Timestamp::from_micros(1)).await.unwrap();
    cluster(&nodes[1]).refresh_tails().await.unwrap();
    assert!(matches!(tail.peek_event(story.head()), Some(TailEvent::Ended)));
}
