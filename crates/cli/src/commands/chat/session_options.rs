//! What can be chosen in a session, as its server offers it.

use gander_client::schema::{
    SessionConfigKind, SessionConfigOption, SessionConfigSelectOption, SessionConfigSelectOptions,
};

use crate::output::clean_output_text;

/// Something that can be chosen in a session: its mode, its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionOption {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) current: String,
    pub(super) choices: Vec<OptionChoice>,
}

/// One value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionChoice {
    pub(super) value: String,
    pub(super) name: String,
    pub(super) description: String,
}

pub(super) fn read_session_option(option: &SessionConfigOption) -> Option<SessionOption> {
    let SessionConfigKind::Select(select) = &option.kind else { return None };
    let choices = match &select.options {
        SessionConfigSelectOptions::Ungrouped(choices) => choices.iter().map(read_session_option_choice).collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| group.options.iter().map(read_session_option_choice)).collect()
        }
        _ => Vec::new(),
    };
    Some(SessionOption {
        id: option.id.0.to_string(),
        name: clean_output_text(&option.name),
        current: select.current_value.0.to_string(),
        choices,
    })
}

fn read_session_option_choice(choice: &SessionConfigSelectOption) -> OptionChoice {
    OptionChoice {
        value: choice.value.0.to_string(),
        name: clean_output_text(&choice.name),
        description: clean_output_text(choice.description.as_deref().unwrap_or_default()),
    }
}
