//! `gander cluster`: the servers that share one PostgreSQL database.

use anyhow::Context as _;
use clap::Subcommand;
use gander_store::{NodeStatus, PostgresStore};
use serde_json::{Value, json};

use crate::commands::{Context, Exit};
use crate::output::clean_output_text;

/// Where there is no key in common.
pub(super) const SECRETS_STAY: &str =
    "cluster.key_file is not set here: secrets and logins of MCP servers stay with the server where they were entered";

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// List the servers on a database: role, label, lease, sessions, version (exit status 1 if none has a lease)
    #[command(after_help = "\
Examples:
  gander cluster status
  gander cluster status --store postgres://gander@db.example/gander
  gander cluster status --json | jq .role

It asks the database, so it works on any machine that reaches it. A server that was killed stays
listed without a lease until others have its sessions, and ten minutes more.")]
    Status {
        /// The PostgreSQL database [environment: GANDER_STORE]
        #[arg(long, value_name = "URL")]
        store: Option<String>,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(context: Context, command: ClusterCommand) -> anyhow::Result<Exit> {
    let ClusterCommand::Status { json, .. } = command;
    let url = context.config.sections.store.url.as_ref();
    let url = url.context("no PostgreSQL database is set: gander cluster status --store postgres://…")?;
    let nodes = PostgresStore::list_nodes(&url.parse()?).await.with_context(|| format!("cannot ask {url}"))?;
    if json {
        nodes.iter().try_for_each(|node| context.output.line(&node_json(node).to_string()))?;
    } else {
        print_nodes(&context, &nodes)?;
        match context.config.sections.cluster.read_keys() {
            Ok(Some(_)) => {}
            Ok(None) => context.output.note(SECRETS_STAY),
            Err(error) => context.output.note(&error.to_string()),
        }
    }
    Ok(if nodes.iter().any(|node| node.lease.is_some()) { Exit::Done } else { Exit::Failed })
}

fn print_nodes(context: &Context, nodes: &[NodeStatus]) -> anyhow::Result<()> {
    if nodes.is_empty() {
        return Ok(context.output.line("no server uses this database")?);
    }
    let head = ["NODE", "ROLE", "LABEL", "STATE", "RENEWED", "SESSIONS", "VERSION"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(nodes.iter().map(node_row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..7).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        context.output.line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn node_row(status: &NodeStatus) -> [String; 7] {
    [
        status.node.to_string(),
        clean_output_text(&status.info.role),
        clean_output_text(&status.info.label),
        node_state(status).to_owned(),
        format!("{:.1} s ago", status.renewed.as_secs_f64()),
        status.sessions.to_string(),
        clean_output_text(&status.info.version),
    ]
}

fn node_state(status: &NodeStatus) -> &'static str {
    match (status.lease.is_some(), status.info.draining) {
        (true, false) => "alive",
        (true, true) => "draining",
        (false, _) => "gone",
    }
}

fn node_json(status: &NodeStatus) -> Value {
    json!({
        "node": status.node,
        "role": status.info.role,
        "label": status.info.label,
        "state": node_state(status),
        "leaseSeconds": status.lease.map(|left| left.as_secs_f64()),
        "renewedSecondsAgo": status.renewed.as_secs_f64(),
        "sessions": status.sessions,
        "version": status.info.version,
    })
}
