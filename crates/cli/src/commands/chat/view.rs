//! What stands at the bottom of the terminal: what still grows, the question or the list, the input and the status.

use std::time::Duration;

use super::app::ChatApp;
use super::completion::Completion;
use super::editor::{Editor, EditorRows};
use super::picker::Picker;
use crate::output::{Style, Tone, clean_output_text};
use crate::terminal::spinner::spinner_text;
use crate::terminal::wrap::{truncate_to_wrap_columns, wrap_text};

/// Rows of the input that are on the screen at once.
const INPUT_ROWS: usize = 8;

/// Rows of the lower part, and where the cursor stands in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) rows: Vec<String>,
    pub(super) cursor: (usize, usize),
}

/// The size of the terminal, and what moves by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Counts up: the spinner turns.
    pub(super) tick: usize,
    /// How long nothing has happened.
    pub(super) waited: Duration,
}

impl ChatApp {
    /// The lower part of the terminal. No row is wider than the terminal, and all of them fit.
    pub(super) fn view(&self, frame: Frame, style: Style) -> View {
        let width = frame.columns.saturating_sub(1).max(8);
        let mut lower = self.lower_part(width, frame, style);
        lower.rows.push(style.paint(Tone::Dim, &truncate_to_wrap_columns(&self.status(), width)));
        let mut upper = self.conversation.transcript.open_lines();
        if let Some(waits_for) = self.conversation.waits_for().filter(|_| !self.is_asked()) {
            upper.push(String::new());
            let text = truncate_to_wrap_columns(&spinner_text(frame.tick, &waits_for, frame.waited), width);
            upper.push(style.paint(Tone::Dim, &text));
        }
        upper.push(String::new());
        let mut upper: Vec<String> = upper.iter().flat_map(|row| wrap_text(row, width, 0)).collect();
        let room = frame.rows.saturating_sub(lower.rows.len() + 1);
        upper.drain(..upper.len().saturating_sub(room));
        let above = upper.len();
        upper.append(&mut lower.rows);
        View { rows: upper, cursor: (above + lower.cursor.0, lower.cursor.1) }
    }

    fn lower_part(&self, width: usize, frame: Frame, style: Style) -> View {
        if let Some(picker) = &self.picker {
            return picker_view(picker, width, style);
        }
        if let Some(mut rows) = self.conversation.question_lines(style, width, frame.rows) {
            rows.extend(self.hint.lines().flat_map(|line| wrap_text(line, width, 2)));
            let above = rows.len();
            let (prompt, editor) = match &self.reason {
                Some(reason) => ("why not? › ", reason.clone()),
                None => ("y n a 1-9, r: no with a reason, ?: help › ", Editor::default()),
            };
            rows.push(truncate_to_wrap_columns(&format!("{prompt}{}", editor.text().replace('\n', " ")), width));
            let column = rows.last().map_or(0, |row| row.chars().count());
            return View { rows, cursor: (above, column.min(width)) };
        }
        if let Some(form) = self.conversation.form() {
            let lines = form.lines().into_iter().chain(self.hint.lines().map(str::to_owned));
            let mut rows: Vec<String> = lines.flat_map(|line| wrap_text(&line, width, 2)).collect();
            let input = input_view(&self.form_line, width, style);
            let above = rows.len();
            rows.extend(input.rows);
            return View { rows, cursor: (above + input.cursor.0, input.cursor.1) };
        }
        let mut view = input_view(&self.editor, width, style);
        if let Some(completion) = &self.completion {
            view.rows.extend(completion_view_rows(completion, width, style));
        }
        view
    }

    fn status(&self) -> String {
        if self.leaving {
            return "ctrl-c again leaves".to_owned();
        }
        let info = &self.conversation.info;
        let title = info.title.as_deref().map(|title| truncate_to_wrap_columns(title, 30)).unwrap_or_default();
        let parts = [info.status_text(), title, "/help".to_owned()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }
}

/// The part of the input around its cursor.
fn input_view(editor: &Editor, width: usize, style: Style) -> View {
    let EditorRows { rows, cursor } = editor.rows(width);
    let first = (cursor.0 + 1).saturating_sub(INPUT_ROWS);
    let shown = rows.iter().enumerate().skip(first).take(INPUT_ROWS);
    let rows = shown.map(|(index, row)| match index {
        0 => format!("{} {}", style.paint(Tone::Good, "›"), clean_output_text(row)),
        _ => format!("  {}", clean_output_text(row)),
    });
    View { rows: rows.collect(), cursor: (cursor.0 - first, cursor.1) }
}

fn completion_view_rows(completion: &Completion, width: usize, style: Style) -> Vec<String> {
    let label_width =
        completion.suggestions.iter().map(|one| one.label.chars().count()).max().unwrap_or(0).min(width / 2);
    let row = |(index, one): (usize, &super::completion::Suggestion)| {
        let mark = if index == completion.chosen { "▸" } else { " " };
        let text = truncate_to_wrap_columns(
            &format!("  {mark} {:<label_width$}  {}", clean_output_text(&one.label), one.detail),
            width,
        );
        style.paint(if index == completion.chosen { Tone::Bold } else { Tone::Dim }, text.trim_end())
    };
    completion.suggestions.iter().enumerate().map(row).collect()
}

fn picker_view(picker: &Picker, width: usize, style: Style) -> View {
    let (items, count) = picker.window();
    let head = format!("{}: {}", picker.title, picker.filter);
    let column = head.chars().count().min(width);
    let mut rows = vec![truncate_to_wrap_columns(&head, width)];
    for (chosen, item) in items {
        let text = format!(
            "{} {}  {}",
            if chosen { "▸" } else { " " },
            clean_output_text(&item.label),
            clean_output_text(&item.detail)
        );
        rows.push(style.paint(if chosen { Tone::Bold } else { Tone::Dim }, &truncate_to_wrap_columns(&text, width)));
    }
    let foot = format!("{count} · type to narrow, ↑↓ and enter choose, esc closes");
    rows.push(style.paint(Tone::Dim, &truncate_to_wrap_columns(&foot, width)));
    View { rows, cursor: (0, column) }
}
