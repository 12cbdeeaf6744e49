//! The sans-IO decoder over every wire.

use super::codec::Codec;
use super::sse::Sse;
use super::{ModelError, ModelEvent};

/// Bytes of an answer in, events out, the same for every cut of the bytes.
pub struct Decoder {
    sse: Sse,
    codec: Box<dyn Codec>,
    done: bool,
}

impl Decoder {
    pub(super) fn new(codec: Box<dyn Codec>) -> Self {
        Self { sse: Sse::default(), codec, done: false }
    }

    /// Takes the next bytes. What comes after [`ModelEvent::Done`] is ignored.
    pub fn feed_bytes(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Self { sse, codec, done } = self;
        sse.feed_bytes(bytes, |data| decode_unless_done(codec.as_mut(), done, data, out))
    }

    /// The bytes are over.
    pub fn finish_stream(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Self { sse, codec, done } = self;
        let is_stream = sse.has_begun();
        match sse.finish_stream(|data| decode_unless_done(codec.as_mut(), done, data, out)) {
            // The last event is a torn one.
            Err(ModelError::BadStream(_)) if is_stream => {}
            whole => whole?,
        }
        if !*done {
            codec.finish_stream(out)?;
            *done = true;
        }
        Ok(())
    }

    /// True after [`ModelEvent::Done`].
    pub fn is_done(&self) -> bool {
        self.done
    }
}

fn decode_unless_done(
    codec: &mut dyn Codec,
    done: &mut bool,
    data: &[u8],
    out: &mut Vec<ModelEvent>,
) -> Result<(), ModelError> {
    if !*done {
        codec.decode_event(data, out)?;
        *done = matches!(out.last(), Some(ModelEvent::Done(_)));
    }
    Ok(())
}
