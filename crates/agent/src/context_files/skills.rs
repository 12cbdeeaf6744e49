//! Skills: folders with a `SKILL.md` that says what it is for. A model is told their names and loads one on demand.

use std::path::{Path, PathBuf};

use gander_domain::sanitize;
use gander_tools::FileAccess;
use serde::Deserialize;

use crate::front_matter;

/// Where a project keeps its skills.
const FOLDERS: [&str; 4] = [".agents/skills", ".gander/skills", ".goose/skills", ".claude/skills"];

/// Skills that are listed; more would only fill the window.
const MAX_SKILLS: usize = 100;

/// Bytes of one file of a skill.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Letters of a description that are listed.
const MAX_DESCRIPTION_CHARS: usize = 1_024;

/// Files of a skill that are named.
const MAX_LISTED_FILES: usize = 50;

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name: lower-case letters, digits and dashes.
    pub name: String,
    /// When to use it, in one line.
    pub description: String,
    /// Its folder.
    pub folder: PathBuf,
}

#[derive(Deserialize)]
struct SkillFrontMatter {
    name: Option<String>,
    description: String,
}

/// The person's skills, then the project's. Of two with one name the first counts.
pub fn find_skills(access: &FileAccess, own: &[PathBuf], workspace: &Path) -> (Vec<Skill>, Vec<String>) {
    let (mut skills, mut warnings): (Vec<Skill>, _) = (Vec::new(), Vec::new());
    let mine = own.iter().flat_map(|folder| skill_folders(folder, folder));
    let theirs = FOLDERS.iter().flat_map(|folder| skill_folders(workspace, &workspace.join(folder)));
    for folder in mine.chain(theirs) {
        match read_skill(access, &folder).map(|(skill, _)| skill) {
            Ok(skill) if skills.iter().any(|known| known.name == skill.name) => {}
            Ok(_) if skills.len() >= MAX_SKILLS => {
                warnings.push(format!("more than {MAX_SKILLS} skills: the rest are left out"));
                break;
            }
            Ok(skill) => skills.push(skill),
            Err(why) => warnings
                .push(format!("a skill was left out, {why}: {}", sanitize::sanitized_line(&folder.to_string_lossy()))),
        }
    }
    (skills, warnings)
}

/// The names and purposes of skills, as a model is told them.
pub fn list_skills(skills: &[Skill]) -> String {
    let lines: Vec<String> = skills.iter().map(|skill| format!("- {}: {}", skill.name, skill.description)).collect();
    lines.join("\n")
}

impl Skill {
    /// What it says, and which files lie beside it.
    pub fn load_skill_text(&self, access: &FileAccess) -> Result<String, String> {
        let (_, body) = read_skill(access, &self.folder)?;
        let mut files = other_skill_files(&self.folder);
        let more = if files.len() > MAX_LISTED_FILES { "\n(and more)" } else { "" };
        files.truncate(MAX_LISTED_FILES);
        let files = match files.is_empty() {
            true => String::new(),
            false => format!("\n\n[files of this skill, in {}]\n{}{more}", self.folder.display(), files.join("\n")),
        };
        Ok(format!("{}{files}", body.trim()))
    }

    /// One of its files.
    pub fn read_file(&self, access: &FileAccess, name: &str) -> Result<String, String> {
        read_skill_text(access, &self.folder, name)
    }
}

/// The folders right below one that hold a skill, in the order of their names. None leads out of `room`.
fn skill_folders(room: &Path, folder: &Path) -> Vec<PathBuf> {
    // Most folders have no skills: that is found out first, by one call of the system.
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let Ok(room) = room.canonicalize() else { return Vec::new() };
    let entries = entries.flatten();
    let real = entries.filter_map(|entry| entry.path().canonicalize().ok());
    let mut found: Vec<PathBuf> =
        real.filter(|path| path.starts_with(&room) && path.join("SKILL.md").is_file()).take(MAX_SKILLS * 4).collect();
    found.sort();
    found
}

fn read_skill(access: &FileAccess, folder: &Path) -> Result<(Skill, String), String> {
    let text = read_skill_text(access, folder, "SKILL.md")?;
    let (front, body) = front_matter::parse_yaml_front_matter::<SkillFrontMatter>(&text)?;
    let named = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = front.name.or(named).unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err("its name is not of lower-case letters, digits and dashes".to_owned());
    }
    let description: String = front.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let description = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
    Ok((Skill { name, description, folder: folder.to_owned() }, body.to_owned()))
}

fn read_skill_text(access: &FileAccess, folder: &Path, name: &str) -> Result<String, String> {
    let room = access.open(folder, &[]).map_err(|error| error.to_string())?;
    let (_, text) = room.read_redacted(name, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    Ok(sanitize::strip_hidden_chars(&text))
}

/// The other files of a skill, by their names below its folder. Two levels are enough to find one's way.
fn other_skill_files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let inside = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in inside(folder).take(MAX_LISTED_FILES * 4) {
        let deeper: Vec<PathBuf> =
            if path.is_dir() { inside(&path).take(MAX_LISTED_FILES * 4).collect() } else { vec![path] };
        let files = deeper.iter().filter(|path| path.is_file()).filter_map(|path| path.strip_prefix(folder).ok());
        names.extend(files.map(|path| path.to_string_lossy().into_owned()).filter(|name| name != "SKILL.md"));
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn skill(folder: &Path, name: &str, text: &str) {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }

    #[test]
    fn a_persons_skill_counts_before_a_projects() {
        let home = tempfile::tempdir().unwrap();
        let (own, work) = (home.path().join("own"), home.path().join("project"));
        skill(&own, "tidy", "---\nname: tidy\ndescription: mine\n---\nUse a broom.\n");
        skill(&work.join(".agents/skills"), "tidy", "---\ndescription: theirs\n---\n");
        skill(&work.join(".agents/skills"), "paint", "---\ndescription: |\n  two\n  lines\n---\nred\n");
        skill(&work.join(".claude/skills"), "Bad Name", "---\ndescription: x\n---\n");
        skill(&work.join(".claude/skills"), "none", "no front matter");
        std::fs::write(own.join("tidy/extra.md"), "more").unwrap();
        std::os::unix::fs::symlink(&own, work.join(".gander")).unwrap();
        let access = FileAccess::default();
        let (skills, warnings) = find_skills(&access, &[own], &work);
        assert_eq!(list_skills(&skills), "- tidy: mine\n- paint: two lines");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let loaded = skills[0].load_skill_text(&access).unwrap();
        assert!(loaded.starts_with("Use a broom.\n\n[files of this skill") && loaded.ends_with("extra.md"), "{loaded}");
        assert_eq!(skills[0].read_file(&access, "extra.md").unwrap(), "more");
        assert!(
            skills[0]
                .read_file(&access, "../../project/.agents/skills/paint/SKILL.md")
                .unwrap_err()
                .contains("outside")
        );
    }
}
