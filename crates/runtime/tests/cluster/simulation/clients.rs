//! Clients and readers that use whichever node is there, and the time after the faults.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{Accepted, ChoiceKind, Command, IfBusy, Part, QuestionId, Reply, Seq, SessionId};
use gander_runtime::hub::{Ack, HubError};
use gander_store::{DeltaForm, RunState, Store as _};
use gander_testkit::build;
use tokio_util::sync::CancellationToken;

use super::World;

/// How long a client waits before it believes that its server is gone.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(90);

/// After the faults everything must have ended or await a person by then.
const SETTLE_ROUNDS: u32 = 120;

pub async fn create_sessions(world: &Arc<World>, count: u128) {
    for number in 1..=count {
        let id = build::session(number);
        while world.store.head(id).await.is_err() {
            let node = world.any_node();
            drop(node.hub.create_session(&Caller::local_owner(), build::birth(id), Vec::new()).await);
        }
    }
}

pub async fn run_client(world: Arc<World>, client: u64, stop: CancellationToken) {
    loop {
        let pause = world.random().millis(100, 3_000);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        let choice = world.random().below(10);
        match choice {
            0..5 => prompt(&world, client).await,
            5..9 => answer_one(&world).await,
            _ => cancel(&world).await,
        }
    }
}

async fn command(world: &World, session: SessionId, command: Command) -> Option<Result<Accepted, HubError>> {
    let node = world.any_node();
    let owner = Caller::local_owner();
    let sent = node.hub.execute_command(&owner, session, command, Ack::Synced);
    tokio::time::timeout(CLIENT_TIMEOUT, sent).await.ok()
}

fn any_session(world: &World) -> SessionId {
    build::session(1 + u128::from(world.random().below(super::SESSIONS as u64)))
}

async fn prompt(world: &World, client: u64) {
    let (session, run) = (any_session(world), world.new_run());
    let if_busy = if client.is_multiple_of(2) { IfBusy::Queue } else { IfBusy::Refuse };
    let prompt =
        Command::Prompt { run, origin: build::origin(), parts: vec![Part::text("do it")], if_busy, meta: None };
    // Whoever is not told sends it again, to whichever node: it stays one run.
    for _ in 0..3 {
        match command(world, session, prompt.clone()).await {
            Some(Ok(_)) => return world.facts().accepted.push((session, run)),
            Some(Err(HubError::Refused(_))) => return,
            Some(Err(_)) | None => {}
        }
    }
}

fn allow(question: QuestionId) -> Command {
    let reply = Reply::Chosen { choice: "allow".to_owned(), kind: ChoiceKind::AllowOnce };
    Command::Answer { question, reply, origin: build::origin(), meta: None }
}

/// Two people answer the same question, through two nodes.
async fn answer_one(world: &World) {
    let asked = {
        let count = world.facts().asked.len() as u64;
        let index = world.random().below(count.min(4));
        world.facts().asked.iter().rev().nth(index as usize).copied()
    };
    let Some((session, question)) = asked else { return };
    let both = tokio::join!(command(world, session, allow(question)), command(world, session, allow(question)));
    for result in [both.0, both.1] {
        if matches!(result, Some(Ok(_))) {
            *world.facts().answered.entry(question).or_default() += 1;
        }
    }
}

async fn cancel(world: &World) {
    drop(command(world, any_session(world), Command::Cancel { run: None, origin: build::origin() }).await);
}

/// Follows a session from its first entry, through one node after another.
pub async fn read_session(world: Arc<World>, session: SessionId, stop: CancellationToken) {
    let (mut seen, mut last) = (Vec::new(), Seq::ZERO);
    while !stop.is_cancelled() {
        let node = world.any_node();
        let mut follower = node.hub.follow_session(session, last, DeltaForm::Exact);
        let patience = tokio::time::sleep(world.random().millis(500, 15_000));
        tokio::pin!(patience);
        loop {
            let batch = tokio::select! {
                batch = follower.next_batch() => batch,
                () = &mut patience => break,
                () = stop.cancelled() => break,
            };
            let Ok(Some(batch)) = batch else { break };
            for entry in batch.iter() {
                if entry.seq != last.next() {
                    world.facts().violations.push(format!("{session}: a reader saw {} after {last}", entry.seq));
                }
                last = entry.seq;
                seen.push(entry.clone());
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.facts().transcripts.push((session, seen));
}

/// Without faults everything ends, once its questions are answered.
pub async fn settle(world: &Arc<World>, sessions: u128) -> Result<(), String> {
    for _ in 0..SETTLE_ROUNDS {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let open = world.store.open_runs(None, 1_000).await.unwrap();
        if open.is_empty() && owned_sessions(world).await == 0 {
            return Ok(());
        }
        let asked = world.facts().asked.clone();
        for row in open.iter().filter(|row| row.state == RunState::Awaiting) {
            let question = build::question_id(row.run.uuid().as_u128());
            debug_assert!(asked.iter().any(|(_, known)| *known == question) || sessions > 0);
            if let Some(Ok(_)) = command(world, row.session, allow(question)).await {
                *world.facts().answered.entry(question).or_default() += 1;
            }
        }
    }
    let open = world.store.open_runs(None, 1_000).await.unwrap();
    Err(format!("not settled: {} sessions owned, open: {open:?}", owned_sessions(world).await))
}

async fn owned_sessions(world: &World) -> u64 {
    let node = world.any_node();
    let nodes = node.hub.cluster_nodes().await;
    nodes.ok().flatten().map_or(1, |nodes| nodes.iter().map(|node| node.sessions).sum())
}
