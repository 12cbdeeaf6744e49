//! The session machine and its folds: laws, scripts, plans and what the model is shown.

mod common;
mod context;
mod laws;
mod plans;
mod provenance;
mod scripts;
