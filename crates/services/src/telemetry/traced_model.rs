//! A model whose calls are spans.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream;
use gander_domain::trace::TraceContext;
use gander_models::{Finish, Model, ModelError, ModelEvent, ModelInfo, ModelStream, Request};
use gander_store::clock;

use super::{Span, SpanKind, Telemetry, random_id};

/// Notes each call of a model. What is said in it is not looked at, and nothing of the trace is told to the provider.
pub(super) struct TracedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) telemetry: Telemetry,
    /// The run that calls.
    pub(super) run: TraceContext,
}

/// A call under way. It ends with the whole answer, a failure, or when it is dropped, as a cancelled call is.
struct OpenCall {
    span: Option<Span>,
    telemetry: Telemetry,
}

#[async_trait]
impl Model for TracedModel {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, ModelError> {
        let mut call = self.begin_call();
        let answer = self.model.stream(request).await.inspect_err(|error| call.fail(error))?;
        let batches = stream::unfold((answer, call), async |(mut answer, mut call)| {
            let batch = answer.next_batch().await?;
            match &batch {
                Ok(events) => call.handle_events(events),
                Err(error) => call.fail(error),
            }
            Some((batch, (answer, call)))
        });
        Ok(ModelStream::new(batches))
    }
}

impl TracedModel {
    fn begin_call(&self) -> OpenCall {
        let info = self.model.info();
        let span_id = random_id().map_or(1, |id| id as u64 | 1);
        let context = TraceContext { span_id, ..self.run };
        let name = format!("chat {}", info.model);
        let span = Span::new(context, Some(self.run.span_id), &name, SpanKind::Client, clock::current_time())
            .with("gen_ai.operation.name", "chat")
            .with("gen_ai.provider.name", info.provider.as_str())
            .with("gen_ai.request.model", info.model.as_str());
        OpenCall { span: Some(span), telemetry: self.telemetry.clone() }
    }
}

impl OpenCall {
    fn handle_events(&mut self, events: &[ModelEvent]) {
        if let Some(ModelEvent::Done(Finish { usage, .. })) = events.last()
            && let Some(span) = self.span.take()
        {
            let span = span.with("gen_ai.usage.input_tokens", usage.input);
            self.telemetry.end_span(span.with("gen_ai.usage.output_tokens", usage.output));
        }
    }

    fn fail(&mut self, error: &ModelError) {
        self.end_with(model_error_type(error));
    }

    fn end_with(&mut self, error: &str) {
        if let Some(span) = self.span.take() {
            self.telemetry.end_span(Span { error: Some(error.to_owned()), ..span });
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.end_with("cancelled");
    }
}

/// One word: the message names addresses and what a provider said.
fn model_error_type(error: &ModelError) -> &'static str {
    match error {
        ModelError::Unauthorized(_) => "unauthorized",
        ModelError::NoCredit(_) => "no_credit",
        ModelError::RateLimited { .. } => "rate_limited",
        ModelError::Overloaded { .. } => "overloaded",
        ModelError::ContextTooLong(_) => "context_too_long",
        ModelError::NotFound(_) => "not_found",
        ModelError::BadRequest(_) => "bad_request",
        ModelError::Refused(_) => "refused",
        ModelError::Network(_) => "network",
        ModelError::TimedOut(_) => "timed_out",
        ModelError::Idle(_) => "idle",
        ModelError::BadStream(_) => "bad_stream",
        ModelError::BadArguments(_) => "bad_arguments",
    }
}
