//! Which agent and mode fits a prompt: by its words, or by asking a model.

mod heuristic;
mod llm;
mod model_query;

pub use heuristic::route_by_words;
pub(crate) use llm::list_roles_for_route;
pub use llm::route_by_model;
pub use model_query::ModelQuery;
pub(crate) use model_query::{MAX_PROMPT_BYTES, QueryInput, ask_model_as_json};
