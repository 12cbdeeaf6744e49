//! What a client is told about a task.

use std::borrow::Cow;

use gander_domain::MessageId;

use super::{ArtifactUpdate, Message, StatusUpdate, Task, TaskState};

/// Something that a client is told about a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Update<'a> {
    /// It is there.
    Begin(Box<Task>),
    /// Its text grew: the hot path.
    Chunk(Chunk<'a>),
    /// It made something.
    Artifact(Box<ArtifactUpdate>),
    /// It is now here.
    Status(Box<StatusUpdate>),
    /// There is no task, this is the answer.
    Reply(Box<Message>),
    /// A person said something. Shows in the history, and is told to nobody.
    Said(Box<Message>),
}

/// A piece of one artifact's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Which artifact.
    pub artifact: MessageId,
    /// It is there already.
    pub append: bool,
    /// What comes.
    pub text: Cow<'a, str>,
}

impl Update<'_> {
    /// The same, owing nothing.
    pub fn into_owned(self) -> Update<'static> {
        match self {
            Update::Begin(task) => Update::Begin(task),
            Update::Chunk(Chunk { artifact, append, text }) => {
                Update::Chunk(Chunk { artifact, append, text: Cow::Owned(text.into_owned()) })
            }
            Update::Artifact(update) => Update::Artifact(update),
            Update::Status(update) => Update::Status(update),
            Update::Reply(message) => Update::Reply(message),
            Update::Said(message) => Update::Said(message),
        }
    }

    /// The state that it tells, if it tells one.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Update::Begin(task) => Some(task.status.state),
            Update::Status(update) => Some(update.status.state),
            Update::Chunk(_) | Update::Artifact(_) | Update::Reply(_) | Update::Said(_) => None,
        }
    }
}
