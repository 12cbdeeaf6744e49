//! How large a picture is, read from its header alone: nothing is unpacked.

/// Width and height of a picture of this type, if its header says so.
pub(super) fn image_size(mime: &str, bytes: &[u8]) -> Option<(u32, u32)> {
    match mime {
        "image/png" => Some((image_be_u32(bytes, 16)?, image_be_u32(bytes, 20)?)),
        "image/gif" => Some((image_le(bytes, 6, 2)?, image_le(bytes, 8, 2)?)),
        "image/jpeg" => jpeg_size(bytes),
        "image/webp" => webp_size(bytes),
        _ => None,
    }
}

/// Segments follow each other, each with its length, up to the one that starts a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1).filter(|_| bytes.get(at) == Some(&0xFF))?;
        match marker {
            // Padding before a marker.
            0xFF => at += 1,
            // Markers without a segment.
            0x01 | 0xD0..=0xD8 => at += 2,
            // Frames; C4, C8 and CC are tables.
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                let (height, width) = (image_be_u16(bytes, at + 5)?, image_be_u16(bytes, at + 7)?);
                return Some((width, height));
            }
            _ => at += 2 + image_be_u16(bytes, at + 2)?.max(2) as usize,
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((image_le(bytes, 24, 3)? + 1, image_le(bytes, 27, 3)? + 1)),
        b"VP8 " => Some((image_le(bytes, 26, 2)? & 0x3FFF, image_le(bytes, 28, 2)? & 0x3FFF)),
        b"VP8L" => {
            let packed = image_le(bytes, 21, 4)?;
            Some(((packed & 0x3FFF) + 1, ((packed >> 14) & 0x3FFF) + 1))
        }
        _ => None,
    }
}

fn image_be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four))
}

fn image_be_u16(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|two| u32::from(u16::from_be_bytes(*two)))
}

fn image_le(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + count)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_the_size() {
        let png = [&b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR"[..], &[0, 0, 0xC3, 0x50, 0, 0, 0, 7]].concat();
        assert_eq!(image_size("image/png", &png), Some((50_000, 7)));
        assert_eq!(image_size("image/gif", b"GIF89a\x02\x01\x04\x03"), Some((258, 772)));
        let jpeg = [&b"\xFF\xD8\xFF\xE0\0\x04ab\xFF\xFF\xC4\0\x02\xFF\xC2\0\x0B\x08"[..], &[1, 2, 3, 4]].concat();
        assert_eq!(image_size("image/jpeg", &jpeg), Some((772, 258)));
        let head = |kind: &[u8]| [b"RIFF\0\0\0\0WEBP", kind, b"\0\0\0\0"].concat();
        let extended = [&head(b"VP8X")[..], &[0; 4], &[0x4F, 0xC3, 0, 6, 0, 0]].concat();
        assert_eq!(image_size("image/webp", &extended), Some((50_000, 7)));
        let lossy = [&head(b"VP8 ")[..], &[0, 0, 0, 0x9D, 1, 0x2A, 2, 1, 4, 3]].concat();
        assert_eq!(image_size("image/webp", &lossy), Some((258, 772)));
        let lossless = [&head(b"VP8L")[..], &[0x2F, 0xFF, 0xFF, 0xFF, 0xFF]].concat();
        assert_eq!(image_size("image/webp", &lossless), Some((16_384, 16_384)));
    }

    #[test]
    fn a_header_that_is_cut_off_or_goes_round_in_circles_tells_nothing() {
        let jpeg = [&b"\xFF\xD8"[..], &b"\xFF\xE0\0\0".repeat(1_000), b"\xFF"].concat();
        for length in 0..jpeg.len() {
            assert_eq!(image_size("image/jpeg", &jpeg[..length]), None);
        }
        for kind in ["image/png", "image/gif", "image/webp"] {
            assert_eq!(image_size(kind, b"RIFF\0\0"), None, "{kind}");
        }
    }
}
