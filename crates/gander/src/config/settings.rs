//! Every setting there is: its key, its default, and a sentence for people. The file, the docs and the checks come from here.

use toml::Value;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `section.name`.
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

/// Every setting, in the order of the file.
pub const SETTINGS: &[Setting] = &[
    unset(
        "model.default",
        r#""anthropic/claude-sonnet-5""#,
        "The default model, as provider/model. Not set: the first provider whose key is in the environment, then a model server on this machine, then the built-in demo model.",
    ),
    unset(
        "model.fast",
        r#""openai/gpt-5-mini""#,
        "The model for modes that ask for a fast one. Not set: the default model.",
    ),
    unset(
        "model.strong",
        r#""anthropic/claude-opus-5""#,
        "The model for modes that ask for a strong one. Not set: the default model.",
    ),
    unset(
        "model.effort",
        r#""medium""#,
        "Reasoning effort: off, low, medium or high. Not set: the model's own default.",
    ),
    value(
        "permissions.policy",
        r#""ask""#,
        "What runs without approval: read_only (reads run, everything else is refused), ask (reads run, everything else prompts), auto_edit (edits inside the workspace run too) or auto (everything that no rule denies).",
    ),
    value(
        "permissions.rules",
        "[]",
        "Rules per tool and argument pattern, such as { tool = \"shell\", pattern = \"cargo test*\", action = \"allow\" }; the strictest matching rule wins: deny over ask over allow.",
    ),
    value(
        "permissions.remind_after",
        r#""20s""#,
        "How long a permission request waits for an ACP client that has not shown that it can answer one, before its stream says what waits and how to answer it elsewhere. \"0s\": never.",
    ),
    value(
        "audit.keep",
        r#""90d""#,
        "How long the audit trail keeps the actions of a deleted session: who, when, which tool, exit code and a hash, never their content.",
    ),
    value("agent.max_turns", "100", "Maximum model calls in one run."),
    value("agent.retries", "3", "How often a failed model call is retried."),
    value("agent.retry_after_ms", "1000", "Delay before the first retry, in milliseconds; it doubles with each retry."),
    value(
        "agent.longest_wait_seconds",
        "120",
        "If a provider asks for a longer delay than this, the run fails instead.",
    ),
    value("agent.max_bad_calls", "5", "Consecutive calls of unknown tools, or with invalid arguments, that end a run."),
    value(
        "agent.parallel_tool_calls",
        "8",
        "Tool calls of one run that execute in parallel; further ones wait in order.",
    ),
    value(
        "agent.compact_at",
        "0.8",
        "The share of the model's context window that may fill before older messages are summarised.",
    ),
    value("agent.window", "128000", "Context window, in tokens, assumed for models that do not report one."),
    unset("agent.max_output", "8192", "Maximum output tokens per model call. Not set: the model's own limit."),
    value("agent.max_result_chars", "60000", "Characters of one tool result sent to the model; clients see all of it."),
    value(
        "agent.context_files",
        r#"["AGENTS.md", ".goosehints"]"#,
        "Names of context files added to the system prompt: from the settings folder, the repository's folders above the workspace, and the workspace.",
    ),
    value(
        "agent.split",
        "true",
        "Split multi-part requests among sub-agents, in sessions with routing on (the agent auto).",
    ),
    value("tools.command_time", r#""2m""#, "Default time limit of a shell command."),
    value(
        "tools.longest_command_time",
        r#""10m""#,
        "Longest time limit that the model may request for a shell command.",
    ),
    value(
        "tools.command_output",
        r#""64 KiB""#,
        "How much of a command's output is kept: half from the start, half from the end.",
    ),
    value("tools.result", r#""256 KiB""#, "Maximum size of a tool's text result."),
    value("tools.fetch_time", r#""10s""#, "Time limit for fetching a page, including redirects."),
    value("tools.fetch_size", r#""2 MiB""#, "Maximum size read from a page."),
    value(
        "sandbox.enabled",
        "true",
        "Run shell commands and MCP programs in a sandbox where the system supports it (see docs/sandbox.md). Without a sandbox every command prompts.",
    ),
    value("sandbox.bubblewrap", "true", "Use bubblewrap where it is installed and works."),
    value(
        "sandbox.network",
        "false",
        "Give commands in the sandbox network access. Otherwise a command that needs the network prompts you.",
    ),
    value(
        "sandbox.server_network",
        "false",
        "Give MCP programs network access; a single `[extensions]` entry can ask for it with network = true.",
    ),
    value(
        "sandbox.readable",
        "[]",
        "Folders in your home directory that commands in the sandbox may read, in addition to toolchains.",
    ),
    value("sandbox.writable", "[]", "Folders that commands in the sandbox may write to, in addition to the workspace."),
    value("sandbox.memory", r#""8 GiB""#, "Memory limit per process in the sandbox. 0 B: no limit."),
    value("sandbox.processes", "1024", "Maximum processes and threads per command in the sandbox. 0: no limit."),
    value(
        "recovery.on_restart",
        r#""resume""#,
        "What happens to a run that was active when the server died: resume or fail.",
    ),
    value("recovery.max_age", r#""15m""#, "A run whose last activity is older than this fails instead of resuming."),
    value("recovery.max_times", "3", "How often one run is resumed before it fails."),
    unset("schedules.zone", r#""Europe/Berlin""#, "Default time zone of new schedules. Not set: the machine's."),
    value(
        "schedules.missed",
        r#""run""#,
        "What happens to runs missed while no server was running: run (once for all of them, at the next start) or skip.",
    ),
    value(
        "daemon.idle",
        r#""10m""#,
        "How long the background server stays up when no client is attached and nothing runs.",
    ),
    unset(
        "acp.dialect",
        r#""standard""#,
        "Force one dialect for every ACP client: standard, goosed, aptove or agentkit (see docs/dialects.md). Not set: detected per client.",
    ),
    value("acp.v2", "false", "Offer the draft version 2 of ACP to clients that request it."),
    unset(
        "acp.if_busy",
        r#""queue""#,
        "What a second prompt over ACP does while a turn runs: refuse, queue (it runs afterwards) or steer (it is handed to the running turn). A prompt's `_meta.ifBusy` takes precedence. Not set: refuse.",
    ),
    value("server.listen", r#""127.0.0.1:4747""#, "Listen address of `gander serve`."),
    value(
        "server.allowed_hosts",
        "[]",
        "Additional host names that requests may use (checked against the Host header). localhost and the listen address always work.",
    ),
    value(
        "server.allowed_origins",
        "[]",
        "Additional web origins that may call the server, such as \"https://app.example\".",
    ),
    value(
        "server.roots",
        "[]",
        "Folders (absolute paths) that principals other than the owner, and the owner from another machine, may use as workspaces. Empty: such sessions get a private folder each. The owner on this machine may choose any folder except the data directory.",
    ),
    value(
        "server.workspaces",
        "{}",
        "The folder of new sessions per agent, such as { gander = \"/home/ann/notes\" }, for ACP-REST, A2A and ADK clients that name none. A caller who may not use the folder (see `roots`) gets a private one.",
    ),
    value(
        "server.reply_grace",
        r#""10s""#,
        "How long a turn started by goose's `/reply` continues after its client disconnects. Disconnecting is how these clients stop a turn.",
    ),
    value(
        "server.allow_remote_commands",
        "false",
        "Allow network clients to name programs to start. Clients on the local socket always may.",
    ),
    value(
        "server.open",
        "[]",
        "Protocols that need no token, for clients that cannot send one: \"acp-rest\", \"a2a\", \"adk\". Only for callers on this machine, and only while the server listens on loopback addresses.",
    ),
    value(
        "server.open_approve",
        "false",
        "Let callers without a token (`server.open`) also answer permission requests. Without it they can read and prompt.",
    ),
    value(
        "server.forward_resources",
        "false",
        "Let ACP-REST sessions list URLs of their messages, so that another server can continue them. Anyone who knows such a URL can read that message for a day.",
    ),
    value(
        "server.resource_peers",
        "[]",
        "Servers on this machine or a private network (host or host:port) from which a session's history may be fetched. Public servers are always allowed.",
    ),
    unset(
        "a2a.agent",
        r#""gander""#,
        "The agent served at /a2a and by the card at the root. Not set: the first agent.",
    ),
    unset(
        "a2a.public_url",
        r#""https://agents.example""#,
        "The base URL in agent cards. Not set: the URL of the request.",
    ),
    value(
        "a2a.v03",
        "true",
        "Include the fields of A2A 0.3 in agent cards. Requests of version 0.3 are always answered.",
    ),
    value("a2a.grpc", "false", "Serve A2A over gRPC too, on the same port, and list it in agent cards."),
    value(
        "a2a.push_allow",
        "[]",
        "Push notification receivers on private networks or this machine that are allowed, as \"host\" or \"host:port\". All others must have a public address.",
    ),
    value(
        "a2a.sign",
        "false",
        "Sign agent cards (JWS, ES256). The key is created at first use; /.well-known/jwks.json has its public half.",
    ),
    unset(
        "a2a.signing_key",
        r#""/etc/gander/a2a-key.pem""#,
        "File with the P-256 private key (PKCS #8, PEM) that signs agent cards. Not set: a key in the data directory.",
    ),
    value("adk.user", r#""user""#, "The user id under which ADK clients see sessions from other protocols."),
    value("adk.on_leave", r#""continue""#, "What happens to a run whose ADK client disconnects: continue or cancel."),
    value(
        "adk.join",
        r#""30ms""#,
        "Chunks that arrive within this time are sent to ADK clients as one, because their page is slow with many. \"0s\" sends each one.",
    ),
    unset(
        "adk.ui",
        r#""/opt/adk/browser""#,
        "Folder of an installed adk web page (`browser` of google-adk or @google/adk-devtools), served under /dev-ui/.",
    ),
    value("limits.body", r#""4 MiB""#, "Maximum body size of a request."),
    value("limits.prompt_body", r#""32 MiB""#, "Maximum body size of requests that carry a prompt."),
    value("limits.header_size", r#""32 KiB""#, "Maximum total size of a request's headers."),
    value("limits.header_lines", "100", "Maximum number of header lines."),
    value("limits.uri", r#""8 KiB""#, "Maximum length of a request's URI."),
    value("limits.line", r#""16 MiB""#, "Maximum line length of line-delimited protocols."),
    value("limits.header_time", r#""10s""#, "Timeout for receiving the headers."),
    value("limits.body_time", r#""1m""#, "Timeout for receiving the body."),
    value(
        "limits.stalled_reader",
        r#""30s""#,
        "How long a response or stream waits for a client that reads nothing before its connection is closed.",
    ),
    value("limits.requests_per_second", "100", "Sustained requests per second per token from other machines."),
    value("limits.request_burst", "200", "Burst of requests per token from other machines."),
    value(
        "limits.local_requests_per_second",
        "20000",
        "Sustained requests per second per token from this machine. This only stops runaway loops.",
    ),
    value("limits.local_request_burst", "40000", "Burst of requests per token from this machine."),
    value("limits.bad_tokens_per_minute", "20", "Invalid tokens per minute and address before the response is 429."),
    value("limits.connections", "20000", "Maximum concurrent connections; further ones wait."),
    value(
        "limits.streams",
        "100",
        "Maximum open streams and WebSockets per token from other machines; further ones get 429.",
    ),
    value(
        "limits.local_streams",
        "2000",
        "Maximum open streams and WebSockets per token from this machine; further ones get 429.",
    ),
    value(
        "limits.idle_sessions",
        r#""64 MiB""#,
        "Memory for cached conversations of idle sessions. The least recently used are dropped first and re-read from the log when needed.",
    ),
    unset(
        "store.url",
        r#""postgres://gander@db.example/gander""#,
        "A PostgreSQL database (15 or later) for sessions, instead of one file in the data directory. The password comes from here, from PGPASSWORD or from ~/.pgpass, and is shown nowhere. See scale.md.",
    ),
    value(
        "log.filter",
        r#""info""#,
        "Log level: error, warn, info, debug or trace, optionally per module (`info,gander_gateway=debug`).",
    ),
];

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
        self.key.split_once('.').map_or(self.key, |(section, _)| section)
    }

    /// Its name inside the section.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(_, name)| name)
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

/// The setting with this key.
pub(super) fn find_setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The known word that is most like this one, if any is like it at all.
pub(super) fn nearest_name<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (setting_name_distance(word, candidate), candidate));
    scored.filter(|(distance, _)| *distance <= 2.max(word.len() / 3)).min().map(|(_, candidate)| candidate)
}

const fn value(key: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { key, default: Preset::Value(default), help }
}

const fn unset(key: &'static str, example: &'static str, help: &'static str) -> Setting {
    Setting { key, default: Preset::Unset(example), help }
}

fn parse_setting_literal(literal: &str) -> Result<Value, toml::de::Error> {
    literal.parse::<Value>()
}

/// How many letters must be changed, added or taken away (Levenshtein).
fn setting_name_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_toml_and_every_key_is_unique() {
        let mut keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
        for setting in SETTINGS {
            let (Preset::Value(literal) | Preset::Unset(literal)) = setting.default;
            assert!(parse_setting_literal(literal).is_ok(), "{}", setting.key);
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), SETTINGS.len());
    }

    #[test]
    fn a_typing_error_finds_its_word() {
        let keys = || SETTINGS.iter().map(|setting| setting.key);
        assert_eq!(nearest_name("server.lisen", keys()), Some("server.listen"));
        assert_eq!(nearest_name("permission.policy", keys()), Some("permissions.policy"));
        assert_eq!(nearest_name("zzzz", keys()), None);
    }
}
