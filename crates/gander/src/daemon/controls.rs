//! What a local client tells the server itself, through its ACP connection.

use std::sync::Arc;

use gander_services::Control;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::listen_security;
use super::server::{Listening, Server};
use crate::app::ControlAsk;

/// Obeys until the listeners close.
pub(super) async fn obey(server: Arc<Server>, mut controls: mpsc::Receiver<ControlAsk>) {
    let mut open = Vec::new();
    loop {
        let asked = tokio::select! {
            () = server.stop.cancelled() => return,
            asked = controls.recv() => asked,
        };
        let Some((control, answer)) = asked else { return };
        let result = carry_out(&server, control, &mut open).await;
        if answer.send(result).is_err() {
            tracing::debug!("whoever told the server something did not wait");
        }
    }
}

async fn carry_out(server: &Arc<Server>, control: Control, open: &mut Vec<DropGuard>) -> Result<Value, String> {
    match control {
        Control::Listen { address, security } => {
            let address = match address {
                Some(text) => text.parse().map_err(|_| format!("not an address such as 127.0.0.1:4747: {text}"))?,
                None => server.app.config().sections.server.listen,
            };
            let security = security.unwrap_or_else(|| listen_security(server.app.config()));
            let Listening { address, fingerprint, guard } =
                server.listen(address, security).map_err(|error| error.to_string())?;
            open.push(guard);
            let mut told = json!({ "listening": address });
            if let Some(fingerprint) = fingerprint {
                told["fingerprint"] = json!(fingerprint);
            }
            Ok(told)
        }
        Control::Unlisten => {
            open.clear();
            Ok(json!({}))
        }
        Control::Drain => {
            server.asked.cancel();
            Ok(json!({}))
        }
    }
}
