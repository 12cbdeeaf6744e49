//! Files of the workspace that a prompt points to: small ones are read along, confined as the agent's own reading is.

use std::path::{Path, PathBuf};

use gander_domain::Part;
use gander_http::percent::decode_percent_strict;
use gander_tools::{FileAccess, Workspace};

/// Larger files stay links: the agent reads of them what it needs.
const MAX_INLINED_FILE: u64 = 64 * 1024;

/// The same parts, with the text of each small file right behind the link to it.
///
/// Whatever cannot be read, lies outside or may hold secrets stays a link.
pub(super) async fn inline_linked_files(
    files: &FileAccess,
    workspace: &str,
    folders: &[String],
    parts: Vec<Part>,
) -> Vec<Part> {
    if !parts.iter().any(|part| linked_file_path(part).is_some()) {
        return parts;
    }
    let root = PathBuf::from(workspace);
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let (kept, files) = (parts.clone(), files.clone());
    let read = tokio::task::spawn_blocking(move || match files.open(&root, &folders) {
        Ok(workspace) => parts.into_iter().flat_map(|part| with_linked_file_text(&workspace, part)).collect(),
        Err(_) => parts,
    });
    read.await.unwrap_or(kept)
}

fn with_linked_file_text(workspace: &Workspace, part: Part) -> Vec<Part> {
    let text = linked_file_path(&part).and_then(|path| Some(workspace.read_redacted(&path, MAX_INLINED_FILE).ok()?.1));
    match (text, &part) {
        (Some(text), Part::Link { uri, mime, .. }) => {
            let resource = Part::Resource { uri: uri.clone(), mime: mime.clone(), text: Some(text), blob: None };
            vec![part, resource]
        }
        (_, _) => vec![part],
    }
}

/// The local path that a link names.
fn linked_file_path(part: &Part) -> Option<String> {
    let Part::Link { uri, .. } = part else { return None };
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = decode_percent_strict(rest.split(['#', '?']).next()?).filter(|path| !path.contains('\0'))?;
    Path::new(&path).is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_tools::Redactor;

    use super::*;

    fn link(uri: String) -> Part {
        Part::Link { uri, name: "n".to_owned(), mime: None, more: None }
    }

    #[tokio::test]
    async fn small_files_inside_are_read_and_everything_else_stays_a_link() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        let (inside, base) = (root.path().join("w"), root.path().display().to_string());
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("a b.txt"), "alpha hush-hush").unwrap();
        std::fs::write(inside.join("large"), vec![b'x'; 70_000]).unwrap();
        std::fs::write(inside.join(".env"), "KEY=1").unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.join("out")).unwrap();
        let stay = [
            format!("file://{base}/w/large"),
            format!("file://{base}/w/out"),
            format!("file://{base}/w/.env"),
            format!("file://{base}/w/../w/missing"),
            format!("file://{}", outside.path().display()),
            "file:///etc/passwd".to_owned(),
            "https://example.org/a".to_owned(),
            "file://%zz".to_owned(),
        ];
        let small = format!("file://{base}/w/a%20b.txt");
        let given: Vec<Part> = std::iter::once(small.clone()).chain(stay.clone()).map(link).collect();
        let text =
            Part::Resource { uri: small.clone(), mime: None, text: Some("alpha [redacted]".to_owned()), blob: None };
        let expected: Vec<Part> = [link(small), text].into_iter().chain(stay.map(link)).collect();
        let files = FileAccess::new(Redactor::new(["hush-hush"]));
        assert_eq!(inline_linked_files(&files, &inside.display().to_string(), &[], given).await, expected);
    }
}
