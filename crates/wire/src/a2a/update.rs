//! What a client is told about a task.

use std::borrow::Cow;

use gander_domain::MessageId;

use super::{A2aMessage, A2aTask, ArtifactUpdate, StatusUpdate, TaskState};

/// Something that a client is told about a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskUpdate<'a> {
    /// It is there.
    Begin(Box<A2aTask>),
    /// Its text grew: the hot path.
    Chunk(TextChunk<'a>),
    /// It made something.
    Artifact(Box<ArtifactUpdate>),
    /// It is now here.
    Status(Box<StatusUpdate>),
    /// There is no task, this is the answer.
    Reply(Box<A2aMessage>),
    /// A person said something. Shows in the history, and is told to nobody.
    Said(Box<A2aMessage>),
}

/// A piece of one artifact's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextChunk<'a> {
    /// Which artifact.
    pub artifact: MessageId,
    /// It is there already.
    pub append: bool,
    /// What comes.
    pub text: Cow<'a, str>,
}

impl TaskUpdate<'_> {
    /// The same, owing nothing.
    pub fn into_owned(self) -> TaskUpdate<'static> {
        match self {
            TaskUpdate::Begin(task) => TaskUpdate::Begin(task),
            TaskUpdate::Chunk(TextChunk { artifact, append, text }) => {
                TaskUpdate::Chunk(TextChunk { artifact, append, text: Cow::Owned(text.into_owned()) })
            }
            TaskUpdate::Artifact(update) => TaskUpdate::Artifact(update),
            TaskUpdate::Status(update) => TaskUpdate::Status(update),
            TaskUpdate::Reply(message) => TaskUpdate::Reply(message),
            TaskUpdate::Said(message) => TaskUpdate::Said(message),
        }
    }

    /// The state that it tells, if it tells one.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            TaskUpdate::Begin(task) => Some(task.status.state),
            TaskUpdate::Status(update) => Some(update.status.state),
            TaskUpdate::Chunk(_) | TaskUpdate::Artifact(_) | TaskUpdate::Reply(_) | TaskUpdate::Said(_) => None,
        }
    }
}
