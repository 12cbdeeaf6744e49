//! The agents that are built in, file by file.

use super::mode_file::ModeFile;

macro_rules! builtin_mode_files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("builtin/", $path)))),*]
    };
}

/// Path and text, in the order in which they are shown.
const FILES: &[(&str, &str)] = builtin_mode_files![
    "gander/agent.md",
    "gander/assistant.md",
    "gander/specialist.md",
    "gander/recipe_maker.md",
    "gander/app_maker.md",
    "gander/app_iterator.md",
    "gander/judge.md",
    "gander/planner.md",
    "coding/agent.md",
    "coding/pm.md",
    "coding/architect.md",
    "coding/backend.md",
    "coding/frontend.md",
    "coding/qa.md",
    "coding/security.md",
    "coding/sre.md",
    "coding/devsecops.md",
];

pub(super) fn builtin_mode_files() -> Vec<ModeFile> {
    FILES.iter().map(|(path, text)| ModeFile { path: (*path).to_owned(), text: (*text).to_owned() }).collect()
}
