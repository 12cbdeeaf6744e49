//! Context files: read folder by folder, with what they include.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use gander_domain::sanitize;
use gander_tools::{FileAccess, PathError, Workspace};

/// Bytes of one file.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Bytes of all files together.
const MAX_TOTAL_BYTES: usize = 128 << 10;

/// How deep files include each other.
const MAX_INCLUDE_DEPTH: usize = 3;

/// Reads context files. Each folder is a world of its own: nothing outside is included.
pub(super) struct ContextFileReader<'a> {
    names: &'a [String],
    left: usize,
    seen: HashSet<PathBuf>,
    sections: Vec<String>,
    warnings: Vec<String>,
}

impl<'a> ContextFileReader<'a> {
    pub(super) fn new(names: &'a [String]) -> Self {
        Self { names, left: MAX_TOTAL_BYTES, seen: HashSet::new(), sections: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn into_text_and_notices(self) -> (String, Vec<String>) {
        (self.sections.join("\n\n"), self.warnings)
    }

    /// Reads the context files of one folder; a folder that is not there has none.
    pub(super) fn read_folder(&mut self, access: &FileAccess, folder: &Path) {
        let Ok(room) = access.open(folder, &[]) else { return };
        // Most folders have none of them: that takes one look each, where opening takes ten.
        let is_missing = |name: &str| {
            room.root().join(name).symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        for name in self.names.iter().filter(|name| !name.contains('/') && !is_missing(name)) {
            if let Some(text) = self.read_file(&room, name, 0) {
                self.sections.push(format!("## {} in {}\n{}", name, room.root().display(), text.trim()));
            }
        }
    }

    /// The text of a file with what it includes; none if it is not there, was read before or cannot be used.
    fn read_file(&mut self, room: &Workspace, name: &str, depth: usize) -> Option<String> {
        let (located, text) = match room.read_redacted(name, MAX_FILE_BYTES) {
            Ok(read) => read,
            Err(PathError::NotFound(_)) => return None,
            Err(error) => return self.note_left_out(name, &error.to_string()),
        };
        if !self.seen.insert(located.absolute_path().to_owned()) {
            return None;
        }
        if text.len() > self.left {
            return self
                .note_left_out(name, &format!("all context files together are larger than {MAX_TOTAL_BYTES} bytes"));
        }
        self.left -= text.len();
        if sanitize::has_hidden_chars(&text) {
            self.warnings.push(format!("hidden characters were taken out of a context file: {name}"));
        }
        Some(self.expand_includes(room, &sanitize::strip_hidden_chars(&text), depth))
    }

    /// `@path` on its own stands for that file, if there is such a file.
    fn expand_includes(&mut self, room: &Workspace, text: &str, depth: usize) -> String {
        if depth >= MAX_INCLUDE_DEPTH {
            return text.to_owned();
        }
        let mut whole = String::with_capacity(text.len());
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            let named =
                word.strip_prefix('@').map(|path| path.trim_end_matches(['.', ',', ';', ':', ')'])).unwrap_or("");
            let included = (is_context_reader_path(named)).then(|| self.read_file(room, named, depth + 1)).flatten();
            match included {
                Some(included) => whole.push_str(&format!("\n[{named}]\n{}\n[end of {named}]\n", included.trim())),
                None => whole.push_str(piece),
            }
        }
        whole
    }

    fn note_left_out<T>(&mut self, name: &str, why: &str) -> Option<T> {
        self.warnings.push(format!("a context file was left out, {why}: {}", sanitize::sanitized_line(name)));
        None
    }
}

/// Something that looks like a file and not like a name or an address of a person.
fn is_context_reader_path(named: &str) -> bool {
    let letters = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    !named.is_empty()
        && named.chars().all(letters)
        && (named.contains(['.', '/']) || named.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(files: &[(&str, &str)]) -> (String, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("work");
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let names = super::super::FILES.map(str::to_owned);
        let mut reader = ContextFileReader::new(&names);
        reader.read_folder(&FileAccess::default(), &folder);
        reader.into_text_and_notices()
    }

    #[test]
    fn what_is_included_stands_in_its_place() {
        let (text, warnings) = read(&[
            (".goosehints", "Style: @docs/style.md, ask @ada or a@b.org\n"),
            ("docs/style.md", "short names; see @.goosehints"),
        ]);
        assert!(text.contains("[docs/style.md]\nshort names; see @.goosehints\n[end of docs/style.md]"), "{text}");
        assert!(text.contains("ask @ada or a@b.org"), "{text}");
        assert_eq!(warnings, Vec::<String>::new());
    }

    #[test]
    fn nothing_outside_and_no_secret_is_included() {
        let (text, warnings) = read(&[(".goosehints", "@../../etc/passwd @/etc/passwd @.env"), (".env", "KEY=hush")]);
        assert!(text.contains("@../../etc/passwd @/etc/passwd @.env") && !text.contains("hush"), "{text}");
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].contains("outside the workspace") && warnings[2].contains("secrets"), "{warnings:?}");
    }

    #[test]
    fn too_much_is_left_out_and_said() {
        let large = "x".repeat(65 << 10);
        let (text, warnings) = read(&[("AGENTS.md", &large), (".goosehints", "small")]);
        assert!(text.contains("small") && !text.contains("xxx"), "{}", text.len());
        assert!(warnings[0].contains("larger than 65536 bytes"), "{warnings:?}");
        let many: Vec<String> = (0..9).map(|n| format!("f{n}.md")).collect();
        let list = many.iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join("\n");
        let body = "y".repeat(30 << 10);
        let mut files = vec![("AGENTS.md", list.as_str())];
        files.extend(many.iter().map(|name| (name.as_str(), body.as_str())));
        let (text, warnings) = read(&files);
        assert!(text.len() < MAX_TOTAL_BYTES + 1_000 && warnings.len() == 5, "{} {warnings:?}", text.len());
    }

    #[test]
    fn hidden_text_is_taken_out_and_said() {
        let (text, warnings) = read(&[("AGENTS.md", "build\u{e0041}\u{202e} with \u{200b}just, größe 漢字")]);
        assert!(text.ends_with("build with just, größe 漢字"), "{text:?}");
        assert_eq!(warnings, ["hidden characters were taken out of a context file: AGENTS.md"]);
    }
}
