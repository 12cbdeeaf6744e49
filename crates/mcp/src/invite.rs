//! Asks the people of a run to log in at a server that wants it.

use std::sync::{Arc, Mutex, PoisonError};

use gander_domain::{QuestionKind, QuestionOrigin, Reply, Severity};
use tokio::sync::watch;

use super::link::Ground;
use super::login::Login;
use super::server::Server;

/// The login of a server that people were asked for. Every run asks for the same one until it is over.
#[derive(Default)]
pub(super) struct Invitation(Mutex<Option<Pending>>);

/// A login under way, and how it ended.
#[derive(Clone)]
struct Pending {
    url: String,
    end: watch::Receiver<Option<Result<(), String>>>,
}

/// Asks a person to log in. A login that was begun holds, also if the run that asked is over.
pub(super) async fn invite(ground: Ground, server: Arc<Server>) {
    let end = match pending(&ground, &server).await {
        Ok(pending) => asked(&ground, &server, pending).await,
        Err(reason) => Some(Err(reason)),
    };
    if let Some(Err(reason)) = end {
        let title = format!("{} is not authorized: {}", server.name, ground.redactor.text(&reason));
        ground.seat.notice(Severity::Warning, &title, None);
    }
}

/// None if the person does not want to.
async fn asked(ground: &Ground, server: &Server, mut pending: Pending) -> Option<Result<(), String>> {
    let title = format!("{} needs authorization: open {}", server.name, pending.url);
    let visit = QuestionKind::Visit { url: pending.url.clone() };
    let ask = ground.seat.ask(&title, visit, QuestionOrigin::NonBlocking);
    tokio::select! {
        end = ended(&mut pending) => return Some(end),
        reply = ask => match reply {
            Reply::Filled { .. } | Reply::Chosen { .. } => {}
            Reply::Declined | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => return None,
        },
    }
    Some(ended(&mut pending).await)
}

async fn ended(pending: &mut Pending) -> Result<(), String> {
    let end = pending.end.wait_for(Option::is_some).await.map(|end| end.clone());
    end.ok().flatten().unwrap_or_else(|| Err("the login was given up".to_owned()))
}

/// The login under way; a new one if there is none. Of two that are begun at once the later is given up.
async fn pending(ground: &Ground, server: &Arc<Server>) -> Result<Pending, String> {
    if let Some(pending) = server.invitation.pending() {
        return Ok(pending);
    }
    let login = Login::begin(&server.spec, &ground.keyring).await?;
    let (tell, end) = watch::channel(None);
    let pending = Pending { url: login.url.clone(), end };
    if let Some(earlier) = server.invitation.take_up(&pending) {
        return Ok(earlier);
    }
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        let end = login.done().await;
        if let Some(server) = server.upgrade().filter(|_| end.is_ok()) {
            server.want();
        }
        tell.send_replace(Some(end));
    });
    Ok(pending)
}

impl Invitation {
    /// The login under way.
    fn pending(&self) -> Option<Pending> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(Pending::is_open)
    }

    /// From now on this one, unless another is under way.
    fn take_up(&self, new: &Pending) -> Option<Pending> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = known.clone().filter(Pending::is_open);
        if earlier.is_none() {
            *known = Some(new.clone());
        }
        earlier
    }
}

impl Pending {
    fn is_open(&self) -> bool {
        self.end.borrow().is_none()
    }
}
