//! What is kept of a long output: its head and its tail, and how much is missing between them.

use std::collections::VecDeque;

/// Keeps the head and the tail of a stream of bytes.
pub(crate) struct CommandOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    dropped: usize,
}

impl CommandOutput {
    /// Keeps at most so many bytes.
    pub(crate) fn with_limit(bytes: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: bytes / 2, dropped: 0 }
    }

    /// Takes more of the stream.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.dropped += surplus;
    }

    /// What is kept, with a mark where something is missing.
    pub(crate) fn clipped_text(&self) -> String {
        let (older, newer) = self.tail.as_slices();
        let tail = [older, newer].concat();
        if self.dropped == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        // Cut at white space: half a word could be half a secret, which nobody would recognise.
        let head = &self.head[..self.head.iter().rposition(u8::is_ascii_whitespace).unwrap_or(self.head.len())];
        let tail = &tail[tail.iter().position(u8::is_ascii_whitespace).unwrap_or(0)..];
        let missing = self.dropped + self.head.len() + self.tail.len() - head.len() - tail.len();
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n[… {missing} bytes left out …]\n{}", tail.trim_start_matches('\n'))
    }
}

/// At most so many bytes of a text, cut at a character.
pub(crate) fn clip_command_output_to_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, chunks: &[&str]) -> String {
        let mut output = CommandOutput::with_limit(limit);
        chunks.iter().for_each(|chunk| output.push_bytes(chunk.as_bytes()));
        output.clipped_text()
    }

    #[test]
    fn short_output_is_whole() {
        assert_eq!(kept(10, &["abc", "defg", "hij"]), "abcdefghij");
    }

    #[test]
    fn long_output_keeps_both_ends() {
        let text: String = (0..1000).map(|line| format!("{line:03}\n")).collect();
        assert_eq!(kept(16, &[&text]), "000\n001\n[… 3988 bytes left out …]\n999\n");
    }

    #[test]
    fn how_it_is_cut_into_chunks_does_not_matter() {
        let text: String = (0..300).map(|line| format!("line {line}\n")).collect();
        let small: Vec<&str> = text.split_inclusive('7').collect();
        assert_eq!(kept(64, &small), kept(64, &[&text]));
    }

    #[test]
    fn clipping_respects_characters() {
        assert_eq!(clip_command_output_to_bytes("aé", 2), "a");
    }
}
