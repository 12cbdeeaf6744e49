//! The text that a person types: several lines, a cursor, and the keys of every other line editor.

use unicode_width::UnicodeWidthStr;

/// A text under a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Editor {
    text: String,
    /// A place between two characters, in bytes.
    cursor: usize,
    /// What was deleted last, to be put back.
    killed: String,
}

/// Rows of an editor on the screen, and where the cursor stands among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditorRows {
    pub(super) rows: Vec<String>,
    pub(super) cursor: (usize, usize),
}

impl Editor {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces everything; the cursor stands at the end.
    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Takes the text, so that the next one can be typed.
    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Puts a text in the place of these bytes.
    pub(super) fn replace(&mut self, range: std::ops::Range<usize>, text: &str) {
        let start = range.start;
        self.text.replace_range(range, text);
        self.cursor = start + text.len();
    }

    pub(super) fn backspace(&mut self) {
        let start = self.before(self.cursor);
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    pub(super) fn delete(&mut self) {
        let end = self.after(self.cursor);
        self.text.drain(self.cursor..end);
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.before(self.cursor);
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.after(self.cursor);
    }

    pub(super) fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub(super) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let length = rest[word..].find(char::is_whitespace).unwrap_or(rest.len() - word);
        self.cursor += word + length;
    }

    pub(super) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    /// One line up; false if it is the first.
    pub(super) fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(above) = start.checked_sub(1) else { return false };
        let column = self.text[start..self.cursor].chars().count();
        let above_start = self.text[..above].rfind('\n').map_or(0, |end| end + 1);
        self.cursor = editor_column_in(&self.text, above_start, above, column);
        true
    }

    /// One line down; false if it is the last.
    pub(super) fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let column = self.text[self.line_start()..self.cursor].chars().count();
        let below_end = self.text[end + 1..].find('\n').map_or(self.text.len(), |length| end + 1 + length);
        self.cursor = editor_column_in(&self.text, end + 1, below_end, column);
        true
    }

    pub(super) fn kill_word(&mut self) {
        self.kill(self.word_start()..self.cursor);
    }

    pub(super) fn kill_to_start(&mut self) {
        self.kill(self.line_start()..self.cursor);
    }

    pub(super) fn kill_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line it joins the next one.
        let end = if end == self.cursor { self.after(end) } else { end };
        self.kill(self.cursor..end);
    }

    /// Puts back what was deleted last.
    pub(super) fn yank(&mut self) {
        let killed = self.killed.clone();
        self.insert(&killed);
    }

    /// The text in rows of so many columns, behind a prompt of two columns.
    pub(super) fn rows(&self, columns: usize) -> EditorRows {
        let room = columns.saturating_sub(3).max(8);
        let (mut rows, mut cursor, mut at) = (Vec::new(), (0, 2), 0);
        for line in self.text.split('\n') {
            let mut row = String::new();
            for (offset, character) in line.char_indices() {
                if row.width() + character.to_string().width() > room {
                    rows.push(std::mem::take(&mut row));
                }
                if at + offset == self.cursor {
                    cursor = (rows.len(), row.width() + 2);
                }
                row.push(if character == '\t' { ' ' } else { character });
            }
            if at + line.len() == self.cursor {
                cursor = (rows.len(), row.width() + 2);
            }
            rows.push(row);
            at += line.len() + 1;
        }
        EditorRows { rows, cursor }
    }

    fn kill(&mut self, range: std::ops::Range<usize>) {
        self.cursor = range.start;
        self.killed = self.text.drain(range).collect();
    }

    fn before(&self, at: usize) -> usize {
        self.text[..at].char_indices().next_back().map_or(0, |(start, _)| start)
    }

    fn after(&self, at: usize) -> usize {
        self.text[at..].chars().next().map_or(at, |character| at + character.len_utf8())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |length| self.cursor + length)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |space| self.after(space))
    }
}

fn editor_column_in(text: &str, start: usize, end: usize, column: usize) -> usize {
    text[start..end].char_indices().nth(column).map_or(end, |(offset, _)| start + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn typing_moving_and_deleting() {
        let mut one = editor("héllo wörld");
        one.word_left();
        one.insert("big ");
        one.end();
        one.backspace();
        one.home();
        one.delete();
        assert_eq!((one.text(), one.cursor()), ("éllo big wörl", 0));
        one.word_right();
        one.kill_to_end();
        assert_eq!(one.text(), "éllo");
        one.home();
        one.yank();
        assert_eq!(one.text(), " big wörléllo");
    }

    #[test]
    fn lines_are_walked_and_joined() {
        let mut one = editor("first\nsecond line\nx");
        assert!(one.up());
        assert_eq!(&one.text()[one.cursor()..], "econd line\nx");
        assert!(one.up() && !one.up());
        assert_eq!(one.cursor(), 1);
        one.end();
        one.kill_to_end();
        assert_eq!(one.text(), "firstsecond line\nx");
        assert!(one.down() && !one.down());
        assert_eq!(one.cursor(), one.text().len());
    }

    #[test]
    fn rows_and_cursor_fit_the_screen() {
        let one = editor("0123456789abcdef\n漢字");
        assert_eq!(
            one.rows(13),
            EditorRows { rows: vec!["0123456789".into(), "abcdef".into(), "漢字".into()], cursor: (2, 6) }
        );
        assert_eq!(Editor::default().rows(20), EditorRows { rows: vec![String::new()], cursor: (0, 2) });
    }
}
