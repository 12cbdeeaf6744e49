//! This server as one of several over one database.

use std::sync::Arc;

use gander_runtime::hub::{ClusterOptions, NodeRole};
use gander_services::workspaces::Workspaces;

use crate::config::Config;

/// What this node is to the others, by its settings.
pub(super) fn cluster_options(config: &Config, workspaces: Workspaces) -> ClusterOptions {
    let (mut section, private) = (config.sections.cluster.clone(), workspaces.clone());
    // Sessions name their folders without symbolic links.
    let real: Vec<_> = section.shared.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    section.shared.extend(real);
    let label = section.node_label();
    let pin = label.clone();
    ClusterOptions {
        role: section.role,
        label,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        times: section.times(),
        // A private folder is made anew where it is missing: such sessions move, and are told what they left behind.
        pinned_to: Arc::new(move |view| {
            let moves = private.has_private_folder(view) || section.is_shared(&view.workspace);
            (!moves).then(|| pin.clone())
        }),
        private_folder: Arc::new(move |view| workspaces.find_private_folder(view)),
    }
}

/// True if this node starts what is due by the clock.
pub(super) fn runs_schedules(role: Option<NodeRole>) -> bool {
    role != Some(NodeRole::Gateway)
}
