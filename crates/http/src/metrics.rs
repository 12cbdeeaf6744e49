//! `/metrics`: figures of this process and of the nodes beside it, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gander_store::{Health, NodeStatus};
use http::header;

use crate::state::HttpState;

/// What each figure is, by name.
const ABOUT: &[(&str, &str, &str)] = &[
    ("gander_info", "gauge", "Version and role of this server"),
    ("gander_draining", "gauge", "1 if no new work is taken"),
    ("gander_connections", "gauge", "Open connections"),
    ("gander_panics_total", "counter", "Panics since the start"),
    ("gander_sessions_active", "gauge", "Sessions with a task in this process"),
    ("gander_store_healthy", "gauge", "1 if the store can be written"),
    ("gander_store_commits_total", "counter", "Commits of this process"),
    ("gander_store_entries_total", "counter", "Entries that this process wrote"),
    ("gander_store_deltas_total", "counter", "Deltas among them"),
    ("gander_otel_spans_sent_total", "counter", "Spans that the collector took"),
    (
        "gander_otel_spans_dropped_total",
        "counter",
        "Spans that were dropped: the queue was full, or the collector away",
    ),
    ("gander_node_lease", "gauge", "1 if this node may run sessions"),
    ("gander_cluster_nodes", "gauge", "Nodes on the same database, by role and state"),
    ("gander_cluster_sessions_owned", "gauge", "Sessions that a node owns, by node"),
];

/// Lines of figures, each kind with its description above.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn put(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        if let Some((_, kind, help)) = ABOUT.iter().find(|(known, ..)| *known == name)
            && !self.0.contains(&format!("# TYPE {name} "))
        {
            self.line(format_args!("# HELP {name} {help}"));
            self.line(format_args!("# TYPE {name} {kind}"));
        }
        let labels: Vec<String> = labels.iter().map(|(key, text)| format!("{key}={text:?}")).collect();
        match labels.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a string does not fail");
    }
}

/// For whoever may see what the whole server does.
pub(crate) async fn get_metrics(State(state): State<Arc<HttpState>>) -> Response {
    let hub = &state.services.hub;
    let mut text = MetricsText::default();
    let role = hub.role().map_or("single", |role| role.name());
    text.put("gander_info", &[("version", gander_services::VERSION), ("role", role)], 1);
    text.put("gander_draining", &[], u64::from(state.is_draining()));
    text.put("gander_connections", &[], state.connections.load(Ordering::Relaxed) as u64);
    text.put("gander_panics_total", &[], state.panics.load(Ordering::Relaxed) as u64);
    text.put("gander_sessions_active", &[], hub.active_sessions() as u64);
    text.put("gander_store_healthy", &[], u64::from(hub.store().health().await == Health::Ready));
    let stats = hub.store().stats();
    text.put("gander_store_commits_total", &[], stats.commits);
    text.put("gander_store_entries_total", &[], stats.entries);
    text.put("gander_store_deltas_total", &[], stats.deltas);
    if let Some((sent, dropped)) = state.services.telemetry.span_counts() {
        text.put("gander_otel_spans_sent_total", &[], sent);
        text.put("gander_otel_spans_dropped_total", &[], dropped);
    }
    if hub.role().is_some() {
        text.put("gander_node_lease", &[], u64::from(hub.has_lease()));
        // Without the store there is nothing to say of others, and the figures of this process are wanted all the more.
        put_nodes(&mut text, &hub.cluster_nodes().await.ok().flatten().unwrap_or_default());
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.0).into_response()
}

fn put_nodes(text: &mut MetricsText, nodes: &[NodeStatus]) {
    for role in ["all", "gateway", "worker"] {
        for (state, has_lease) in [("alive", true), ("gone", false)] {
            let count = nodes.iter().filter(|node| node.info.role == role && node.lease.is_some() == has_lease).count();
            text.put("gander_cluster_nodes", &[("role", role), ("state", state)], count as u64);
        }
    }
    for node in nodes {
        let (id, label) = (node.node.to_string(), node.info.label.as_str());
        text.put("gander_cluster_sessions_owned", &[("node", &id), ("label", label)], node.sessions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_described_once_and_labels_are_quoted() {
        let mut text = MetricsText::default();
        text.put("gander_cluster_nodes", &[("role", "all"), ("state", "a\"b")], 2);
        text.put("gander_cluster_nodes", &[("role", "worker")], 0);
        assert_eq!(
            text.0,
            "# HELP gander_cluster_nodes Nodes on the same database, by role and state\n\
             # TYPE gander_cluster_nodes gauge\n\
             gander_cluster_nodes{role=\"all\",state=\"a\\\"b\"} 2\n\
             gander_cluster_nodes{role=\"worker\"} 0\n"
        );
    }
}
