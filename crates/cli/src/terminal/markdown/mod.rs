//! Markdown as it streams in: a line is rendered for good when it is whole, and only the last one is drawn again.

mod inline;
mod markdown_table;

use self::inline::render_markdown_inline;
use self::markdown_table::render_markdown_table;
use super::wrap::wrap_text;
use crate::output::{Style, Tone, clean_output_text};

/// Bytes of an unfinished line that are rendered while it grows.
const MAX_OPEN: usize = 8 << 10;

/// Rows of an unfinished table are shown as they are up to here.
const MAX_OPEN_ROWS: usize = 20;

/// Renders Markdown line by line. What it gave stays: nothing that follows changes it.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    style: Style,
    /// The line that is not whole yet.
    open: String,
    fence: Option<String>,
    /// Rows of a table are aligned once all of them are there.
    table: Vec<String>,
    after_blank: bool,
}

impl MarkdownStream {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, open: String::new(), fence: None, table: Vec::new(), after_blank: true }
    }

    /// Takes in more text; gives the lines that are whole now.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<String> {
        let mut done = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.open.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.open);
                self.render_line(line.trim_end_matches(['\n', '\r']), columns, &mut done);
            }
        }
        done
    }

    /// What is not whole yet, as it looks now.
    pub(crate) fn open_lines(&self, columns: usize) -> Vec<String> {
        let start = self.table.len().saturating_sub(MAX_OPEN_ROWS);
        let mut lines: Vec<String> = self.table[start..].to_vec();
        if !self.open.is_empty() {
            let from = self.open.ceil_char_boundary(self.open.len().saturating_sub(MAX_OPEN));
            let mut preview = Self { fence: self.fence.clone(), ..Self::new(self.style) };
            preview.render_line(&self.open[from..], columns, &mut lines);
            lines.append(&mut preview.table);
        }
        lines.iter().flat_map(|line| wrap_text(line, columns, 0)).collect()
    }

    /// The text is over: everything that is open is rendered for good.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<String> {
        let mut done = Vec::new();
        let line = std::mem::take(&mut self.open);
        if !line.is_empty() {
            self.render_line(&line, columns, &mut done);
        }
        self.end_table(columns, &mut done);
        (self.fence, self.after_blank) = (None, true);
        done
    }

    fn render_line(&mut self, line: &str, columns: usize, done: &mut Vec<String>) {
        let line = clean_output_text(line).replace('\t', "    ");
        let trimmed = line.trim();
        if let Some(fence) = &self.fence {
            match trimmed.starts_with(fence.as_str()) && trimmed.chars().all(|c| fence.starts_with(c)) {
                true => self.fence = None,
                // A long line of code is left to the terminal: copied, it is still one line.
                false => done.push(format!("  {}", self.style.paint(Tone::Code, &line))),
            }
            return;
        }
        if trimmed.starts_with('|') {
            self.table.push(line);
            return;
        }
        self.end_table(columns, done);
        let blank = trimmed.is_empty();
        if blank && self.after_blank {
            return;
        }
        self.after_blank = blank;
        if let Some(fence) = ["```", "~~~"].into_iter().find(|fence| trimmed.starts_with(fence)) {
            let language = trimmed.trim_start_matches(['`', '~']).trim();
            self.fence = Some(fence.to_owned());
            if !language.is_empty() {
                done.push(format!("  {}", self.style.paint(Tone::Dim, language)));
            }
            return;
        }
        done.extend(self.render_block(&line, trimmed, columns));
    }

    fn render_block(&self, line: &str, trimmed: &str, columns: usize) -> Vec<String> {
        let indent = line.len() - line.trim_start().len();
        if let Some(title) = markdown_heading(trimmed) {
            return wrap_text(&self.style.paint(Tone::Bold, &render_markdown_inline(title, Style::Plain)), columns, 0);
        }
        if is_markdown_rule(trimmed) {
            return vec![self.style.paint(Tone::Dim, &"─".repeat(columns.min(40)))];
        }
        if let Some(quoted) = trimmed.strip_prefix('>') {
            let bar = self.style.paint(Tone::Dim, "│");
            let rows =
                wrap_text(&render_markdown_inline(quoted.trim_start(), self.style), columns.saturating_sub(2), 0);
            return rows.iter().map(|row| format!("{bar} {row}")).collect();
        }
        if let Some((marker, rest)) = markdown_list_item(trimmed) {
            let item = format!("{}{marker} {}", " ".repeat(indent), render_markdown_inline(rest, self.style));
            return wrap_text(&item, columns, indent + marker.chars().count() + 1);
        }
        wrap_text(&format!("{}{}", " ".repeat(indent), render_markdown_inline(trimmed, self.style)), columns, indent)
    }

    fn end_table(&mut self, columns: usize, done: &mut Vec<String>) {
        if !self.table.is_empty() {
            done.extend(render_markdown_table(&std::mem::take(&mut self.table), columns, self.style));
            self.after_blank = false;
        }
    }
}

