//! A list to choose from: sessions, models, modes. What is typed narrows it.

use serde_json::Value;

use crate::output::clean_output_text;
use crate::terminal::list_table::table_local_time;

/// Rows of a list that are on the screen at once.
pub(super) const PICKER_ROWS: usize = 8;

/// What choosing means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// Open this session.
    Session(String),
    /// Set an option of the session to a value.
    Option { id: String, value: String },
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PickerItem {
    pub(super) label: String,
    pub(super) detail: String,
    pub(super) pick: Pick,
}

/// A list, what narrows it, and which row is chosen.
#[derive(Clone, Debug)]
pub(super) struct Picker {
    pub(super) title: String,
    pub(super) filter: String,
    items: Vec<PickerItem>,
    chosen: usize,
}

impl Picker {
    /// A list in which the item at `chosen` is chosen.
    pub(super) fn new(title: &str, items: Vec<PickerItem>, chosen: usize) -> Self {
        Self { title: title.to_owned(), filter: String::new(), items, chosen }
    }

    pub(super) fn push(&mut self, character: char) {
        self.filter.push(character);
        self.chosen = 0;
    }

    pub(super) fn backspace(&mut self) {
        self.filter.pop();
        self.chosen = 0;
    }

    pub(super) fn down(&mut self) {
        let count = self.fitting().count();
        self.chosen = if count == 0 { 0 } else { (self.chosen + 1) % count };
    }

    pub(super) fn up(&mut self) {
        let count = self.fitting().count();
        self.chosen = self.chosen.checked_sub(1).unwrap_or(count.saturating_sub(1));
    }

    /// The chosen item.
    pub(super) fn chosen(&self) -> Option<&PickerItem> {
        self.fitting().nth(self.chosen)
    }

    /// The rows around the chosen one, each with whether it is chosen, and how many fit in all.
    pub(super) fn window(&self) -> (Vec<(bool, &PickerItem)>, usize) {
        let all: Vec<&PickerItem> = self.fitting().collect();
        let first = self.chosen.saturating_sub(PICKER_ROWS - 1);
        let rows = all.iter().enumerate().skip(first).take(PICKER_ROWS);
        (rows.map(|(index, item)| (index == self.chosen, *item)).collect(), all.len())
    }

    fn fitting(&self) -> impl Iterator<Item = &PickerItem> {
        let filter = self.filter.to_lowercase();
        self.items.iter().filter(move |item| {
            filter.is_empty()
                || item.label.to_lowercase().contains(&filter)
                || item.detail.to_lowercase().contains(&filter)
        })
    }
}

/// Sessions for a list, the last changed first. Those of sub-agents belong to the one that began them.
pub(super) fn session_picker_items(page: &Value) -> Vec<PickerItem> {
    let sessions = page["sessions"].as_array().into_iter().flatten().filter(|session| session["parent"].is_null());
    let item = |session: &Value| {
        let text = |name: &str| clean_output_text(session[name].as_str().unwrap_or_default());
        let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| "(no title)".to_owned());
        let updated = table_local_time(session["updatedAt"].as_i64().unwrap_or_default());
        let state = if text("state") == "waiting" { "waiting for you".to_owned() } else { text("state") };
        let detail = format!("{state} · {updated} · {}", text("cwd"));
        PickerItem { label: title, detail, pick: Pick::Session(text("sessionId")) }
    };
    sessions.map(item).collect()
}

/// Agents for a list: choosing one sets the session to its first mode.
pub(super) fn agent_picker_items(listed: &Value) -> Vec<PickerItem> {
    let item = |agent: &Value| {
        let text = |name: &str| clean_output_text(agent[name].as_str().unwrap_or_default());
        let mode = agent["modes"][0].as_str().unwrap_or_default().to_owned();
        let detail = format!("{}  {}", text("name"), text("description"));
        PickerItem { label: text("title"), detail, pick: Pick::Option { id: "mode".to_owned(), value: mode } }
    };
    listed["agents"].as_array().into_iter().flatten().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_narrows_and_arrows_choose() {
        let item =
            |label: &str| PickerItem { label: label.into(), detail: String::new(), pick: Pick::Session(label.into()) };
        let mut picker = Picker::new("sessions", vec![item("alpha"), item("beta"), item("gamma beta")], 2);
        assert_eq!(picker.chosen().map(|item| item.label.as_str()), Some("gamma beta"));
        picker.down();
        assert_eq!(picker.chosen().map(|item| item.label.as_str()), Some("alpha"));
        picker.push('b');
        picker.push('e');
        picker.up();
        assert_eq!(picker.chosen().map(|item| item.label.as_str()), Some("gamma beta"));
        assert_eq!(picker.window().1, 2);
        picker.push('x');
        assert_eq!((picker.chosen(), picker.window().1), (None, 0));
    }
}
