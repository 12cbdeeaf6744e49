//! One setting: its key, what holds without it, and when a change of it counts.

use toml::Value;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `section.name`, where a section may lie in another.
    pub key: &'static str,
    /// What holds if nobody says anything, or an example if then nothing holds.
    pub default: Preset,
    /// What it means, in one or two sentences.
    pub help: &'static str,
}

/// What holds if nobody says anything, as TOML.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// This.
    Value(&'static str),
    /// Nothing; a value would look like this.
    Unset(&'static str),
}

/// When a change of the settings file counts in a server that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesEffect {
    /// At the next permission decision, also of a run that is under way.
    NextDecision,
    /// In the next run of a session, or in the next session if it is set when one begins.
    NextRun,
    /// When the server is started again.
    Restart,
}

impl Setting {
    /// When a change of it counts in a server that runs.
    pub fn takes_effect(&self) -> TakesEffect {
        match (self.section(), self.key) {
            (_, "permissions.rules") => TakesEffect::NextDecision,
            (_, "permissions.remind_after") => TakesEffect::Restart,
            ("model" | "agent" | "permissions" | "tools", _) | (_, "sandbox.network") => TakesEffect::NextRun,
            _ => TakesEffect::Restart,
        }
    }

    /// The section it belongs to.
    pub fn section(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(section, _)| section)
    }

    /// Its name inside the section.
    pub fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(_, name)| name)
    }

    /// Its value among those of all sections.
    pub fn value_in<'a>(&self, sections: &'a serde_json::Value) -> &'a serde_json::Value {
        self.key.split('.').fold(sections, |value, name| &value[name])
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        match self.key {
            "model.default" => "GANDER_MODEL".to_owned(),
            "log.filter" => "GANDER_LOG".to_owned(),
            "store.url" => "GANDER_STORE".to_owned(),
            key => format!("GANDER_{}", key.replace('.', "_").to_uppercase()),
        }
    }

    /// Its default, if it has one.
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            Preset::Value(literal) => {
                Some(parse_setting_literal(literal).expect("defaults are valid TOML: a test reads them all"))
            }
            Preset::Unset(_) => None,
        }
    }

    /// Reads a value from a flag or a variable: a plain text where a text is wanted, else TOML.
    pub fn parse_value(&self, text: &str) -> Result<Value, String> {
        let (Preset::Value(literal) | Preset::Unset(literal)) = self.default;
        if literal.starts_with('"') {
            return Ok(Value::String(text.to_owned()));
        }
        parse_setting_literal(text).map_err(|error| error.message().to_owned())
    }
}

pub(super) const fn setting_value(key: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { key, default: Preset::Value(default), help }
}

pub(super) const fn unset_setting(key: &'static str, example: &'static str, help: &'static str) -> Setting {
    Setting { key, default: Preset::Unset(example), help }
}

pub(super) fn parse_setting_literal(literal: &str) -> Result<Value, toml::de::Error> {
    literal.parse::<Value>()
}
