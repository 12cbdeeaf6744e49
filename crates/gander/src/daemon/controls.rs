//! What a local client tells the server itself, through its ACP connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use gander_services::Control;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::server::{Listening, Server, WantedListener};
use super::{listen_security, tickets};
use crate::app::ControlRequest;

/// Handles requests until the listeners close.
pub(super) async fn handle_controls(server: Arc<Server>, mut controls: mpsc::Receiver<ControlRequest>) {
    let mut open = Vec::new();
    loop {
        let request = tokio::select! {
            () = server.stop.cancelled() => return,
            request = controls.recv() => request,
        };
        let Some((control, answer)) = request else { return };
        let result = handle_control(&server, control, &mut open).await;
        if answer.send(result).is_err() {
            tracing::debug!("whoever told the server something did not wait");
        }
    }
}

async fn handle_control(server: &Arc<Server>, control: Control, open: &mut Vec<DropGuard>) -> Result<Value, String> {
    match control {
        Control::Listen { address, security } => {
            let address = match address {
                Some(text) => text.parse().map_err(|_| format!("not an address such as 127.0.0.1:4747: {text}"))?,
                None => server.app.config().sections.server.listen,
            };
            let security = security.unwrap_or_else(|| listen_security(server.app.config()));
            let Listening { address, fingerprint, guard, key: _ } =
                server.listen(WantedListener::without_key(address, security)).map_err(|error| error.to_string())?;
            open.push(guard);
            let mut answer = json!({ "listening": address });
            if let Some(fingerprint) = fingerprint {
                answer["fingerprint"] = json!(fingerprint);
            }
            Ok(answer)
        }
        Control::Ticket { reach, address } => {
            let (open_at, guard) = tickets::listen_for_browser(server, reach, address)?;
            open.extend(guard);
            tickets::issue_ticket(server, reach, &open_at).await
        }
        Control::RevokeBrowsers => {
            let count = server.gateway.http.browsers.revoke_all().await.map_err(|error| error.to_string())?;
            Ok(json!({ "revoked": count }))
        }
        Control::Unlisten => {
            open.clear();
            Ok(json!({}))
        }
        Control::Describe => Ok(describe_for_control(server)),
        Control::Settings => {
            let live = server.app.live_config();
            Ok(json!({ "file": live.started().file, "fault": live.fault(), "active": live.active_settings() }))
        }
        Control::Drain => {
            server.stop_requested.cancel();
            Ok(json!({}))
        }
    }
}

fn describe_for_control(server: &Server) -> Value {
    let listening = server.open_addresses().into_iter().map(|open| {
        let scheme = if open.fingerprint.is_some() { "https" } else { "http" };
        json!({ "address": open.address, "url": format!("{scheme}://{}", open.address), "fingerprint": open.fingerprint })
    });
    let since = server.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "pid": std::process::id(),
        "version": crate::VERSION,
        "background": server.background,
        "startedAt": since,
        // Whoever asks is one of them.
        "clients": server.clients.load(Ordering::Relaxed).saturating_sub(1),
        "runningSessions": server.app.services().hub.active_sessions(),
        "listening": listening.collect::<Vec<_>>(),
    })
}
