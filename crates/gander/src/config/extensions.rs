//! The owner's MCP servers, as the settings file names them.

use gander_mcp::{Reach, Spec};
use gander_models::Keys;
use gander_services::extensions::ExtensionEntry;
use gander_tools::BuiltIn;
use toml::Value;

/// One server of the settings file.
#[derive(Debug)]
pub(super) struct ConfiguredExtension {
    name: String,
    entry: ExtensionEntry,
}

/// Reads one server, or says what is wrong with it.
pub(super) fn parse_extension(name: &str, value: Value) -> Result<ConfiguredExtension, String> {
    let entry: ExtensionEntry = value.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    Ok(ConfiguredExtension { name: name.to_owned(), entry: entry.validated(name)? })
}

impl ConfiguredExtension {
    /// True if the file should be read by its owner alone.
    pub(super) fn is_secret(&self) -> bool {
        self.entry.is_secret()
    }

    /// Tools of our own that it switches on or off.
    pub(super) fn built_in_switch(&self) -> Option<(BuiltIn, bool)> {
        let built_in = BuiltIn::from_name(&self.name).filter(|_| self.entry.is_built_in())?;
        Some((built_in, self.entry.enabled != Some(false)))
    }

    /// As it is started; none if it is switched off, or starts nothing.
    pub(super) fn spec(&self, keys: &Keys) -> Option<Spec> {
        self.entry.to_mcp_spec(&self.name, keys, Reach::Anywhere)
    }
}
