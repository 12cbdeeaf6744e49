//! Says what it was told.

use async_trait::async_trait;

use crate::backend::handler::{Handler, Stop, Turn};

/// Says what it was told, in one message.
pub(super) struct Echo;

#[async_trait]
impl Handler for Echo {
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop> {
        turn.send(turn.prompt().to_vec()).await
    }
}
