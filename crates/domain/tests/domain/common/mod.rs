//! What the law tests share.

pub mod checks;
pub mod steps;
