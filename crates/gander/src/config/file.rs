//! The settings file: TOML in, known keys with their lines out. An unknown key is an error that names the nearest one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gander_models::Keys;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::agents::{self, FileAgent};
use super::extensions::{self, ConfiguredExtension};
use super::load::ConfigError;
use super::settings::{self, SETTINGS};
use super::store;

/// What a settings file says.
#[derive(Debug, Default)]
pub(super) struct FileSettings {
    pub(super) values: Vec<FileValue>,
    pub(super) keys: Keys,
    pub(super) providers: Table,
    pub(super) extensions: Vec<ConfiguredExtension>,
    pub(super) agents: Vec<FileAgent>,
}

/// One value and where it stands.
#[derive(Debug, PartialEq)]
pub(super) struct FileValue {
    pub(super) setting: &'static str,
    pub(super) value: Value,
    pub(super) line: usize,
}

impl FileValue {
    /// True if it holds a password.
    fn is_secret(&self) -> bool {
        self.setting == "store.url" && self.value.as_str().is_some_and(store::store_holds_password)
    }
}

/// Reads a settings file. One that does not exist says nothing.
pub(super) fn read_settings_file(path: &Path) -> Result<FileSettings, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FileSettings::default()),
        Err(error) => return Err(ConfigError::Unreadable { path: path.to_owned(), reason: error.to_string() }),
    };
    let settings = parse_settings(path, &text)?;
    let secret = settings.keys.key_names().next().is_some()
        || settings.extensions.iter().any(ConfiguredExtension::is_secret)
        || settings.agents.iter().any(FileAgent::is_secret)
        || settings.values.iter().any(FileValue::is_secret);
    if secret && is_file_accessible_by_others(path) {
        return Err(ConfigError::KeysExposed(path.to_owned()));
    }
    Ok(settings)
}

/// Reads the text of a settings file.
pub(super) fn parse_settings(path: &Path, text: &str) -> Result<FileSettings, ConfigError> {
    let at = |offset: usize| text[..offset].matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| ConfigError::BadFile {
        path: path.to_owned(),
        line: at(error.span().map_or(0, |span| span.start)),
        reason: error.message().to_owned(),
    })?;
    let mut found = FileSettings::default();
    let unknown = |key: String, line| ConfigError::unknown_key(path, line, key);
    for (section, value) in table.get_ref() {
        let DeValue::Table(entries) = value.get_ref() else {
            return Err(unknown(section.get_ref().to_string(), at(section.span().start)));
        };
        if section.get_ref() == "keys" {
            read_file_keys(path, entries, &at, &mut found.keys)?;
            continue;
        }
        if section.get_ref() == "providers" {
            found.providers = owned_file_table(entries);
            continue;
        }
        if ["extensions", "agents"].contains(&section.get_ref().as_ref()) {
            for (name, value) in entries {
                let line = at(name.span().start);
                let bad = |reason| ConfigError::BadFile { path: path.to_owned(), line, reason };
                let (name, value) = (name.get_ref(), owned_file_value(value.get_ref()));
                match section.get_ref().as_ref() {
                    "agents" => found.agents.push(agents::parse_agent(name, value).map_err(bad)?),
                    _ => found.extensions.push(extensions::parse_extension(name, value).map_err(bad)?),
                }
            }
            continue;
        }
        read_file_section(path, section.get_ref(), entries, &at, &mut found.values)?;
        if entries.is_empty() && !SETTINGS.iter().any(|setting| setting.section() == section.get_ref()) {
            return Err(unknown(section.get_ref().to_string(), at(section.span().start)));
        }
    }
    Ok(found)
}

/// The settings of one section. A table that is no setting is a section inside it.
fn read_file_section(
    path: &Path,
    section: &str,
    entries: &DeTable<'_>,
    at: &dyn Fn(usize) -> usize,
    values: &mut Vec<FileValue>,
) -> Result<(), ConfigError> {
    for (name, value) in entries {
        let (key, line) = (format!("{section}.{}", name.get_ref()), at(name.span().start));
        let is_section = SETTINGS.iter().any(|setting| setting.section() == key);
        match (settings::find_setting(&key), value.get_ref()) {
            (Some(setting), value) => {
                values.push(FileValue { setting: setting.key, value: owned_file_value(value), line });
            }
            (None, DeValue::Table(inner)) if is_section => read_file_section(path, &key, inner, at, values)?,
            (None, _) => return Err(ConfigError::unknown_key(path, line, key)),
        }
    }
    Ok(())
}

fn read_file_keys(
    path: &Path,
    entries: &DeTable<'_>,
    at: &dyn Fn(usize) -> usize,
    keys: &mut Keys,
) -> Result<(), ConfigError> {
    for (name, value) in entries {
        let (name, line) = (name.get_ref().to_string(), at(name.span().start));
        let DeValue::String(value) = value.get_ref() else {
            let reason = format!("a key must be a text: keys.{name}");
            return Err(ConfigError::BadFile { path: path.to_owned(), line, reason });
        };
        keys.set_key(name, value.to_string());
    }
    Ok(())
}

/// The value without its places in the text.
fn owned_file_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(integer) => {
            let parsed = i64::from_str_radix(integer.as_str(), integer.radix());
            parsed.map_or_else(|_| Value::String(integer.to_string()), Value::Integer)
        }
        DeValue::Float(float) => {
            let parsed: Result<f64, _> = float.as_str().parse();
            parsed.map_or_else(|_| Value::String(float.to_string()), Value::Float)
        }
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(datetime) => Value::Datetime(*datetime),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| owned_file_value(item.get_ref())).collect()),
        DeValue::Table(table) => Value::Table(owned_file_table(table)),
    }
}

fn owned_file_table(table: &DeTable<'_>) -> Table {
    table.iter().map(|(name, value)| (name.get_ref().to_string(), owned_file_value(value.get_ref()))).collect()
}

/// True if others may read the file.
fn is_file_accessible_by_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn error(text: &str) -> String {
        parse_settings(Path::new("gander.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn values_know_their_lines() {
        let text = "# hello\n[server]\nlisten = \"127.0.0.1:1\"\n\n[agent]\nmax_turns = 0x10\ncompact_at = 0.5\n";
        let found = parse_settings(Path::new("gander.toml"), text).unwrap();
        let value = |setting, value, line| FileValue { setting, value, line };
        let expected = vec![
            value("agent.max_turns", Value::Integer(16), 6),
            value("agent.compact_at", Value::Float(0.5), 7),
            value("server.listen", Value::String("127.0.0.1:1".into()), 3),
        ];
        let mut values = found.values;
        values.sort_by_key(|value| (value.setting.split('.').next() != Some("agent"), value.line));
        assert_eq!(values, expected);
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest() {
        assert_eq!(
            error("[server]\n\nlisen = \"x\"\n"),
            "gander.toml:3: unknown key (did you mean server.listen?): server.lisen"
        );
        assert_eq!(error("[servers]\n"), "gander.toml:1: unknown key: servers");
        assert_eq!(error("listen = 1\n"), "gander.toml:1: unknown key: listen");
    }

    #[test]
    fn broken_toml_names_its_line() {
        assert!(error("[server]\nlisten = \n").starts_with("gander.toml:2: "));
    }
}
