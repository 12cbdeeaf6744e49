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

/// Every setting, in the order of the file.
pub const SETTINGS: &[Setting] = &[
    unset(
        "model.default",
        r#""anthropic/claude-sonnet-5""#,
        "Which model answers, as provider/model. Not set: the first provider whose key is in the environment, then a model server on this machine, then the built-in demo.",
    ),
    unset(
        "model.fast",
        r#""openai/gpt-5-mini""#,
        "Which model answers in modes that want a quick one. Not set: the default.",
    ),
    unset(
        "model.strong",
        r#""anthropic/claude-opus-5""#,
        "Which model answers in modes that want a good one. Not set: the default.",
    ),
    unset(
        "model.effort",
        r#""medium""#,
        "How hard the model thinks: off, low, medium or high. Not set: the model's own default.",
    ),
    value(
        "permissions.policy",
        r#""ask""#,
        "What runs unasked: read_only (only looking, the rest is refused), ask (looking is free, the rest asks), auto_edit (editing inside the workspace is free too) or auto (everything a rule does not forbid).",
    ),
    value(
        "permissions.rules",
        "[]",
        "Rules per tool and argument pattern, such as { tool = \"shell\", pattern = \"cargo test*\", action = \"allow\" }; the strictest that fits wins: deny over ask over allow.",
    ),
    value("agent.max_turns", "100", "Model calls in one run before it stops."),
    value("agent.retries", "3", "How often a failed model call is tried again."),
    value(
        "agent.retry_after_ms",
        "1000",
        "The first pause before trying again, in milliseconds; each further one is twice as long.",
    ),
    value("agent.longest_wait_seconds", "120", "A provider that wants a longer pause than this ends the run instead."),
    value(
        "agent.max_bad_calls",
        "5",
        "Calls of unknown tools or with wrong arguments, one after another, that end a run.",
    ),
    value(
        "agent.parallel_tool_calls",
        "8",
        "Tool calls of one run that run at the same time; further ones wait, in their order.",
    ),
    value(
        "agent.compact_at",
        "0.8",
        "The share of the model's window that may fill up before older messages are summarised.",
    ),
    value("agent.window", "128000", "Tokens in the window of a model that does not say."),
    unset("agent.max_output", "8192", "Tokens a model may write per call. Not set: the model's own limit."),
    value(
        "agent.max_result_chars",
        "60000",
        "Characters of one tool result that the model is shown; people see all of it.",
    ),
    value(
        "agent.context_files",
        r#"["AGENTS.md", ".goosehints"]"#,
        "Names of files whose text the agent is given: of the settings folder, of the repository's folders above the workspace, and of the workspace.",
    ),
    value(
        "agent.split",
        "true",
        "Whether a request that is several in one goes to sub-agents, part by part, in sessions that leave open who answers (the agent auto).",
    ),
    value("tools.command_time", r#""2m""#, "How long a shell command may take unless the model asks for more."),
    value("tools.longest_command_time", r#""10m""#, "How long a shell command may take at most."),
    value(
        "tools.command_output",
        r#""64 KiB""#,
        "How much of a command's output is kept, half from its start and half from its end.",
    ),
    value("tools.result", r#""256 KiB""#, "How much text a tool may give back."),
    value("tools.fetch_time", r#""10s""#, "How long fetching a page may take, redirects included."),
    value("tools.fetch_size", r#""2 MiB""#, "How much of a page is read."),
    value(
        "sandbox.enabled",
        "true",
        "Whether shell commands and programs of MCP servers run in a sandbox, where the system has what it takes (see docs/sandbox.md). Without one every command asks.",
    ),
    value("sandbox.bubblewrap", "true", "Whether bubblewrap is used, where it is installed and works."),
    value(
        "sandbox.network",
        "false",
        "Whether commands in the sandbox find the network. Where they do not, a command that wants it asks for it.",
    ),
    value(
        "sandbox.server_network",
        "false",
        "Whether programs of MCP servers find it; an entry of `[extensions]` may say so for itself with network = true.",
    ),
    value("sandbox.readable", "[]", "Folders in your home that commands in the sandbox may read, besides toolchains."),
    value("sandbox.writable", "[]", "Folders that commands in the sandbox may write, besides the workspace."),
    value(
        "sandbox.memory",
        r#""8 GiB""#,
        "How much memory each process of a command in the sandbox may write. 0 B: as much as there is.",
    ),
    value(
        "sandbox.processes",
        "1024",
        "How many processes and threads a command in the sandbox may have at once. 0: any number.",
    ),
    value(
        "recovery.on_restart",
        r#""resume""#,
        "What happens to a run that was under way when the server died: resume or fail.",
    ),
    value(
        "recovery.max_age",
        r#""15m""#,
        "A run whose last sign of life is older than this is not resumed but failed.",
    ),
    value("recovery.max_times", "3", "How often one run is resumed before it is failed."),
    unset(
        "schedules.zone",
        r#""Europe/Berlin""#,
        "The time zone of schedules whose maker names none. Not set: the machine's.",
    ),
    value(
        "schedules.missed",
        r#""run""#,
        "What happens to times at which no server ran: run (once for all of them, when the server is back) or skip.",
    ),
    value("daemon.idle", r#""10m""#, "How long the background server stays when nobody is attached and nothing runs."),
    unset(
        "acp.dialect",
        r#""standard""#,
        "The words in which every ACP client is spoken to, whatever it says of itself: standard, goosed, aptove or agentkit. Not set: each client's own.",
    ),
    value("acp.v2", "false", "Whether version 2 of ACP, a draft, is spoken with clients that ask for it."),
    value("server.listen", r#""127.0.0.1:4747""#, "The address of `gander serve`."),
    value(
        "server.allowed_hosts",
        "[]",
        "Names besides localhost and the address itself under which the server may be called (checked against the Host header).",
    ),
    value(
        "server.allowed_origins",
        "[]",
        "Web origins besides the server's own that may call it, such as \"https://app.example\".",
    ),
    value(
        "server.roots",
        "[]",
        "Folders (absolute paths) below which sessions may work that somebody else begins, or the owner from another machine. Without any, such sessions get a private folder each. The owner on this machine may choose any folder but the data directory.",
    ),
    value(
        "server.reply_grace",
        r#""10s""#,
        "How long a turn that was asked for by goose's `/reply` goes on when nobody reads it any more: hanging up is the only stop that its clients have.",
    ),
    value(
        "server.allow_remote_commands",
        "false",
        "Whether a client on the network may name a program to start. Clients on this machine's socket always may.",
    ),
    value(
        "server.open",
        "[]",
        "Doors that need no token, for clients that cannot send one: \"acp-rest\", \"a2a\", \"adk\". Only for callers on this machine, and only while the server listens on loopback addresses alone.",
    ),
    value(
        "server.open_approve",
        "false",
        "May callers without a token also answer questions at the doors in `server.open`? Without it they read and prompt.",
    ),
    value(
        "server.forward_resources",
        "false",
        "Whether a session of the Agent Communication Protocol tells the addresses of its messages, so that another server can go on with it. Whoever knows such an address can read that message for a day.",
    ),
    value(
        "server.resource_peers",
        "[]",
        "Servers on this machine or a private network, as host or host:port, from which the history of a session may be fetched. Public ones always may.",
    ),
    unset("a2a.agent", r#""gander""#, "The agent behind /a2a and the card at the root. Not set: the first one."),
    unset(
        "a2a.public_url",
        r#""https://agents.example""#,
        "The address that agent cards name. Not set: the one by which the caller calls the server.",
    ),
    value(
        "a2a.v03",
        "true",
        "Whether agent cards also carry what clients of A2A 0.3 read. Such requests are answered in any case.",
    ),
    value("a2a.grpc", "false", "Whether A2A is spoken over gRPC too, on the same port, and agent cards say so."),
    value(
        "a2a.push_allow",
        "[]",
        "Receivers of push notifications in private networks or on this machine that may be named, as \"host\" or \"host:port\". All others must have a public address.",
    ),
    value(
        "a2a.sign",
        "false",
        "Whether agent cards are signed (JWS, ES256), so that clients can check who made them. The key is made at first use; /.well-known/jwks.json shows its public half.",
    ),
    unset(
        "a2a.signing_key",
        r#""/etc/gander/a2a-key.pem""#,
        "The key that signs agent cards: a file with a private key on the curve P-256 (PKCS #8, PEM). Not set: one in the data directory.",
    ),
    value("adk.user", r#""user""#, "The user under whom ADK clients see sessions that were made at other doors."),
    value(
        "adk.on_leave",
        r#""continue""#,
        "What happens to a run whose ADK client hangs up: continue, or cancel. What was said stays readable either way.",
    ),
    value(
        "adk.join",
        r#""30ms""#,
        "Pieces of an answer that come within this time are sent to ADK clients as one: their page is slow with many. \"0s\" sends each alone.",
    ),
    unset(
        "adk.ui",
        r#""/opt/adk/browser""#,
        "The folder of an installed adk web page (`browser` of google-adk or @google/adk-devtools), served under /dev-ui/.",
    ),
    value("limits.body", r#""4 MiB""#, "Largest body of a request."),
    value("limits.prompt_body", r#""32 MiB""#, "Largest body of a request that carries a prompt."),
    value("limits.header_size", r#""32 KiB""#, "Largest header of a request, all lines together."),
    value("limits.header_lines", "100", "Most header lines of a request."),
    value("limits.uri", r#""8 KiB""#, "Longest address of a request."),
    value("limits.line", r#""16 MiB""#, "Longest line of a line-delimited protocol."),
    value("limits.header_time", r#""10s""#, "How long a client may take to send a header."),
    value("limits.body_time", r#""1m""#, "How long a client may take to send a body."),
    value(
        "limits.stalled_reader",
        r#""30s""#,
        "How long an answer or a stream waits for a client that takes nothing of it; then its connection is closed.",
    ),
    value("limits.requests_per_second", "100", "Requests per second and token from other machines, in the long run."),
    value("limits.request_burst", "200", "Requests at once per token from other machines."),
    value(
        "limits.local_requests_per_second",
        "20000",
        "Requests per second and token from this machine, in the long run. More than the server can carry out: whoever runs here is slowed down by the machine itself, and this only stops a loop gone wild.",
    ),
    value("limits.local_request_burst", "40000", "Requests at once per token from this machine."),
    value("limits.bad_tokens_per_minute", "20", "Wrong tokens per minute and address before the answer is 429."),
    value("limits.connections", "20000", "Connections at once; more wait until one ends."),
    value(
        "limits.streams",
        "100",
        "Open streams and WebSockets per token from other machines before the answer is 429.",
    ),
    value(
        "limits.local_streams",
        "2000",
        "Open streams and WebSockets per token from this machine before the answer is 429.",
    ),
    value(
        "limits.idle_sessions",
        r#""64 MiB""#,
        "Memory for the conversations of idle sessions, all together. The least recently used go first; their next turn reads the log.",
    ),
    value(
        "log.filter",
        r#""info""#,
        "What is logged: error, warn, info, debug or trace, also per module (`info,gander_gateway=debug`).",
    ),
];

impl Setting {
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
            key => format!("GANDER_{}", key.replace('.', "_").to_uppercase()),
        }
    }

    /// Its default, if it has one.
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            Preset::Value(literal) => {
                Some(parse_literal(literal).expect("defaults are valid TOML: a test reads them all"))
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
        parse_literal(text).map_err(|error| error.message().to_owned())
    }
}

/// The setting with this key.
pub(super) fn find_setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The known word that is most like this one, if any is like it at all.
pub(super) fn nearest_name<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (edit_distance(word, candidate), candidate));
    scored.filter(|(edit_distance, _)| *edit_distance <= 2.max(word.len() / 3)).min().map(|(_, candidate)| candidate)
}

const fn value(key: &'static str, default: &'static str, help: &'static str) -> Setting {
    Setting { key, default: Preset::Value(default), help }
}

const fn unset(key: &'static str, example: &'static str, help: &'static str) -> Setting {
    Setting { key, default: Preset::Unset(example), help }
}

fn parse_literal(literal: &str) -> Result<Value, toml::de::Error> {
    literal.parse::<Value>()
}

/// How many letters must be changed, added or taken away (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
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
            assert!(parse_literal(literal).is_ok(), "{}", setting.key);
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
