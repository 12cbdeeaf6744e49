//! The agent of the simulated nodes: says something, runs one tool (sometimes asks first), says something, ends.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::active_run::ToolStage;
use gander_domain::{
    Delta, DeltaKind, Event, Order, Outcome, Question, Report, RunId, StopReason, ToolCallId, ToolEnd, ToolGate,
    ToolResult,
};
use gander_runtime::backend::{Backend, BackendRun};
use gander_store::{DeltaForm, NodeId, read_all};
use gander_testkit::build;

use super::faults::NodeFaults;
use super::{Bug, World};

pub struct Agent {
    pub world: Weak<World>,
    pub faults: Arc<NodeFaults>,
    pub node: NodeId,
}

/// A program that the agent started. Gone when its owner is, unless somebody forgets it.
struct Child {
    world: Arc<World>,
    id: u64,
}

impl Child {
    fn start(world: &Arc<World>, node: NodeId) -> Self {
        let mut facts = world.facts();
        facts.next_child += 1;
        let id = facts.next_child;
        facts.children.insert(id, node);
        Self { world: Arc::clone(world), id }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.world.bug != Bug::ForgottenChild {
            self.world.facts().children.remove(&self.id);
        }
    }
}

/// The one tool call of a run.
fn call_of(run: RunId) -> ToolCallId {
    build::call_id(run.uuid().as_u128())
}

fn question_of(run: RunId) -> Question {
    build::permission(build::question_id(run.uuid().as_u128()), call_of(run))
}

#[async_trait]
impl Backend for Agent {
    async fn drive(&self, run: BackendRun) {
        let stop = run.stop.clone();
        tokio::select! {
            _ = self.drive_run(run) => {}
            () = stop.cancelled() => {}
        }
    }
}

impl Agent {
    /// `None` if nobody listens any more.
    async fn drive_run(&self, mut run: BackendRun) -> Option<()> {
        let world = self.world.upgrade()?;
        self.faults.move_on().await;
        let _child = Child::start(&world, self.node);
        let call = call_of(run.run);
        let open = run.view.run.as_ref()?.tools.iter().find(|tool| tool.call.id == call).map(|tool| tool.stage);
        match open {
            Some(ToolStage::Allowed) => self.run_tool(&world, &mut run).await?,
            Some(ToolStage::Asked) => return self.send(&run, Report::Parked).await,
            Some(ToolStage::Refused | ToolStage::Started) => {
                let result = ToolResult::text(ToolEnd::Cancelled, "refused");
                self.send(&run, Report::ToolDone { call, result }).await?;
            }
            None if was_called(&world, &run).await => {}
            None => {
                self.say(&world, &run).await?;
                let asks = world.random().percent(50);
                let gate = if asks { ToolGate::Ask(question_of(run.run)) } else { ToolGate::Open };
                self.send(&run, Report::ToolWanted { call: build::shell(call), gate }).await?;
                if asks {
                    world.facts().asked.push((run.view.session, question_of(run.run).id));
                    return self.send(&run, Report::Parked).await;
                }
                self.run_tool(&world, &mut run).await?;
            }
        }
        self.say(&world, &run).await?;
        self.send(&run, Report::Ended(Outcome::Completed { stop: StopReason::EndTurn })).await
    }

    async fn run_tool(&self, world: &Arc<World>, run: &mut BackendRun) -> Option<()> {
        let call = call_of(run.run);
        self.send(run, Report::ToolReady { call }).await?;
        while run.orders.recv().await? != (Order::RunTool { call }) {}
        self.faults.move_on().await;
        world.facts().ledger.push((call, self.node));
        self.pause(world, 3_000).await;
        let result = ToolResult::text(ToolEnd::Completed, "done");
        self.send(run, Report::ToolDone { call, result }).await
    }

    async fn say(&self, world: &World, run: &BackendRun) -> Option<()> {
        let words = 1 + world.random().below(5);
        for word in 0..words {
            self.pause(world, 500).await;
            let delta = Delta { growth: DeltaKind::Text, text: format!("{word} ") };
            self.send(run, Report::Deltas(vec![delta])).await?;
        }
        Some(())
    }

    async fn pause(&self, world: &World, up_to: u64) {
        let pause: Duration = world.random().millis(0, up_to);
        tokio::time::sleep(pause).await;
        self.faults.move_on().await;
    }

    async fn send(&self, run: &BackendRun, report: Report) -> Option<()> {
        self.faults.move_on().await;
        run.reports.send(report).await.ok()
    }
}

/// Whether the run's tool was called before the agent was picked up again.
async fn was_called(world: &World, run: &BackendRun) -> bool {
    let entries = read_all(&world.store, run.view.session, DeltaForm::Exact).await.unwrap();
    entries.iter().any(|entry| {
        entry.run == Some(run.run)
            && matches!(&entry.event, Event::ToolCalled { call, .. } if call.id == call_of(run.run))
    })
}
