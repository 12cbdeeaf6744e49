//! Settings: what wins, what is refused, and that the files for people say what the code does.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use gander::config::{Config, Environment, FlagValue, Flags, Origin, SETTINGS, Setting, default_settings_text};

struct TestDirectory {
    root: tempfile::TempDir,
}

impl TestDirectory {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.root.path().join("gander.toml")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.file(), text).unwrap();
        std::fs::set_permissions(self.file(), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn load(&self, variables: &[(&str, &str)], values: Vec<FlagValue>) -> Result<Config, String> {
        let home = ("HOME".to_owned(), self.root.path().display().to_string());
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let config = self.file().exists().then(|| self.file());
        let flags = Flags { config, data: None, values };
        Config::load(&flags, &Environment::from_pairs(variables.chain([home]))).map_err(|error| error.to_string())
    }
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let test_directory = TestDirectory::new();
    let model = |config: &Config| (config.sections.model.default.clone(), config.origin("model.default"));
    let config = test_directory.load(&[], vec![]).unwrap();
    assert_eq!(model(&config), (None, Origin::Default));
    test_directory.write("[model]\ndefault = \"a/file\"\n");
    let config = test_directory.load(&[], vec![]).unwrap();
    assert_eq!(model(&config), (Some("a/file".into()), Origin::File { path: test_directory.file(), line: 2 }));
    let config = test_directory.load(&[("GANDER_MODEL", "a/variable")], vec![]).unwrap();
    assert_eq!(model(&config), (Some("a/variable".into()), Origin::Variable("GANDER_MODEL".into())));
    let flag = FlagValue { key: "model.default", flag: "--model", text: "a/flag".into() };
    let config = test_directory.load(&[("GANDER_MODEL", "a/variable")], vec![flag]).unwrap();
    assert_eq!(model(&config), (Some("a/flag".into()), Origin::Flag("--model")));
}

#[test]
fn every_setting_can_be_set_by_its_variable() {
    let test_directory = TestDirectory::new();
    let config = test_directory
        .load(&[("GANDER_AGENT_MAX_TURNS", "7"), ("GANDER_SERVER_ALLOWED_HOSTS", "['a', 'b']")], vec![])
        .unwrap();
    assert_eq!(config.sections.agent.max_turns, 7);
    assert_eq!(config.sections.server.allowed_hosts, ["a", "b"]);
}

#[test]
fn a_wrong_value_names_who_said_it() {
    let test_directory = TestDirectory::new();
    assert_eq!(
        test_directory.load(&[("GANDER_LIMITS_BODY", "4 MB")], vec![]).unwrap_err(),
        "GANDER_LIMITS_BODY: not a size such as \"4 MiB\": 4 MB: limits.body"
    );
    test_directory.write("\n[permissions]\npolicy = \"yolo\"\n");
    let error = test_directory.load(&[], vec![]).unwrap_err();
    assert!(error.starts_with(&format!("{}:3: unknown variant `yolo`", test_directory.file().display())), "{error}");
}

#[test]
fn keys_come_from_the_environment_before_the_file_and_never_from_a_file_others_can_read() {
    let test_directory = TestDirectory::new();
    test_directory.write("[keys]\nOPENAI_API_KEY = \"file\"\nGROQ_API_KEY = \"file\"\n");
    let config = test_directory.load(&[("OPENAI_API_KEY", "environment")], vec![]).unwrap();
    assert_eq!(config.keys.get("OPENAI_API_KEY"), Some("environment"));
    assert_eq!(config.keys.get("GROQ_API_KEY"), Some("file"));
    assert!(!format!("{config:?}").contains("environment\""), "a key shows in Debug");
    std::fs::set_permissions(test_directory.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = test_directory.load(&[], vec![]).unwrap_err();
    assert!(error.contains("chmod 600"), "{error}");
}

#[test]
fn defaults_are_those_of_the_agent_and_its_tools() {
    let config = TestDirectory::new().load(&[], vec![]).unwrap();
    assert_eq!(config.sections.agent, gander_agent::AgentSettings::default());
    assert_eq!(config.sections.tools.limits(), gander_tools::Limits::default());
}

#[test]
fn an_own_provider_brings_its_variables() {
    let test_directory = TestDirectory::new();
    test_directory.write("[providers.work]\nengine = \"openai_chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_variables = [\"WORK_API_KEY\"]\n");
    let config = test_directory.load(&[("WORK_API_KEY", "k"), ("OTHER_SECRET", "s")], vec![]).unwrap();
    assert_eq!(config.keys.key_names().collect::<Vec<_>>(), ["WORK_API_KEY"]);
    assert!(config.catalogue().unwrap().vendor("work").is_some());
}

#[test]
fn rules_are_read_and_checked() {
    let test_directory = TestDirectory::new();
    test_directory.write("[[permissions.rules]]\ntool = \"shell\"\npattern = \"cargo test*\"\naction = \"allow\"\n");
    let rules = test_directory.load(&[], vec![]).unwrap().sections.permissions.rules;
    assert_eq!(
        serde_json::to_value(rules).unwrap(),
        serde_json::json!([{ "tool": "shell", "pattern": "cargo test*", "action": "allow" }])
    );
    test_directory.write("[[permissions.rules]]\ntool = \"shell\"\nacton = \"allow\"\n");
    let error = test_directory.load(&[], vec![]).unwrap_err();
    assert!(error.contains("unknown field `acton`") && error.ends_with("permissions.rules"), "{error}");
}

#[test]
fn a_variable_that_means_nothing_is_told() {
    let test_directory = TestDirectory::new();
    let config = test_directory.load(&[("GANDER_MODELL", "x")], vec![]).unwrap();
    assert_eq!(config.warnings, ["environment variable means nothing (did you mean GANDER_MODEL?): GANDER_MODELL"]);
}

#[test]
fn the_documented_file_shows_the_defaults() {
    let test_directory = TestDirectory::new();
    let defaults = test_directory.load(&[], vec![]).unwrap();
    test_directory.write(&default_settings_text());
    let untouched = test_directory.load(&[], vec![]).unwrap();
    assert_eq!((&untouched.sections, untouched.origins.len()), (&defaults.sections, 1));
    let active: String = default_settings_text().lines().map(uncomment).collect();
    test_directory.write(&active);
    let spelled_out = test_directory.load(&[], vec![]).unwrap();
    assert_eq!(spelled_out.sections, defaults.sections);
    let with_default = SETTINGS.iter().filter(|setting| setting.default_value().is_some()).count();
    assert_eq!(spelled_out.origins.len(), with_default + 1);
}

/// Takes the `#` from a line that shows a default.
fn uncomment(line: &str) -> String {
    let shown = line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    match shown {
        Some(rest) if !rest.ends_with("# not set by default") => format!("{rest}\n"),
        Some(_) | None => format!("{line}\n"),
    }
}

#[test]
fn the_manual_lists_every_setting() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    expect_file![manual].assert_eq(&manual_text());
}

