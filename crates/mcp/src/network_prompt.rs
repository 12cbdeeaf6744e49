//! A program that failed for want of the network, and a person who may let it have it from now on.

use std::sync::Arc;

use gander_domain::{Choice, ChoiceKind, QuestionKind, QuestionOrigin};

use super::server::McpServer;
use super::server_env::ServerEnv;
use super::spec::Spec;

/// Asks a person about a server that does not start without it. With nobody there it stays as it is.
pub(super) async fn offer_network(env: ServerEnv, server: Arc<McpServer>) {
    let title =
        format!("{} does not start without the network. May its program use it?", network_server_label(&server.spec));
    if env.session.ask_person(&title, network_choices(), QuestionOrigin::NonBlocking).await.is_allowed() {
        grant_network(&env, &server.spec);
        server.request_start();
    }
}

/// What a person is asked about a call that failed.
pub(super) fn network_retry_title(spec: &Spec) -> String {
    format!(
        "{} failed without the network. May its program use it, and the call be made again?",
        network_server_label(spec)
    )
}

/// The answers there are. A yes is remembered.
pub(super) fn network_choices() -> QuestionKind {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let yes = choice("allow_always", "Let it use the network from now on", ChoiceKind::AllowAlways);
    QuestionKind::Choose { choices: vec![yes, choice("reject_once", "No", ChoiceKind::RejectOnce)] }
}

/// From now on its program finds the network.
pub(super) fn grant_network(env: &ServerEnv, spec: &Spec) {
    env.networks.grant(&spec.name, &spec.identity());
}

/// Its name and its very line: that is what is granted.
fn network_server_label(spec: &Spec) -> String {
    format!("{} ({})", spec.name, spec.command_or_url())
}
