//! Lists as columns with a header, cut to the terminal's width; one record per line where nobody looks.

use jiff::tz::TimeZone;

use super::row_limit::cut_line_to_row_limit;
use crate::output::{Output, Tone, clean_output_text};

/// Between two columns.
const GAP: usize = 2;

/// Prints rows under their header. The last column takes what room is left.
pub(crate) fn print_list_table(output: Output, header: &[&str], rows: &[Vec<String>]) -> std::io::Result<()> {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| clean_output_text(cell)).collect()).collect();
    let width = |column: usize| {
        let widest = cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).max(header.get(column).map_or(0, |name| name.chars().count()))
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String]| {
        let (last, first) = row.split_last().map_or(("", &[][..]), |(last, first)| (last.as_str(), first));
        let mut text = String::new();
        for (cell, width) in first.iter().zip(&widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count()) + GAP));
        }
        text.push_str(last);
        let text = text.trim_end();
        if output.style().is_terminal() { cut_line_to_row_limit(text, output.columns()) } else { text.to_owned() }
    };
    let names: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    output.line(&output.style().paint(Tone::Dim, &line(&names)))?;
    cells.iter().try_for_each(|row| output.line(&line(row)))
}

/// Microseconds since 1970 as the clock on the wall says it.
pub(crate) fn table_local_time(micros: i64) -> String {
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
    at.to_zoned(TimeZone::system()).strftime("%F %H:%M").to_string()
}

/// The same for a time as JSON has it; nothing for no time.
pub(crate) fn table_local_time_of(time: &serde_json::Value) -> String {
    let at = time.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    at.map(|at| table_local_time(at.as_microsecond())).unwrap_or_default()
}

/// About so many bytes.
pub(crate) fn table_size_text(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..10_485_760 => format!("{} KiB", bytes >> 10),
        10_485_760.. => format!("{} MiB", bytes >> 20),
    }
}
