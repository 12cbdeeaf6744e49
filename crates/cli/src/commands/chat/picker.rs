//! A list to choose from: sessions, models, modes. What is typed narrows it.

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
