//! What goes wrong between one node and the store, and the seeded bugs of the store.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Entry, Seq, SessionId};
use gander_store::memory::ModelFaults;
use gander_store::{CommandAnswer, Epoch, NodeId, Store as _, StoreError};
use serde_json::json;
use tokio::sync::watch;

use super::{Bug, Random, World, note_append};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    Running,
    /// Nothing of it moves, as after SIGSTOP.
    Paused,
    /// The store does not answer it.
    Cut,
    /// Nothing of it is ever seen again.
    Dead,
}

pub struct NodeFaults {
    pub node: NodeId,
    world: Weak<World>,
    state: watch::Sender<NodeState>,
    random: Mutex<Random>,
    /// Percent of hints that are lost.
    lost_hints: u64,
    /// The sessions it wrote to last, with where each began to.
    last_writes: Mutex<Vec<SessionId>>,
}

impl NodeFaults {
    pub fn new(node: NodeId, world: &Arc<World>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let lost_hints = [0, 20, 100][random.below(3) as usize];
        Self {
            node,
            world: Arc::downgrade(world),
            state: watch::Sender::new(NodeState::Running),
            random: Mutex::new(random),
            lost_hints,
            last_writes: Mutex::default(),
        }
    }

    pub fn set_state(&self, state: NodeState) {
        self.state.send_if_modified(|now| {
            let changes = *now != NodeState::Dead && *now != state;
            if changes {
                *now = state;
            }
            changes
        });
    }

    pub fn is_dead(&self) -> bool {
        *self.state.borrow() == NodeState::Dead
    }

    /// Waits while the process does not move; for ever if it is dead.
    pub async fn move_on(&self) {
        let mut state = self.state.subscribe();
        let moves = |state: &NodeState| matches!(state, NodeState::Running | NodeState::Cut);
        if state.wait_for(moves).await.is_err() || self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.random.lock().unwrap())
    }

    fn bug(&self) -> Bug {
        self.world.upgrade().map_or(Bug::None, |world| world.bug)
    }
}

#[async_trait]
impl ModelFaults for NodeFaults {
    async fn before_call(&self) -> Result<(), StoreError> {
        self.move_on().await;
        let latency = self.draw(|random| match random.below(100) {
            0 => random.millis(100, 2_000),
            1..20 => random.millis(1, 20),
            _ => Duration::ZERO,
        });
        tokio::time::sleep(latency).await;
        self.move_on().await;
        let mut state = self.state.subscribe();
        if *state.borrow() == NodeState::Cut {
            let back = state.wait_for(|state| *state != NodeState::Cut);
            if tokio::time::timeout(Duration::from_secs(3), back).await.is_err() {
                return Err(StoreError::Failed("cut off".to_owned()));
            }
            self.move_on().await;
        }
        if self.draw(|random| random.below(300) == 0) {
            return Err(StoreError::Busy("drawn".to_owned()));
        }
        Ok(())
    }

    async fn after_write(&self) -> Result<(), StoreError> {
        let latency = self.draw(|random| if random.percent(10) { random.millis(1, 10) } else { Duration::ZERO });
        tokio::time::sleep(latency).await;
        self.move_on().await;
        if self.draw(|random| random.below(300) == 0) {
            return Err(StoreError::Failed("nobody knows whether it is stored".to_owned()));
        }
        Ok(())
    }

    fn hint_delays(&self) -> Vec<Duration> {
        self.draw(|random| {
            if random.percent(self.lost_hints) {
                return Vec::new();
            }
            let copies = if random.percent(10) { 2 } else { 1 };
            (0..copies)
                .map(|_| if random.percent(5) { random.millis(1_000, 9_000) } else { random.millis(0, 30) })
                .collect()
        })
    }

    fn on_append(&self, session: SessionId, written: Epoch, current: Epoch) {
        let mut last = self.last_writes.lock().unwrap();
        last.retain(|known| *known != session);
        last.push(session);
        if let Some(world) = self.world.upgrade() {
            note_append(&world, self.node, session, written, current);
        }
    }

    fn ignores_epoch(&self) -> bool {
        self.bug() == Bug::IgnoreEpoch
    }

    fn change_read(&self, entries: &mut Vec<Entry>) {
        if entries.len() < 3 {
            return;
        }
        match self.bug() {
            Bug::DuplicateEntry => entries.insert(1, entries[0].clone()),
            Bug::Reorder => entries.swap(1, 2),
            Bug::None
            | Bug::DropEntry
            | Bug::SkipDurability
            | Bug::IgnoreEpoch
            | Bug::TwoAnswers
            | Bug::ForgottenChild => {}
        }
    }

    fn change_append(&self, entries: &mut Vec<Entry>) {
        if self.bug() == Bug::DropEntry && entries.len() > 2 && self.draw(|random| random.percent(20)) {
            entries.pop();
        }
    }

    fn change_answer(&self, answer: &mut CommandAnswer) {
        if self.bug() == Bug::TwoAnswers && answer.body["answer"] == "refused" {
            answer.body = json!({"answer": "accepted", "why": "done"});
        }
    }
}

/// A store that acknowledged before the disk had it.
pub async fn lose_last_writes(world: &World, faults: &NodeFaults) {
    let last: Vec<SessionId> = faults.last_writes.lock().unwrap().iter().rev().take(2).copied().collect();
    for session in last {
        if let Ok(head) = world.store.head(session).await
            && head.0 > 3
        {
            world.store.truncate_log(session, Seq(head.0 - 2)).unwrap();
        }
    }
}
