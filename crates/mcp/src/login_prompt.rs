//! Asks the people of a run to log in at a server that wants it.

use std::sync::Arc;

use gander_domain::{QuestionKind, QuestionOrigin, Reply, Severity};
use tokio::sync::watch;

use super::login::Login;
use super::pending_login::PendingLogin;
use super::server::McpServer;
use super::server_env::ServerEnv;

/// Asks a person to log in. A login that was begun holds, also if the run that asked is over.
pub(super) async fn prompt_login(env: ServerEnv, server: Arc<McpServer>) {
    let end = match find_or_begin_login(&env, &server).await {
        Ok(pending) => prompt_to_visit_login(&env, &server, pending).await,
        Err(reason) => Some(Err(reason)),
    };
    if let Some(Err(reason)) = end {
        let title = format!("{} is not authorized: {}", server.name, env.redactor.redact_text(&reason));
        env.session.send_notice(Severity::Warning, &title, None);
    }
}

/// None if the person does not want to.
async fn prompt_to_visit_login(
    env: &ServerEnv,
    server: &McpServer,
    mut pending: PendingLogin,
) -> Option<Result<(), String>> {
    let title = format!("{} needs authorization: open {}", server.name, pending.url);
    let visit = QuestionKind::Visit { url: pending.url.clone() };
    let ask = env.session.ask_person(&title, visit, QuestionOrigin::NonBlocking);
    tokio::select! {
        end = wait_for_prompted_login(&mut pending) => return Some(end),
        reply = ask => match reply {
            Reply::Filled { .. } | Reply::Chosen { .. } => {}
            Reply::Rejected { .. }
            | Reply::Declined
            | Reply::Cancelled
            | Reply::Interrupted
            | Reply::Superseded => return None,
        },
    }
    Some(wait_for_prompted_login(&mut pending).await)
}

async fn wait_for_prompted_login(pending: &mut PendingLogin) -> Result<(), String> {
    let end = pending.end.wait_for(Option::is_some).await.map(|end| end.clone());
    end.ok().flatten().unwrap_or_else(|| Err("the login was given up".to_owned()))
}

/// The login under way; a new one if there is none. Of two that are begun at once the later is given up.
async fn find_or_begin_login(env: &ServerEnv, server: &Arc<McpServer>) -> Result<PendingLogin, String> {
    if let Some(pending) = server.login.pending_login() {
        return Ok(pending);
    }
    let login = Login::begin_login(&server.spec, &env.keyring).await?;
    let (tell, end) = watch::channel(None);
    let pending = PendingLogin { url: login.url.clone(), end };
    if let Some(earlier) = server.login.take_up(&pending) {
        return Ok(earlier);
    }
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        let end = login.wait_until_done().await;
        if let Some(server) = server.upgrade().filter(|_| end.is_ok()) {
            server.request_start();
        }
        tell.send_replace(Some(end));
    });
    Ok(pending)
}
