//! A program that failed for want of the network, and a person who may let it have it from now on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use gander_domain::{Choice, ChoiceKind, QuestionKind, QuestionOrigin};

use super::link::Ground;
use super::server::Server;
use super::spec::Spec;

/// Which programs were given the network by a person. Whoever keeps it knows for whom it counts.
pub trait NetworkBook: Send + Sync {
    /// True if this one was.
    fn is_granted(&self, server: &str) -> bool;

    /// From now on it is; `name` is what people call it.
    fn grant(&self, name: &str, server: &str);
}

/// What is forgotten with the process.
#[derive(Debug, Default)]
pub struct Networks(Mutex<HashSet<String>>);

impl NetworkBook for Networks {
    fn is_granted(&self, server: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(server)
    }

    fn grant(&self, _name: &str, server: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned());
    }
}

/// Asks a person about a server that does not start without it. With nobody there it stays as it is.
pub(super) async fn offer(ground: Ground, server: Arc<Server>) {
    let title = format!("{} does not start without the network. May its program use it?", shown(&server.spec));
    if ground.seat.ask(&title, question(), QuestionOrigin::NonBlocking).await.allows() {
        grant(&ground, &server.spec);
        server.want();
    }
}

/// What a person is asked about a call that failed.
pub(super) fn title(spec: &Spec) -> String {
    format!("{} failed without the network. May its program use it, and the call be made again?", shown(spec))
}

/// The answers there are. A yes is remembered.
pub(super) fn question() -> QuestionKind {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let yes = choice("allow_always", "Let it use the network from now on", ChoiceKind::AllowAlways);
    QuestionKind::Choose { choices: vec![yes, choice("reject_once", "No", ChoiceKind::RejectOnce)] }
}

/// From now on its program finds the network.
pub(super) fn grant(ground: &Ground, spec: &Spec) {
    ground.networks.grant(&spec.name, &spec.identity());
}

/// Its name and its very line: that is what is granted.
fn shown(spec: &Spec) -> String {
    format!("{} ({})", spec.name, spec.place())
}
