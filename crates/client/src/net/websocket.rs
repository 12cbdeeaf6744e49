//! A WebSocket: one message per text frame, and a sign of life now and then.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Upgraded;
use reqwest::header;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, error::CapacityError};

use super::{MAX_MESSAGE, send_net_request_expecting, unreachable_server_error};
use crate::LinkError;
use crate::link::LinkPeer;

/// How often the server is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may be silent.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);
/// A small buffer, as most messages are small.
const WRITE_BUFFER_SIZE: usize = 16 * 1024;

pub(super) type Socket = WebSocketStream<Upgraded>;

/// Shakes hands.
pub(super) async fn open_websocket(client: &reqwest::Client, url: &str) -> Result<Socket, LinkError> {
    let key = generate_key();
    let request = client.get(url).header(header::CONNECTION, "Upgrade").header(header::UPGRADE, "websocket");
    let request = request.header(header::SEC_WEBSOCKET_VERSION, "13").header(header::SEC_WEBSOCKET_KEY, &key);
    let response = send_net_request_expecting(request, &[101]).await?;
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(LinkError::Unreachable("the server speaks no WebSocket".to_owned()));
    }
    let upgraded = response.upgrade().await.map_err(|error| unreachable_server_error(&error))?;
    let config = WebSocketConfig::default()
        .read_buffer_size(WRITE_BUFFER_SIZE)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

/// Carries messages both ways until one side has had enough.
pub(super) async fn run_websocket(socket: Socket, far: LinkPeer) {
    let LinkPeer { mut outgoing, incoming, end } = far;
    let (mut writer, mut reader) = socket.split();
    let lost = incoming.clone();
    let write = async {
        let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + PING_INTERVAL, PING_INTERVAL);
        loop {
            let message = tokio::select! {
                message = outgoing.recv() => message.map(websocket_text_message),
                _ = beat.tick() => Some(Message::Ping(Default::default())),
            };
            match message {
                Some(message) => writer.send(message).await?,
                None => return writer.close().await,
            }
        }
    };
    let read = async {
        loop {
            let Ok(arrived) = tokio::time::timeout(SILENCE_TIMEOUT, reader.next()).await else {
                return incoming.send(Err(websocket_silence_error())).await.ok();
            };
            forward_websocket_message(&incoming, arrived).await?;
        }
    };
    tokio::select! {
        // Once nobody wants the link any more it ends by the writer's close.
        written = write => if let Err(error) = written {
            lost.send(Err(websocket_error(error))).await.ok();
        },
        _ = read => {}
        () = async { end.cancelled().await; tokio::time::sleep(Duration::from_secs(1)).await } => {}
    }
}

/// Passes on what arrived; `None` if nothing more will.
async fn forward_websocket_message(
    incoming: &mpsc::Sender<Result<Vec<u8>, LinkError>>,
    arrived: Option<Result<Message, Error>>,
) -> Option<()> {
    let message = match arrived? {
        Ok(Message::Text(text)) => Ok(text.as_bytes().to_vec()),
        // Binary frames carry nothing in this protocol; the others are the socket's own.
        Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Close(_)) => {
            return Some(());
        }
        Err(Error::ConnectionClosed | Error::AlreadyClosed) => return None,
        Err(error) => Err(websocket_error(error)),
    };
    let over = message.is_err();
    incoming.send(message).await.ok().filter(|()| !over)
}

fn websocket_text_message(message: Vec<u8>) -> Message {
    // Our own JSON is UTF-8.
    Message::text(String::from_utf8_lossy(&message).into_owned())
}

fn websocket_silence_error() -> LinkError {
    LinkError::Unreachable(format!("not a word for {SILENCE_TIMEOUT:?}"))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum")]
fn websocket_error(error: Error) -> LinkError {
    match error {
        Error::Io(error) => LinkError::Io(error),
        Error::Capacity(CapacityError::MessageTooLong { .. }) => LinkError::TooLong,
        other => LinkError::Unreachable(other.to_string()),
    }
}
