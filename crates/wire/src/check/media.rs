//! Pictures, sounds and files inside messages: the same limits at every protocol, each of which words the refusal in its
//! own form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::Part;

use super::image_size;

/// The largest picture, sound or file in a message in bytes, decoded.
pub const MAX_MEDIA_BYTES: usize = 10 * 1024 * 1024;

/// The largest picture in pixels. Whoever shows or reads it unpacks it to four bytes for each.
pub const MAX_PIXELS: u64 = 50_000_000;

/// Types of pictures that are known by their first bytes, which are those that models see.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Why content is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMedia {
    /// Too many bytes.
    #[error("content is larger than {MAX_MEDIA_BYTES} bytes")]
    TooLarge,
    /// Its data cannot be decoded.
    #[error("content is not base64: {0}")]
    NotBase64(String),
    /// Its bytes are something else than its type says.
    #[error("content is not of the type it claims to be: {0}")]
    OtherType(String),
    /// Small in bytes and huge once unpacked.
    #[error("picture has more than {MAX_PIXELS} pixels: {0} x {1}")]
    TooManyPixels(u32, u32),
    /// Nobody can show or read it.
    #[error("picture has no pixels")]
    NoPixels,
    /// The agent has no use for it.
    #[error("content type is not supported by this agent: {0}")]
    Unsupported(String),
}

