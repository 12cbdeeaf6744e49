//! Providers of the long tail, through the `genai` crate.
