//! The native agent as a back-end: the steps of one run, in order.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use gander_agent::driver::{Orders, drive_turn};
use gander_domain::{Notice, Report, SessionView, Severity, SlashCommand, SlashCommandKind};
use gander_mcp::{ServerState, Servers};
use gander_runtime::backend::{Backend, BackendRun, ClientResources, RunStart};
use gander_tools::Offers;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::native::Native;
use crate::native_run::NativeRun;

/// How long a run waits for MCP servers that are still starting. Later ones join it while it runs.
const SERVERS_READY_TIMEOUT: Duration = Duration::from_secs(10);

/// A run that waits longer says for what.
const SILENT_WAIT: Duration = Duration::from_secs(1);

#[async_trait]
impl Backend for Native {
    async fn list_slash_commands(&self) -> Vec<SlashCommand> {
        let compact = "Summarise the conversation so far, so that there is room for more";
        vec![SlashCommand::new(SlashCommandKind::Agent, "compact", compact)]
    }

    /// A prompt's way: notices, routing, MCP servers, what the run is prepared with, and the driver.
    async fn drive(&self, backend_run: BackendRun) {
        let BackendRun { context, view, start, client_resources, orders, reports, stop, .. } = backend_run;
        self.send_notices(&view, &client_resources, &reports).await;
        let is_first_run = start == RunStart::Fresh && view.ended.is_empty();
        let servers = self.extensions.servers_of(&view);
        let settings = (self.run_settings)();
        let mut run = NativeRun { native: self, settings, context, view, client_resources, servers, reports };
        run.mark_other_agents().await;
        let subtasks = match start {
            RunStart::Fresh => run.route_prompt().await,
            RunStart::Resumed => None,
        };
        let mut orders = Orders::from(orders);
        wait_for_servers(&run.servers, &run.reports, &mut orders, &stop).await;
        match run.prepare_turn(is_first_run, subtasks).await {
            Ok((deps, setup)) => drive_turn(deps, setup, run.context, orders, run.reports, stop).await,
            // Nobody hears it only if the session is gone.
            Err(outcome) => drop(run.reports.send(Report::Ended(outcome)).await),
        }
    }
}

impl Native {
    async fn send_notices(
        &self,
        view: &SessionView,
        client_resources: &ClientResources,
        reports: &mpsc::Sender<Report>,
    ) {
        if client_resources.host.as_ref().is_some_and(|host| host.offers() == Offers::default()) {
            drop(reports.send(Report::Noticed(client_left_notice())).await);
        }
        if let Some(notice) = self.trust.untrusted_notice(view.session, Path::new(&view.workspace)) {
            drop(reports.send(Report::Noticed(notice)).await);
        }
    }
}

/// Gives servers that start for the first time a moment; one that is down costs a run nothing. A run that is cancelled or stopped meanwhile does not wait.
async fn wait_for_servers(
    servers: &Servers,
    reports: &mpsc::Sender<Report>,
    orders: &mut Orders,
    stop: &CancellationToken,
) {
    if servers.is_empty() {
        return;
    }
    let tried = async {
        let tried = servers.wait_until_tried();
        tokio::pin!(tried);
        if tokio::time::timeout(SILENT_WAIT, &mut tried).await.is_err() {
            drop(reports.send(Report::Noticed(waiting_notice(servers))).await);
            tried.await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = orders.wait_for_cancel() => {}
        settled = tokio::time::timeout(SERVERS_READY_TIMEOUT, tried) => {
            if settled.is_err() {
                tracing::debug!("a run begins before all of its MCP servers");
            }
        }
    }
}

/// The turn seems to do nothing while programs start.
fn waiting_notice(servers: &Servers) -> Notice {
    let starting = servers.server_statuses().into_iter().filter(|status| status.state == ServerState::Starting);
    let names: Vec<String> = starting.map(|status| status.name).collect();
    let limit = SERVERS_READY_TIMEOUT.as_secs();
    let title = format!("Waiting up to {limit} s for MCP servers to start: {}", names.join(", "));
    Notice { severity: Severity::Info, title, detail: None }
}

/// Whoever prompted lent files or terminals, and is gone.
fn client_left_notice() -> Notice {
    let title = "The editor that asked is gone: its files and terminals are now those of the server".to_owned();
    Notice { severity: Severity::Info, title, detail: None }
}
