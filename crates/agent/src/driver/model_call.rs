//! The model call under way.

use std::sync::Arc;

use futures::future::BoxFuture;
use gander_models::{Model, ModelError, ModelStream, Request};

use crate::turn::Input;

/// The model call under way, if any. Replacing it stops it.
pub(super) enum ModelCall {
    Idle,
    Connecting(BoxFuture<'static, Result<ModelStream, ModelError>>),
    Open(ModelStream),
}

impl ModelCall {
    pub(super) fn start(model: Arc<dyn Model>, request: Request) -> Self {
        Self::Connecting(Box::pin(async move { model.stream(request).await }))
    }

    /// What the model says next; never, if it is not asked. Nothing is lost if the caller stops waiting.
    pub(super) async fn next_input(&mut self) -> Input {
        loop {
            match self {
                Self::Idle => return std::future::pending().await,
                Self::Connecting(call) => match call.await {
                    Ok(stream) => *self = Self::Open(stream),
                    Err(error) => return self.handle_failure(error),
                },
                Self::Open(stream) => match stream.next_batch().await {
                    Some(Ok(events)) => return Input::Model(events),
                    Some(Err(error)) => return self.handle_failure(error),
                    // After a whole answer the turn no longer listens.
                    None => {
                        return self.handle_failure(ModelError::BadStream("the model's answer broke off".to_owned()));
                    }
                },
            }
        }
    }

    fn handle_failure(&mut self, error: ModelError) -> Input {
        *self = Self::Idle;
        Input::ModelFailed(error)
    }
}
