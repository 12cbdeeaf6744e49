//! A task is its updates, applied in order.

use super::update::{TaskUpdate, TextChunk};
use super::{A2aArtifact, A2aPart, A2aPartContent, A2aTask};

impl A2aTask {
    /// Takes in what was told. The first update of all makes the task.
    pub fn apply_update(task: &mut Option<Self>, update: TaskUpdate<'_>) {
        match (task.as_mut(), update) {
            (_, TaskUpdate::Begin(begun)) => *task = Some(*begun),
            (Some(task), TaskUpdate::Chunk(chunk)) => task.append_chunk(chunk),
            (Some(task), TaskUpdate::Artifact(update)) => task.apply_artifact(update.artifact, update.append),
            (Some(task), TaskUpdate::Status(update)) => {
                let before = std::mem::replace(&mut task.status, update.status);
                task.history.extend(before.message);
                if update.metadata.is_some() {
                    task.metadata = update.metadata;
                }
            }
            (Some(task), TaskUpdate::Reply(message) | TaskUpdate::Said(message)) => task.history.push(*message),
            (
                None,
                TaskUpdate::Chunk(_)
                | TaskUpdate::Artifact(_)
                | TaskUpdate::Status(_)
                | TaskUpdate::Reply(_)
                | TaskUpdate::Said(_),
            ) => {}
        }
    }

    /// The same with no more than the last so many messages. Nothing said: all.
    #[must_use]
    pub fn with_history_length(mut self, length: Option<usize>) -> Self {
        if let Some(length) = length {
            self.history.drain(..self.history.len().saturating_sub(length));
        }
        self
    }

    fn append_chunk(&mut self, chunk: TextChunk<'_>) {
        let id = chunk.artifact.to_string();
        let part = A2aPart::text(chunk.text);
        self.apply_artifact(A2aArtifact { artifact_id: id, name: None, parts: vec![part] }, chunk.append);
    }

    fn apply_artifact(&mut self, artifact: A2aArtifact, append: bool) {
        let known = self.artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id);
        match known {
            Some(known) if append => artifact.parts.into_iter().for_each(|part| push_task_part(&mut known.parts, part)),
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
    }
}

/// Adjacent words are one part.
fn push_task_part(parts: &mut Vec<A2aPart>, part: A2aPart) {
    if let Some(last) = parts.last_mut().filter(|last| last.is_plain_text() && part.is_plain_text())
        && let (A2aPartContent::Text(last), A2aPartContent::Text(text)) = (&mut last.content, &part.content)
    {
        last.push_str(text);
        return;
    }
    parts.push(part);
}
