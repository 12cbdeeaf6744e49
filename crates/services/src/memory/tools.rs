//! `remember_memory`, `retrieve_memories` and how they are forgotten: an agent's way to what it was asked to remember.

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{Principal, ToolKind, ToolSpec};
use gander_tools::{BuiltIn, Signal};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Memories, Memory, MemoryError, Place, listed};
use crate::toolset::{Toolset, arguments as of, spec};

/// Every category.
pub(super) const ALL: &str = "*";

/// The memories of one person, for sessions in one folder.
pub struct MemoryTools {
    /// Everybody's.
    pub memories: Memories,
    /// Whose session it is.
    pub principal: Principal,
    /// The folder it works in.
    pub folder: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    category: String,
    data: String,
    #[serde(default)]
    tags: Vec<String>,
    is_global: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfCategory {
    category: String,
    is_global: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfText {
    category: String,
    memory_content: String,
    is_global: bool,
}

/// A call, read.
pub enum Wanted {
    Remember(Remember),
    Retrieve(OfCategory),
    Forget(OfCategory),
    ForgetOne(OfText),
}

/// The tools, as goose's users know them.
pub fn specs() -> Vec<ToolSpec> {
    let named = |name: &str| format!("{}{name}", BuiltIn::MEMORY);
    let text = || json!({"type": "string"});
    let global = json!({"type": "boolean", "description": "true: in every session, false: in this project"});
    vec![
        spec(
            &named("remember_memory"),
            "Remembers something beyond this session. Use it when the person asks you to, or says what should always hold.",
            &json!({"category": text(), "data": text(), "tags": {"type": "array", "items": text()}, "is_global": global}),
            &["category", "data", "is_global"],
        ),
        spec(
            &named("retrieve_memories"),
            "Gives what is remembered of a category; * for all of them.",
            &json!({"category": text(), "is_global": global}),
            &["category", "is_global"],
        ),
        spec(
            &named("remove_memory_category"),
            "Forgets everything of a category; * for all of them.",
            &json!({"category": text(), "is_global": global}),
            &["category", "is_global"],
        ),
        spec(
            &named("remove_specific_memory"),
            "Forgets one memory of a category, by its text.",
            &json!({"category": text(), "memory_content": text(), "is_global": global}),
            &["category", "memory_content", "is_global"],
        ),
    ]
}

#[async_trait]
impl Toolset for MemoryTools {
    type Wanted = Wanted;

    fn specs(&self) -> Vec<ToolSpec> {
        specs()
    }

    fn read(&self, name: &str, arguments: &Value) -> Option<Result<Wanted, String>> {
        Some(match name.strip_prefix(BuiltIn::MEMORY)? {
            "remember_memory" => of(arguments).map(Wanted::Remember),
            "retrieve_memories" => of(arguments).map(Wanted::Retrieve),
            "remove_memory_category" => of(arguments).map(Wanted::Forget),
            "remove_specific_memory" => of(arguments).map(Wanted::ForgetOne),
            _ => return None,
        })
    }

    fn title(&self, wanted: &Wanted) -> (String, ToolKind) {
        let shown = |category: &str, is_global: bool| {
            let place = if is_global { "everywhere" } else { "in this project" };
            format!("{} ({place})", sanitize::visible_line(category))
        };
        match wanted {
            Wanted::Remember(Remember { category, data, is_global, .. }) => (
                format!("Remember in {}: {}", shown(category, *is_global), sanitize::visible_line(data)),
                ToolKind::Edit,
            ),
            Wanted::Retrieve(OfCategory { category, is_global }) => {
                (format!("Recall {}", shown(category, *is_global)), ToolKind::Read)
            }
            Wanted::Forget(OfCategory { category, is_global }) => {
                (format!("Forget all of {}", shown(category, *is_global)), ToolKind::Delete)
            }
            Wanted::ForgetOne(OfText { category, memory_content, is_global }) => {
                let of = shown(category, *is_global);
                (format!("Forget in {of}: {}", sanitize::visible_line(memory_content)), ToolKind::Delete)
            }
        }
    }

    async fn carry_out(&self, wanted: Wanted, _signals: &mpsc::Sender<Signal>) -> Result<String, String> {
        self.done(wanted).await.map_err(|error| error.to_string())
    }
}

impl MemoryTools {
    async fn done(&self, wanted: Wanted) -> Result<String, MemoryError> {
        let (memories, principal) = (&self.memories, &self.principal);
        match wanted {
            Wanted::Remember(Remember { category, data, tags, is_global }) => {
                let memory = Memory { place: self.place(is_global), category, text: data, tags };
                memories.remember(principal, memory).await?;
                Ok("remembered".to_owned())
            }
            Wanted::Retrieve(OfCategory { category, is_global }) => {
                let place = self.place(is_global);
                let mut found = memories.of(principal).await?;
                found.retain(|memory| memory.is_of(&place, &category));
                Ok(if found.is_empty() { "nothing is remembered there".to_owned() } else { listed(&found) })
            }
            Wanted::Forget(OfCategory { category, is_global }) => {
                let count = memories.forget(principal, &self.place(is_global), &category).await?;
                Ok(format!("forgot {count} memories"))
            }
            Wanted::ForgetOne(OfText { category, memory_content, is_global }) => {
                memories.forget_one(principal, &self.place(is_global), &category, &memory_content).await?;
                Ok("forgot it".to_owned())
            }
        }
    }

    fn place(&self, is_global: bool) -> Place {
        if is_global { Place::Everywhere } else { Place::Project(self.folder.clone()) }
    }
}
