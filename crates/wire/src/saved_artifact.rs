//! What was put away under a name, as a part of a message: itself if the log tells it, else where it can be read.

use std::fmt::Write as _;

use gander_domain::{ArtifactContent, Part};

/// One version of something that was put away.
#[derive(Clone, Copy, Debug)]
pub struct SavedArtifact<'a> {
    /// Under which name.
    pub name: &'a str,
    /// Which version, from 0.
    pub version: u64,
    /// Its media type, if known.
    pub mime: Option<&'a str>,
    /// What it is, if the log tells it.
    pub content: Option<&'a ArtifactContent>,
}

impl SavedArtifact<'_> {
    /// A part that holds it, or points to where it is on this shelf. `None` if there is neither.
    pub fn as_part(&self, artifacts_url: Option<&str>) -> Option<Part> {
        let (name, mime) = (self.name.to_owned(), self.mime.map(str::to_owned));
        let (text, blob) = match self.content {
            Some(ArtifactContent::Text { text }) => (Some(text.clone()), None),
            Some(ArtifactContent::Bytes { data }) => (None, Some(data.clone())),
            None => {
                return artifacts_url.map(|artifacts_url| Part::Link {
                    uri: self.artifact_url(artifacts_url),
                    name,
                    mime,
                    more: None,
                });
            }
        };
        Some(Part::Resource { uri: name, mime, text, blob })
    }

    /// The name is in the query: as a piece of the path, a dot would lead elsewhere.
    fn artifact_url(&self, artifacts_url: &str) -> String {
        let mut address = format!("{artifacts_url}?version={}&name=", self.version);
        for byte in self.name.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                address.push(char::from(byte));
            } else {
                write!(address, "%{byte:02X}").expect("a string takes everything");
            }
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_log_does_not_tell_is_pointed_to() {
        let saved = SavedArtifact { name: "a b/ü.txt", version: 2, mime: None, content: None };
        let Some(Part::Link { uri, name, .. }) = saved.as_part(Some("http://here/shelf")) else { panic!("no link") };
        assert_eq!(uri, "http://here/shelf?version=2&name=a%20b%2F%C3%BC.txt");
        assert_eq!(name, "a b/ü.txt");
        assert_eq!(saved.as_part(None), None);
    }
}
