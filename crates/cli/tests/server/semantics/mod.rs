//! What requests mean at every protocol: ids agree, an answer counts once, a key is one request, lists are complete,
//! and what has another form is refused.

#![allow(clippy::unwrap_used)]

mod answers;
mod forms;
mod ids;
mod lists;
mod repeats;
mod rows;
mod test_server;