/// Checks a part that somebody sent: how large it is, and whether it is what it claims to be.
pub fn check_media(part: &Part) -> Result<(), BadMedia> {
    match part {
        Part::Image { mime, data, .. } => check_image_media(mime, &decode_media_base64(data)?),
        Part::Audio { mime, data } if !is_in_media_family(mime, "audio") => {
            decode_media_base64(data)?;
            Err(BadMedia::OtherType(mime.clone()))
        }
        Part::Audio { data, .. } => decode_media_base64(data).map(drop),
        Part::Resource { mime, blob: Some(blob), .. } => {
            check_image_media(mime.as_deref().unwrap_or_default(), &decode_media_base64(blob)?)
        }
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Link { .. }
        | Part::Resource { blob: None, .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => Ok(()),
    }
}

/// Checks a part of a prompt for an agent that takes these media types, such as `image/*`.
pub fn check_media_for(part: &Part, takes: &[String]) -> Result<(), BadMedia> {
    match part {
        Part::Image { mime, .. }
            if !accepts_media_family(takes, "image") || !IMAGE_TYPES.contains(&normalize_mime(mime).as_str()) =>
        {
            Err(BadMedia::Unsupported(mime.clone()))
        }
        Part::Audio { mime, .. } if !accepts_media_family(takes, "audio") => Err(BadMedia::Unsupported(mime.clone())),
        Part::Resource { mime: Some(mime), blob: Some(_), .. } if is_refused_medium(mime, takes) => {
            Err(BadMedia::Unsupported(mime.clone()))
        }
        Part::Image { .. }
        | Part::Audio { .. }
        | Part::Text { .. }
        | Part::Thought { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => check_media(part),
    }
}

/// True if a file is a picture, a sound or a film, and the agent takes none of these.
fn is_refused_medium(mime: &str, takes: &[String]) -> bool {
    ["image", "audio", "video"]
        .iter()
        .any(|family| is_in_media_family(mime, family) && !accepts_media_family(takes, family))
}

/// True if an agent that takes these types takes any of this family, such as `audio`.
pub fn accepts_media_family(takes: &[String], family: &str) -> bool {
    takes.iter().any(|mode| mode == "*/*" || is_in_media_family(mode, family))
}

/// A media type without parameters, as providers of models spell it.
pub(crate) fn normalize_mime(mime: &str) -> String {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if mime == "image/jpg" { "image/jpeg".to_owned() } else { mime }
}

/// True if a media type is of this family, however it is spelt.
pub fn is_in_media_family(mime: &str, family: &str) -> bool {
    mime.split_once('/').is_some_and(|(found, _)| found.eq_ignore_ascii_case(family))
}

/// What claims to be a picture of a known type is one; of others nobody here can tell.
fn check_image_media(mime: &str, bytes: &[u8]) -> Result<(), BadMedia> {
    let mime = normalize_mime(mime);
    let found = detect_image_type(bytes);
    if IMAGE_TYPES.contains(&mime.as_str()) && found != Some(mime.as_str()) {
        return Err(BadMedia::OtherType(mime));
    }
    match found.and_then(|found| image_size::image_size(found, bytes)) {
        Some((0, _) | (_, 0)) => Err(BadMedia::NoPixels),
        Some((width, height)) if u64::from(width) * u64::from(height) > MAX_PIXELS => {
            Err(BadMedia::TooManyPixels(width, height))
        }
        Some(_) | None => Ok(()),
    }
}

fn decode_media_base64(data: &str) -> Result<Vec<u8>, BadMedia> {
    if data.len() > MAX_MEDIA_BYTES.div_ceil(3) * 4 {
        return Err(BadMedia::TooLarge);
    }
    STANDARD.decode(data).map_err(|error| BadMedia::NotBase64(error.to_string()))
}

/// What the first bytes say, whatever the sender says.
pub(crate) fn detect_image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(mime: &str, bytes: &[u8]) -> Part {
        Part::Image { mime: mime.to_owned(), data: STANDARD.encode(bytes), uri: None }
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        [&b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes(), &[8, 6, 0, 0, 0]]
            .concat()
    }

    #[test]
    fn a_picture_is_of_its_type_and_of_a_size() {
        assert_eq!(check_media(&image("image/png", &png(5_000, 10_000))), Ok(()));
        assert_eq!(
            check_media(&image("image/png", &png(50_000, 50_000))),
            Err(BadMedia::TooManyPixels(50_000, 50_000))
        );
        assert_eq!(check_media(&image("image/png", &png(0, 5))), Err(BadMedia::NoPixels));
        assert_eq!(check_media(&image("image/png", b"PK\x03\x04")), Err(BadMedia::OtherType("image/png".to_owned())));
        assert_eq!(check_media(&image("image/jpeg", &png(1, 1))), Err(BadMedia::OtherType("image/jpeg".to_owned())));
        assert_eq!(check_media(&image("image/svg+xml", b"<svg/>")), Ok(()));
        // A type that says nothing hides no size.
        let hidden = check_media(&image("image/x", &png(50_000, 50_000)));
        assert_eq!(hidden, Err(BadMedia::TooManyPixels(50_000, 50_000)));
    }

    #[test]
    fn bytes_are_counted_wherever_they_stand() {
        let data = STANDARD.encode(vec![0; MAX_MEDIA_BYTES + 3]);
        let (mime, uri) = ("audio/wav".to_owned(), "x".to_owned());
        let blob = Part::Resource { uri, mime: None, text: None, blob: Some(data.clone()) };
        for part in [Part::Audio { mime, data: data.clone() }, blob] {
            assert_eq!(check_media(&part), Err(BadMedia::TooLarge));
        }
        let full = STANDARD.encode(vec![0; MAX_MEDIA_BYTES]);
        assert_eq!(check_media(&Part::Audio { mime: "audio/wav".to_owned(), data: full }), Ok(()));
    }

    #[test]
    fn an_agent_hears_and_sees_what_it_says_it_does() {
        let sound = Part::Audio { mime: "audio/wav".to_owned(), data: String::new() };
        let takes = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
        let refused = Err(BadMedia::Unsupported("audio/wav".to_owned()));
        assert_eq!(check_media_for(&sound, &takes(&["text/plain", "image/*"])), refused);
        assert_eq!(check_media_for(&sound, &takes(&["*/*"])), Ok(()));
        assert_eq!(check_media_for(&sound, &takes(&["audio/mpeg"])), Ok(()));
        assert!(check_media_for(&image("image/png", &png(1, 1)), &takes(&["text/plain"])).is_err());
        let drawing = image("image/svg+xml", b"<svg/>");
        let refused = Err(BadMedia::Unsupported("image/svg+xml".to_owned()));
        assert_eq!(check_media_for(&drawing, &takes(&["*/*"])), refused, "no model sees it");
    }
}
