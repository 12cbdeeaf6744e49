//! Which agent and mode fits a prompt: by its words, or by asking a model.

mod asked;
mod judged;
mod words;

pub use asked::Adviser;
pub(crate) use asked::{Asked, SHOWN, asked};
pub use judged::judged;
pub(crate) use judged::roles;
pub use words::by_words;
