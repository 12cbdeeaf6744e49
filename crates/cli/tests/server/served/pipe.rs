//! A pipe in memory that speaks the Agent Client Protocol to an application.

use std::sync::Arc;

use gander::app::App;
use gander_domain::Principal;
use gander_domain::caller::Caller;
use gander_gateway::ClientPeer;
use gander_testkit::harness::Client;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// The client's ends, for this principal.
pub fn open(app: &Arc<App>, principal: Principal) -> (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
    let (ours, theirs) = duplex(64 * 1024);
    let (reader, writer) = split(theirs);
    let peer = ClientPeer::new(Caller::local(principal));
    let app = Arc::clone(app);
    tokio::spawn(async move { app.serve_acp(reader, writer, peer).await });
    split(ours)
}

/// A client of this principal that has introduced itself.
pub async fn client(app: &Arc<App>, principal: Principal) -> Client {
    let (reader, writer) = open(app, principal);
    let mut client = Client::over(reader, writer);
    client.initialize().await.unwrap();
    client
}
