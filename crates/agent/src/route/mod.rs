//! Which agent and mode fits a prompt: by its words, or by asking a model.

mod judged;
mod words;

pub use judged::judged;
pub use words::by_words;
