//! What people wrote for agents: context files and skills, read with bounds and with nothing hidden in them.
//!
//! All of it is text for the model and never configuration: it is read in any folder, and nothing that it names starts.

mod load_skill;
mod reader;
pub mod skills;

use std::path::{Path, PathBuf};

use gander_tools::FileAccess;

use reader::ContextFileReader;

pub(crate) use load_skill::LoadSkill;
pub use skills::Skill;

/// The context files that are looked for in a folder, unless the owner says otherwise.
pub const FILES: [&str; 2] = ["AGENTS.md", ".goosehints"];

/// Where a person keeps notes and skills of their own, for all projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserDirs {
    /// Folders with context files.
    pub notes: Vec<PathBuf>,
    /// Folders of skills.
    pub skills: Vec<PathBuf>,
    /// Folders of recipes.
    pub recipes: Vec<PathBuf>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextFiles {
    /// The context files, each under its name; may be empty.
    pub hints: String,
    /// The skills there are.
    pub skills: Vec<Skill>,
    /// What was left out, for people.
    pub warnings: Vec<String>,
}

impl ContextFiles {
    /// Reads the person's own notes, those of the folders above the workspace up to its repository, and the workspace's.
    pub fn read_context_files(access: &FileAccess, own: &UserDirs, workspace: &Path, names: &[String]) -> Self {
        let mut reader = ContextFileReader::new(names);
        own.notes.iter().for_each(|folder| reader.read_folder(&access.of_owner(), folder));
        context_file_folders(workspace).iter().rev().for_each(|folder| reader.read_folder(access, folder));
        reader.read_folder(access, workspace);
        let (hints, mut warnings) = reader.into_text_and_notices();
        let (skills, more) = skills::find_skills(access, &own.skills, workspace);
        warnings.extend(more);
        Self { hints, skills, warnings }
    }
}

/// The folders above this one that belong to the same repository, the nearest first.
fn context_file_folders(workspace: &Path) -> Vec<PathBuf> {
    if workspace.join(".git").exists() {
        return Vec::new();
    }
    let upper: Vec<&Path> = workspace.ancestors().skip(1).collect();
    let top = upper.iter().position(|folder| folder.join(".git").exists());
    top.map_or_else(Vec::new, |top| upper[..=top].iter().map(|folder| (*folder).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn notes_of_a_repository_are_read_from_its_top_down() {
        let home = tempfile::tempdir().unwrap();
        let (own, top) = (home.path().join("own"), home.path().join("repo"));
        let inner = top.join("crates/inner");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(top.join(".git")).unwrap();
        std::fs::write(home.path().join("AGENTS.md"), "not of this repository").unwrap();
        std::fs::write(own.join("AGENTS.md"), "be brief").unwrap();
        std::fs::write(top.join("AGENTS.md"), "use just").unwrap();
        std::fs::write(inner.join(".goosehints"), "this is the inner crate").unwrap();
        let own = UserDirs { notes: vec![own], ..UserDirs::default() };
        let notes = ContextFiles::read_context_files(&FileAccess::default(), &own, &inner, &FILES.map(str::to_owned));
        let order = ["be brief", "use just", "inner crate"].map(|text| notes.hints.find(text).unwrap());
        assert!(order.is_sorted(), "{}", notes.hints);
        assert!(!notes.hints.contains("not of this"), "{}", notes.hints);
        assert_eq!(notes.warnings, Vec::<String>::new());
    }
}
