//! The hub, with one task per active session, and the back-ends that run agents elsewhere.
//!
//! It works without the native loop: whatever implements [`backend::Backend`] can serve sessions.

pub mod backend;
pub mod hub;