const MANUAL_HEAD: &str = "# Configuration

gander needs no configuration. `gander doctor` shows the active settings and where each value comes from.

| precedence | example |
|---|---|
| 1. a flag | `gander serve --listen 127.0.0.1:9000` |
| 2. an environment variable | `GANDER_SERVER_LISTEN=127.0.0.1:9000` |
| 3. the settings file | `$XDG_CONFIG_HOME/gander/gander.toml` (else `~/.config/gander/gander.toml`), or `--config FILE`, or `GANDER_CONFIG` |
| 4. the default | below |

`gander config init` writes a settings file that lists every setting, commented out, with its default. An unknown key is an
error that names its line and the closest known key.

A running server follows its settings file:

| setting | a change takes effect |
|---|---|
| `permissions.rules` | at the next permission decision, also in a running turn |
| `[extensions]` | at once: the tools of a server that was removed are gone, also in a running turn |
| a stricter `permissions.policy` | at the next permission decision, also in a running turn, in every session whose policy nobody chose; a looser one in the next session |
| `model.*`, `agent.*`, `tools.*`, `sandbox.network`, `[keys]`, `[providers]` | in the next turn; the effort that a session gets when it starts, in the next session |
| everything else | after `gander server restart` |

`gander doctor` shows every setting whose active value differs from the file. A file with an error, or one that is gone or empty, changes nothing: `gander doctor` and the
server's log name the error, and the previous settings stay active.

Data (sessions, token, socket) is stored in `--data DIR`, else `GANDER_DATA`, else `$XDG_DATA_HOME/gander`, else
`~/.local/share/gander`. Only its owner can read it.

API keys of model providers are read from their usual variables (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`,
`OPENAI_BASE_URL`, `GEMINI_API_KEY`, `OLLAMA_HOST` and so on), else from a `[keys]` section of the settings file, which
must then have mode 600, else from what `gander setup` stored: it asks for a key, tests it with one request and writes it to `keys.json` in
the data directory (mode 600), with the model as the default. Settings, variables and flags take precedence over it. Further providers (any OpenAI-compatible server) go into
`[providers.NAME]` sections; `gander config init` shows one. `NO_COLOR` turns colours off.

MCP servers for every session go into `[extensions.NAME]` sections: `command` with `args`, `env` and `env_keys` (names
passed on from `[keys]`), or `url` with `headers` and `client_id` (for OAuth servers where gander was registered by hand); `timeout` (maximum silence of one call, five minutes by
default), `shared` (one server for all of your sessions in the same folders) and `enabled`; `type = \"builtin\"` switches [built-in extensions](mcp.md#built-in-extensions). A file with `env` or `headers` in it must have mode 600. More: [mcp.md](mcp.md).
";

fn manual_text() -> String {
    let mut text = MANUAL_HEAD.to_owned();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section() != section {
            section = setting.section();
            text.push_str(&format!(
                "\n## [{section}]\n\n| setting | default | variable | meaning |\n|---|---|---|---|\n"
            ));
        }
        text.push_str(&manual_row(setting));
    }
    text
}

fn manual_row(setting: &Setting) -> String {
    let default = setting.default_value().map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"));
    format!("| `{}` | {default} | `{}` | {} |\n", setting.name(), setting.variable(), setting.help)
}
