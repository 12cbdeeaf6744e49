//! One question to a model, whose answer is one JSON object.

use std::sync::Arc;

use gander_domain::{Delta, DeltaKind, Message, MessageId, Role, Usage};
use gander_models::{Finish, Model, ModelEvent, Request, Tokens};
use serde::de::DeserializeOwned;

/// How much of a prompt is shown.
pub(crate) const MAX_PROMPT_BYTES: usize = 8_000;

/// A model that is asked about requests, and what its answers used.
pub struct ModelQuery<'a> {
    model: &'a dyn Model,
    used: Vec<Usage>,
}

impl<'a> ModelQuery<'a> {
    /// One that was not asked yet.
    pub fn new(model: &'a dyn Model) -> Self {
        Self { model, used: Vec::new() }
    }

    /// What each answer used, in order. Somebody has to pay for it.
    pub fn into_usage(self) -> Vec<Usage> {
        self.used
    }

    fn add_usage(&mut self, finish: &Finish) {
        // Nothing: the provider does not say.
        if finish.usage != Tokens::default() {
            self.used.push(self.model.info().priced_usage(&finish.usage));
        }
    }
}

/// What is asked.
pub(crate) struct QueryInput<'a> {
    /// What the model is to do.
    pub system: &'a str,
    /// What stands before the prompt.
    pub before: &'a str,
    /// The prompt, which is material.
    pub prompt: &'a str,
    /// Tokens that it may write.
    pub longest: u32,
}

/// What the model answers, or why that is no help.
pub(crate) async fn ask_model_as_json<T: DeserializeOwned>(
    adviser: &mut ModelQuery<'_>,
    asked: &QueryInput<'_>,
) -> Result<T, String> {
    let mut stream = adviser.model.stream(model_query_request(asked)).await.map_err(|error| error.to_string())?;
    let mut text = String::new();
    while let Some(events) = stream.next_batch().await {
        for event in events.map_err(|error| error.to_string())? {
            if let ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: more }) = &event {
                text.push_str(more);
            } else if let ModelEvent::Done(finish) = &event {
                adviser.add_usage(finish);
            }
        }
    }
    parse_model_query_json(&text)
}

/// The object in an answer, wherever it stands.
pub(crate) fn parse_model_query_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let object = text.find('{').zip(text.rfind('}')).filter(|(from, to)| from < to);
    let (from, to) = object.ok_or("it gave no JSON")?;
    serde_json::from_str(&text[from..=to]).map_err(|error| error.to_string())
}

fn model_query_request(asked: &QueryInput<'_>) -> Request {
    let shown = &asked.prompt[..asked.prompt.floor_char_boundary(MAX_PROMPT_BYTES)];
    let text = format!("{}\n\n=====\n{shown}\n=====", asked.before);
    Request {
        system: asked.system.to_owned(),
        messages: vec![Arc::new(Message::text(MessageId::new(Default::default()), Role::User, text))],
        tools: Arc::new([]),
        effort: None,
        temperature: None,
        max_output: Some(asked.longest),
        params: serde_json::Map::new(),
    }
}
