//! What becomes of a prompt whose session leaves open who answers: one mode takes it, or its parts go to sub-agents.

use std::sync::Arc;

use gander_agent::modes::ModeSet;
use gander_agent::route::ModelQuery;
use gander_agent::{decompose, route};
use gander_domain::{Context, Message, Part, Role, Route};

/// The parts of the prompt, if it is several requests in one: by its words, or as a model says if one is asked.
pub(super) async fn split_prompt(
    modes: &ModeSet,
    context: &Context,
    query: Option<&mut ModelQuery<'_>>,
) -> Option<decompose::Decomposition> {
    // Sub-agents see nothing of what was said before.
    if context.run_start_index() > 0 {
        return None;
    }
    // They are told in words: a picture or a file would not reach them.
    let text = |part: &Part| matches!(part, Part::Text { .. });
    let prompt = routed_prompt_message(context).filter(|message| message.parts.iter().all(text))?.plain_text();
    let split = match query {
        Some(query) => decompose::decompose_by_model(query, modes, &prompt).await,
        None => decompose::decompose_by_words(modes, &prompt),
    };
    Some(split).filter(decompose::Decomposition::is_compound)
}

/// Who answers the prompt: by its words, or as a model says if one is asked. None if nothing was asked.
pub(super) async fn choose_route(
    modes: &ModeSet,
    context: &Context,
    query: Option<&mut ModelQuery<'_>>,
) -> Option<Route> {
    let (prompt, settings) = (routed_prompt_message(context)?.plain_text(), &context.settings);
    Some(match query {
        Some(query) => route::route_by_model(query, modes, settings, &prompt).await,
        None => route::route_by_words(modes, settings, &prompt),
    })
}

fn routed_prompt_message(context: &Context) -> Option<&Arc<Message>> {
    context.messages[context.run_start_index()..].iter().find(|message| message.role == Role::User)
}
