//! A task is its updates, applied in order.

use super::update::{Chunk, Update};
use super::{Artifact, Content, Part, Task};

impl Task {
    /// Takes in what was told. The first update of all makes the task.
    pub fn apply(task: &mut Option<Self>, update: Update<'_>) {
        match (task.as_mut(), update) {
            (_, Update::Begin(begun)) => *task = Some(*begun),
            (Some(task), Update::Chunk(chunk)) => task.grow(chunk),
            (Some(task), Update::Artifact(update)) => task.made(update.artifact, update.append),
            (Some(task), Update::Status(update)) => {
                let before = std::mem::replace(&mut task.status, update.status);
                task.history.extend(before.message);
                if update.metadata.is_some() {
                    task.metadata = update.metadata;
                }
            }
            (Some(task), Update::Reply(message) | Update::Said(message)) => task.history.push(*message),
            (None, Update::Chunk(_) | Update::Artifact(_) | Update::Status(_) | Update::Reply(_) | Update::Said(_)) => {
            }
        }
    }

    /// The same with no more than the last so many messages. Nothing said: all.
    #[must_use]
    pub fn with_history(mut self, length: Option<usize>) -> Self {
        if let Some(length) = length {
            self.history.drain(..self.history.len().saturating_sub(length));
        }
        self
    }

    fn grow(&mut self, chunk: Chunk<'_>) {
        let id = chunk.artifact.to_string();
        let part = Part::text(chunk.text);
        self.made(Artifact { artifact_id: id, name: None, parts: vec![part] }, chunk.append);
    }

    fn made(&mut self, artifact: Artifact, append: bool) {
        let known = self.artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id);
        match known {
            Some(known) if append => artifact.parts.into_iter().for_each(|part| add(&mut known.parts, part)),
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
    }
}

/// Adjacent words are one part.
fn add(parts: &mut Vec<Part>, part: Part) {
    if let Some(last) = parts.last_mut().filter(|last| last.is_plain_text() && part.is_plain_text())
        && let (Content::Text(last), Content::Text(text)) = (&mut last.content, &part.content)
    {
        last.push_str(text);
        return;
    }
    parts.push(part);
}