fn markdown_heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    ((1..=6).contains(&level) && rest.starts_with(' ')).then(|| rest.trim().trim_end_matches('#').trim_end())
}

fn is_markdown_rule(line: &str) -> bool {
    let marks = line.replace(' ', "");
    marks.len() >= 3 && ["-", "*", "_"].iter().any(|mark| marks.replace(mark, "").is_empty())
}

/// The marker of a list item as it is shown, and the item.
fn markdown_list_item(line: &str) -> Option<(String, &str)> {
    let (marker, rest) = line.split_once(' ')?;
    let rest = rest.trim_start();
    if matches!(marker, "-" | "*" | "+") {
        return Some(match (rest.strip_prefix("[ ] "), rest.strip_prefix("[x] ").or(rest.strip_prefix("[X] "))) {
            (Some(open), _) => ("☐".to_owned(), open),
            (None, Some(done)) => ("☑".to_owned(), done),
            (None, None) => ("•".to_owned(), rest),
        });
    }
    let number = marker.strip_suffix(['.', ')'])?;
    let counts = !number.is_empty() && number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit());
    counts.then(|| (marker.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, columns: usize) -> Vec<String> {
        let mut stream = MarkdownStream::new(Style::Plain);
        let mut lines = stream.push(text, columns);
        lines.extend(stream.finish(columns));
        lines
    }

    #[test]
    fn blocks_look_like_what_they_are() {
        let text = "# Title\n\nSome **bold** and `code`.\n\n- one\n  - two\n1. three\n- [x] done\n> said\n\n---\n";
        assert_eq!(
            rendered(text, 40),
            [
                "Title",
                "",
                "Some bold and `code`.",
                "",
                "• one",
                "  • two",
                "1. three",
                "☑ done",
                "│ said",
                "",
                &"─".repeat(40)
            ]
        );
    }

    #[test]
    fn code_is_left_as_it_is() {
        assert_eq!(
            rendered("```rust\n# no title\n\n**x**\n```\nafter", 40),
            ["  rust", "  # no title", "  ", "  **x**", "after"]
        );
    }

    #[test]
    fn tables_are_aligned_and_items_hang() {
        assert_eq!(
            rendered("| a | long |\n|---|---|\n| 1 | 2 |\nafter\n", 40),
            ["a  long", "─  ────", "1  2", "after"]
        );
        assert_eq!(rendered("- one two three\n", 10), ["• one two", "  three"]);
    }

    /// However the text is cut into pieces, the same lines come out.
    #[test]
    fn pieces_make_no_difference() {
        let text = "# T\n\n- *a* b\n```\ncode\n```\n| a | b |\n|-|-|\n| c | d |\n\n漢字 **x**";
        let whole = rendered(text, 30);
        for size in 1..7 {
            let mut stream = MarkdownStream::new(Style::Plain);
            let characters: Vec<char> = text.chars().collect();
            let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
            let mut lines: Vec<String> = pieces.flat_map(|piece| stream.push(&piece, 30)).collect();
            lines.extend(stream.finish(30));
            assert_eq!(lines, whole, "{size}");
        }
    }

    #[test]
    fn what_is_open_is_shown_already() {
        let mut stream = MarkdownStream::new(Style::Plain);
        assert_eq!(stream.push("one\ntwo **th", 40), ["one"]);
        assert_eq!(stream.open_lines(40), ["two **th"]);
        assert_eq!(stream.finish(40), ["two **th"]);
        assert!(stream.open_lines(40).is_empty());
    }
}
