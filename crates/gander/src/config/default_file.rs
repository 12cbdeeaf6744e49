//! The settings file that `gander config init` writes: every setting, commented, at its default.

use super::setting::{Preset, Setting};
use super::settings::SETTINGS;

const HEAD: &str = "\
# Settings of gander. Each commented line shows a default: remove the `#` to change it.
# Precedence: a flag, then an environment variable, then this file, then the default.
# `gander doctor` shows the active settings and where they come from.
";

const KEYS: &str = "
# Additional model providers. Any OpenAI-compatible server works.
# [providers.work]
# engine = \"openai_chat\"
# base_url = \"https://models.example.com/v1\"
# key_variables = [\"WORK_API_KEY\"]
# default_model = \"big\"

# MCP servers for every session: a program or a URL. A file that holds secrets must have mode 600.
# [extensions.files]
# command = \"npx\"
# args = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/home/me/notes\"]
# env_keys = [\"NOTES_TOKEN\"]  # passed on from [keys]
# [extensions.tracker]
# url = \"https://tracker.example.com/mcp\"
# headers = { Authorization = \"Bearer …\" }
# timeout = \"5m\"
# enabled = true

# API keys and base URLs of model providers that are not in the environment. The file must have mode 600.
# [keys]
# ANTHROPIC_API_KEY = \"sk-ant-…\"
";

/// The text of a fresh settings file.
pub fn default_settings_text() -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section() != section {
            section = setting.section();
            text.push_str(&format!("\n[{section}]\n"));
        }
        text.push_str(&default_setting_lines(setting));
    }
    text.push_str(KEYS);
    text
}

fn default_setting_lines(setting: &Setting) -> String {
    let help =
        wrap_default_file_text(setting.help, 110).into_iter().map(|line| format!("# {line}\n")).collect::<String>();
    let line = match setting.default {
        Preset::Value(literal) => format!("#{} = {literal}\n", setting.name()),
        Preset::Unset(example) => format!("#{} = {example}  # not set by default\n", setting.name()),
    };
    format!("{help}# ({})\n{line}\n", setting.variable())
}

fn wrap_default_file_text(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.len() + word.len() >= width {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}
