//! The header of a WebSocket frame, in and out.

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

/// A client's frame, before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) fin: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: [u8; 4],
    /// How many bytes follow.
    pub(super) payload: usize,
}

/// No client may send this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidHeader;

impl FrameHeader {
    /// Reads a header and its length; `None` if more bytes are needed.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, InvalidHeader> {
        let Some(([first, second], rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
        let opcode = Opcode::from_bits(first & 0x0f).ok_or(InvalidHeader)?;
        let fin = first & 0x80 != 0;
        let (reserved, masked, short) = (first & 0x70, second & 0x80 != 0, second & 0x7f);
        if reserved != 0 || !masked || (opcode.is_control() && (short > 125 || !fin)) {
            return Err(InvalidHeader);
        }
        let Some((payload, width)) = frame_payload_length(short, rest)? else { return Ok(None) };
        let Some(mask) = rest.get(width..).and_then(|rest| rest.first_chunk::<4>()) else { return Ok(None) };
        Ok(Some((Self { fin, opcode, mask: *mask, payload }, 2 + width + 4)))
    }
}

/// Appends the header of one of our frames: whole and unmasked.
pub(super) fn write_frame_header(bytes: &mut Vec<u8>, opcode: Opcode, payload: usize) {
    bytes.push(0x80 | opcode as u8);
    match (u8::try_from(payload), u16::try_from(payload)) {
        (Ok(short @ 0..=125), _) => bytes.push(short),
        (_, Ok(medium)) => {
            bytes.push(126);
            bytes.extend_from_slice(&medium.to_be_bytes());
        }
        (_, Err(_)) => {
            bytes.push(127);
            bytes.extend_from_slice(&(payload as u64).to_be_bytes());
        }
    }
}

/// Takes the mask off a payload.
pub(super) fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from_ne_bytes([mask, mask].concat().try_into().unwrap_or_default());
    let mut words = payload.chunks_exact_mut(8);
    for word in &mut words {
        let clear = u64::from_ne_bytes(word.try_into().unwrap_or_default()) ^ wide;
        word.copy_from_slice(&clear.to_ne_bytes());
    }
    words.into_remainder().iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        [Self::Continuation, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong]
            .into_iter()
            .find(|opcode| *opcode as u8 == bits)
    }

    fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// The length of the payload and of the field that says it. The shortest field must be used.
fn frame_payload_length(short: u8, rest: &[u8]) -> Result<Option<(usize, usize)>, InvalidHeader> {
    match short {
        126 => match rest.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length))) {
            Some(..=125) => Err(InvalidHeader),
            length => Ok(length.map(|length| (length, 2))),
        },
        127 => match rest.first_chunk().map(|length| u64::from_be_bytes(*length)) {
            Some(length @ (..=0xffff | 0x8000_0000_0000_0000..)) => {
                tracing::trace!(length, "length of a frame in the wrong form");
                Err(InvalidHeader)
            }
            length => Ok(length.map(|length| (usize::try_from(length).unwrap_or(usize::MAX), 8))),
        },
        short => Ok(Some((usize::from(short), 0))),
    }
}
