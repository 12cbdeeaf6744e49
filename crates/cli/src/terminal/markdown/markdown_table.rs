//! Tables of Markdown: columns that stand below each other, or one row after the other where there is no room.

use super::inline::render_markdown_inline;
use crate::output::{Style, Tone};
use crate::terminal::wrap::{wrap_text, wrapped_width};

const GAP: &str = "  ";

/// Renders the rows of one table.
pub(super) fn render_markdown_table(rows: &[String], columns: usize, style: Style) -> Vec<String> {
    let has_header = rows.get(1).is_some_and(|row| is_markdown_delimiter(row));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .filter(|row| !is_markdown_delimiter(row))
        .map(|row| split_markdown_cells(row).map(|cell| render_markdown_inline(cell, style)).collect())
        .collect();
    let count = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| wrapped_width(cell)).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let whole = widths.iter().sum::<usize>() + GAP.len() * count.saturating_sub(1);
    if whole > columns {
        let row = |row: &Vec<String>| wrap_text(&format!("• {}", row.join(" · ")), columns, 2);
        return cells.iter().flat_map(row).collect();
    }
    let mut lines: Vec<String> = cells.iter().map(|row| aligned_markdown_row(row, &widths)).collect();
    if has_header && !lines.is_empty() {
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        lines[0] = style.paint(Tone::Bold, &lines[0]);
        lines.insert(1, style.paint(Tone::Dim, &rule.join(GAP)));
    }
    lines
}

fn aligned_markdown_row(row: &[String], widths: &[usize]) -> String {
    let pad = |(cell, width): (&String, &usize)| format!("{cell}{}", " ".repeat(width - wrapped_width(cell)));
    row.iter().zip(widths).map(pad).collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

fn is_markdown_delimiter(row: &str) -> bool {
    row.contains('-') && row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn split_markdown_cells(row: &str) -> impl Iterator<Item = &str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(str::trim)
}
