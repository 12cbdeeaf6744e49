//! Every setting there is: its key, its default, and a sentence for people. The file, the docs and the checks come from here.

use super::setting::{Setting, setting_value, unset_setting};

/// Every setting, in the order of the file.
pub const SETTINGS: &[Setting] = &[
    unset_setting(
        "model.default",
        r#""anthropic/claude-sonnet-5""#,
        "The default model, as provider/model. Not set: the first provider whose key is in the environment, then a model server on this machine, then the built-in demo model.",
    ),
    unset_setting(
        "model.fast",
        r#""openai/gpt-5-mini""#,
        "The model for modes that ask for a fast one. Not set: the default model.",
    ),
    unset_setting(
        "model.strong",
        r#""anthropic/claude-opus-5""#,
        "The model for modes that ask for a strong one. Not set: the default model.",
    ),
    unset_setting(
        "model.effort",
        r#""medium""#,
        "Reasoning effort: off, low, medium or high. Not set: the model's own default.",
    ),
    setting_value(
        "permissions.policy",
        r#""ask""#,
        "What runs without approval: read_only (reads run, everything else is refused), ask (reads run, everything else prompts), auto_edit (edits inside the workspace run too) or auto (everything that no rule denies).",
    ),
    setting_value(
        "permissions.rules",
        "[]",
        "Rules per tool and argument pattern, such as { tool = \"shell\", pattern = \"cargo test*\", action = \"allow\" }; the strictest matching rule wins: deny over ask over allow.",
    ),
    setting_value(
        "permissions.remind_after",
        r#""20s""#,
        "How long a permission request waits for an ACP client that has not shown that it can answer one, before its stream says what waits and how to answer it elsewhere. \"0s\": never.",
    ),
    setting_value(
        "audit.keep",
        r#""90d""#,
        "How long the audit trail keeps the actions of a deleted session: who, when, which tool, exit code and a hash, never their content.",
    ),
    unset_setting(
        "audit.file",
        r#""/var/log/gander/audit.jsonl""#,
        "A file (absolute path) that each action is appended to once it has ended, as one JSON object per line. Made for its owner only; rotate it as you like.",
    ),
    unset_setting(
        "audit.syslog",
        r#""udp://logs.example.com:514""#,
        "A syslog that each action is sent to once it has ended (RFC 5424): unix:/dev/log, udp://host:port or tcp://host:port.",
    ),
    unset_setting(
        "audit.otel",
        r#""http://127.0.0.1:4318""#,
        "A collector for OpenTelemetry that each action is sent to once it has ended, as a log record (OTLP over HTTP, JSON). See observability.md.",
    ),
    unset_setting(
        "auth.oidc.issuer",
        r#""https://login.example.com""#,
        "The OpenID Connect issuer whose tokens are accepted beside those of `gander token` (see tokens.md). https, or http on this machine. Not set: local tokens only.",
    ),
    unset_setting(
        "auth.oidc.audience",
        r#""https://agents.example.com""#,
        "The audience (`aud`) that a token of the issuer must be made out to. Needed with `issuer`.",
    ),
    setting_value(
        "auth.oidc.algorithms",
        r#"["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]"#,
        "Signature algorithms that are accepted. Only these can be chosen: shared secrets (HS256, …) and `none` never count.",
    ),
    setting_value("auth.oidc.clock_skew", r#""30s""#, "How far the issuer's clock may be off; at most 5m."),
    setting_value(
        "auth.oidc.principal_claim",
        r#""sub""#,
        "The claim that names the principal, which is then called oidc:NAME. Choose one that the issuer never gives to another person.",
    ),
    setting_value("auth.oidc.owners", "[]", "Values of `principal_claim` that stand for the owner of this server."),
    setting_value(
        "auth.oidc.scopes_claim",
        r#""scope""#,
        "The claim that holds scopes, roles or groups: a list, or a text with spaces. A path such as \"realm_access.roles\" looks inside.",
    ),
    setting_value(
        "auth.oidc.scopes",
        r#"{ "gander:prompt" = ["prompt"], "gander:approve" = ["approve"], "gander:admin" = ["admin"] }"#,
        "Which values of `scopes_claim` give which scopes, such as { staff = [\"prompt\", \"approve\"] }.",
    ),
    setting_value(
        "auth.oidc.default_scopes",
        r#"["read"]"#,
        "Scopes that every token of the issuer has for this audience.",
    ),
    unset_setting(
        "auth.oidc.roots_claim",
        r#""gander_roots""#,
        "The claim that lists the folders a principal may choose as workspaces. They count only below `server.roots`; without the claim a principal gets private folders. Not set: all of `server.roots`.",
    ),
    unset_setting(
        "auth.oidc.client_id",
        r#""gander-cli""#,
        "The public client, registered at the issuer for the device flow, that `gander login` uses. Not set: no device login.",
    ),
    setting_value(
        "auth.oidc.login_scopes",
        r#"["openid", "offline_access"]"#,
        "Scopes that `gander login` asks the issuer for. Add those that `scopes` maps, such as \"gander:prompt\".",
    ),
    setting_value("agent.max_turns", "100", "Maximum model calls in one run."),
    setting_value("agent.retries", "3", "How often a failed model call is retried."),
    setting_value(
        "agent.retry_after_ms",
        "1000",
        "Delay before the first retry, in milliseconds; it doubles with each retry.",
    ),
    setting_value(
        "agent.longest_wait_seconds",
        "120",
        "If a provider asks for a longer delay than this, the run fails instead.",
    ),
    setting_value(
        "agent.max_bad_calls",
        "5",
        "Consecutive calls of unknown tools, or with invalid arguments, that end a run.",
    ),
    setting_value(
        "agent.parallel_tool_calls",
        "8",
        "Tool calls of one run that execute in parallel; further ones wait in order.",
    ),
    setting_value(
        "agent.compact_at",
        "0.8",
        "The share of the model's context window that may fill before older messages are summarised.",
    ),
    setting_value("agent.window", "128000", "Context window, in tokens, assumed for models that do not report one."),
    unset_setting("agent.max_output", "8192", "Maximum output tokens per model call. Not set: the model's own limit."),
    setting_value(
        "agent.max_result_chars",
        "60000",
        "Characters of one tool result sent to the model; clients see all of it.",
    ),
    setting_value(
        "agent.context_files",
        r#"["AGENTS.md", ".goosehints"]"#,
        "Names of context files added to the system prompt: from the settings folder, the repository's folders above the workspace, and the workspace.",
    ),
    setting_value(
        "agent.split",
        "true",
        "Split multi-part requests among sub-agents, in sessions with routing on (the agent auto).",
    ),
    setting_value("tools.command_time", r#""2m""#, "Default time limit of a shell command."),
    setting_value(
        "tools.longest_command_time",
        r#""10m""#,
        "Longest time limit that the model may request for a shell command.",
    ),
    setting_value(
        "tools.command_output",
        r#""64 KiB""#,
        "How much of a command's output is kept: half from the start, half from the end.",
    ),
    setting_value("tools.result", r#""256 KiB""#, "Maximum size of a tool's text result."),
    setting_value("tools.fetch_time", r#""10s""#, "Time limit for fetching a page, including redirects."),
    setting_value("tools.fetch_size", r#""2 MiB""#, "Maximum size read from a page."),
    setting_value(
        "sandbox.enabled",
        "true",
        "Run shell commands and MCP programs in a sandbox where the system supports it (see docs/sandbox.md). Without a sandbox every command prompts.",
    ),
    setting_value("sandbox.bubblewrap", "true", "Use bubblewrap where it is installed and works."),
    setting_value(
        "sandbox.network",
        "false",
        "Give commands in the sandbox network access. Otherwise a command that needs the network prompts you.",
    ),
    setting_value(
        "sandbox.server_network",
        "false",
        "Give MCP programs network access; a single `[extensions]` entry can ask for it with network = true.",
    ),
    setting_value(
        "sandbox.readable",
        "[]",
        "Folders in your home directory that commands in the sandbox may read, in addition to toolchains.",
    ),
    setting_value(
        "sandbox.writable",
        "[]",
        "Folders that commands in the sandbox may write to, in addition to the workspace.",
    ),
    setting_value("sandbox.memory", r#""8 GiB""#, "Memory limit per process in the sandbox. 0 B: no limit."),
    setting_value(
        "sandbox.processes",
        "1024",
        "Maximum processes and threads per command in the sandbox. 0: no limit.",
    ),
    setting_value(
        "recovery.on_restart",
        r#""resume""#,
        "What happens to a run that was active when the server died: resume or fail.",
    ),
    setting_value(
        "recovery.max_age",
        r#""15m""#,
        "A run whose last activity is older than this fails instead of resuming.",
    ),
    setting_value("recovery.max_times", "3", "How often one run is resumed before it fails."),
    unset_setting(
        "schedules.zone",
        r#""Europe/Berlin""#,
        "Default time zone of new schedules. Not set: the machine's.",
    ),
    setting_value(
        "schedules.missed",
        r#""run""#,
        "What happens to runs missed while no server was running: run (once for all of them, at the next start) or skip.",
    ),
    setting_value(
        "daemon.idle",
        r#""10m""#,
        "How long the background server stays up when no client is attached and nothing runs.",
    ),
    unset_setting(
        "acp.dialect",
        r#""standard""#,
        "Force one dialect for every ACP client: standard, goosed, aptove or agentkit (see docs/dialects.md). Not set: detected per client.",
    ),
    setting_value("acp.v2", "false", "Offer the draft version 2 of ACP to clients that request it."),
    unset_setting(
        "acp.if_busy",
        r#""queue""#,
        "What a second prompt over ACP does while a turn runs: refuse, queue (it runs afterwards) or steer (it is handed to the running turn). A prompt's `_meta.ifBusy` takes precedence. Not set: refuse.",
    ),
    setting_value("server.listen", r#""127.0.0.1:4747""#, "Listen address of `gander serve`."),
    setting_value(
        "server.allowed_hosts",
        "[]",
        "Additional host names that requests may use (checked against the Host header). localhost and the listen address always work.",
    ),
    setting_value(
        "server.allowed_origins",
        "[]",
        "Additional web origins that may call the server, such as \"https://app.example\".",
    ),
    setting_value(
        "server.roots",
        "[]",
        "Folders (absolute paths) that principals other than the owner, and the owner from another machine, may use as workspaces. Empty: such sessions get a private folder each. The owner on this machine may choose any folder except the data directory.",
    ),
    setting_value(
        "server.workspaces",
        "{}",
        "The folder of new sessions per agent, such as { gander = \"/home/ann/notes\" }, for ACP-REST, A2A and ADK clients that name none. A caller who may not use the folder (see `roots`) gets a private one.",
    ),
    setting_value(
        "server.reply_grace",
        r#""10s""#,
        "How long a turn started by goose's `/reply` continues after its client disconnects. Disconnecting is how these clients stop a turn.",
    ),
    setting_value(
        "server.allow_remote_commands",
        "false",
        "Allow network clients to name programs to start. Clients on the local socket always may.",
    ),
    setting_value(
        "server.open",
        "[]",
        "Protocols that need no token, for clients that cannot send one: \"acp-rest\", \"a2a\", \"adk\". Only for callers on this machine, and only while the server listens on loopback addresses.",
    ),
    setting_value(
        "server.open_approve",
        "false",
        "Let callers without a token (`server.open`) also answer permission requests. Without it they can read and prompt.",
    ),
    setting_value(
        "server.forward_resources",
        "false",
        "Let ACP-REST sessions list URLs of their messages, so that another server can continue them. Anyone who knows such a URL can read that message for a day.",
    ),
    setting_value(
        "server.resource_peers",
        "[]",
        "Servers on this machine or a private network (host or host:port) from which a session's history may be fetched. Public servers are always allowed.",
    ),
    unset_setting(
        "a2a.agent",
        r#""gander""#,
        "The agent served at /a2a and by the card at the root. Not set: the first agent.",
    ),
    unset_setting(
        "a2a.public_url",
        r#""https://agents.example""#,
        "The base URL in agent cards. Not set: the URL of the request.",
    ),
    setting_value(
        "a2a.v03",
        "true",
        "Include the fields of A2A 0.3 in agent cards. Requests of version 0.3 are always answered.",
    ),
    setting_value("a2a.grpc", "false", "Serve A2A over gRPC too, on the same port, and list it in agent cards."),
    setting_value(
        "a2a.push_allow",
        "[]",
        "Push notification receivers on private networks or this machine that are allowed, as \"host\" or \"host:port\". All others must have a public address.",
    ),
    setting_value(
        "a2a.sign",
        "false",
        "Sign agent cards (JWS, ES256). The key is created at first use; /.well-known/jwks.json has its public half.",
    ),
    unset_setting(
        "a2a.signing_key",
        r#""/etc/gander/a2a-key.pem""#,
        "File with the P-256 private key (PKCS #8, PEM) that signs agent cards. Not set: a key in the data directory.",
    ),
    setting_value("adk.user", r#""user""#, "The user id under which ADK clients see sessions from other protocols."),
    setting_value(
        "adk.on_leave",
        r#""continue""#,
        "What happens to a run whose ADK client disconnects: continue or cancel.",
    ),
    setting_value(
        "adk.join",
        r#""30ms""#,
        "Chunks that arrive within this time are sent to ADK clients as one, because their page is slow with many. \"0s\" sends each one.",
    ),
    unset_setting(
        "adk.ui",
        r#""/opt/adk/browser""#,
        "Folder of an installed adk web page (`browser` of google-adk or @google/adk-devtools), served under /dev-ui/.",
    ),
    setting_value("limits.body", r#""4 MiB""#, "Maximum body size of a request."),
    setting_value("limits.prompt_body", r#""32 MiB""#, "Maximum body size of requests that carry a prompt."),
    setting_value("limits.header_size", r#""32 KiB""#, "Maximum total size of a request's headers."),
    setting_value("limits.header_lines", "100", "Maximum number of header lines."),
    setting_value("limits.uri", r#""8 KiB""#, "Maximum length of a request's URI."),
    setting_value("limits.line", r#""16 MiB""#, "Maximum line length of line-delimited protocols."),
    setting_value("limits.header_time", r#""10s""#, "Timeout for receiving the headers."),
    setting_value("limits.body_time", r#""1m""#, "Timeout for receiving the body."),
    setting_value(
        "limits.stalled_reader",
        r#""30s""#,
        "How long a response or stream waits for a client that reads nothing before its connection is closed.",
    ),
    setting_value("limits.requests_per_second", "100", "Sustained requests per second per token from other machines."),
    setting_value("limits.request_burst", "200", "Burst of requests per token from other machines."),
    setting_value(
        "limits.local_requests_per_second",
        "20000",
        "Sustained requests per second per token from this machine. This only stops runaway loops.",
    ),
    setting_value("limits.local_request_burst", "40000", "Burst of requests per token from this machine."),
    setting_value(
        "limits.bad_tokens_per_minute",
        "20",
        "Invalid tokens per minute and address before the response is 429.",
    ),
    setting_value("limits.connections", "20000", "Maximum concurrent connections; further ones wait."),
    setting_value(
        "limits.streams",
        "100",
        "Maximum open streams and WebSockets per token from other machines; further ones get 429.",
    ),
    setting_value(
        "limits.local_streams",
        "2000",
        "Maximum open streams and WebSockets per token from this machine; further ones get 429.",
    ),
    setting_value(
        "limits.idle_sessions",
        r#""64 MiB""#,
        "Memory for cached conversations of idle sessions. The least recently used are dropped first and re-read from the log when needed.",
    ),
    unset_setting(
        "store.url",
        r#""postgres://gander@db.example/gander""#,
        "A PostgreSQL database (15 or later) for sessions, instead of one file in the data directory. The password comes from here, from PGPASSWORD or from ~/.pgpass, and is shown nowhere. See scale.md.",
    ),
    setting_value(
        "cluster.role",
        r#""all""#,
        "What this server does among others on one PostgreSQL database: all, gateway (serves clients, runs no turns) or worker (runs turns, serves nothing but health checks over HTTP). See scale.md.",
    ),
    unset_setting(
        "cluster.label",
        r#""rack-1""#,
        "Names the local disks of this server. A session whose workspace is on a local disk is run only by servers with the same label. Not set: the machine's name.",
    ),
    setting_value(
        "cluster.shared",
        "[]",
        "Folders that every server sees under the same path, such as a network disk. Sessions that work below them are run by any server.",
    ),
    setting_value(
        "cluster.lease",
        r#""17s""#,
        "How long after the last sign of life of a server others take its sessions over. It stops its turns by itself after ten seventeenths of that.",
    ),
    setting_value(
        "cluster.hints",
        "true",
        "Whether servers tell each other what is new (NOTIFY). Without it each looks every second or two: nothing is lost, everything takes longer.",
    ),
    unset_setting(
        "cluster.address",
        r#""http://10.0.0.5:4747""#,
        "Where other servers on the database reach this one. They pass on requests of ACP over plain HTTP whose connection is here. Not set: the address it listens on, if that is one address without TLS.",
    ),
    unset_setting(
        "cluster.key_file",
        r#""/etc/gander/cluster.key""#,
        "A file with mode 600 and the same content on every server: at least 32 characters, as `openssl rand -hex 32` makes them. Secrets of MCP servers, MCP logins and credentials of push notifications are then in the database, encrypted with it, and count at every server. Not set: they stay with each server. Further lines are older keys, which still decrypt.",
    ),
    setting_value(
        "log.filter",
        r#""info""#,
        "Log level: error, warn, info, debug or trace, optionally per module (`info,gander_gateway=debug`).",
    ),
    unset_setting(
        "otel.endpoint",
        r#""http://127.0.0.1:4318""#,
        "The collector for OpenTelemetry that traces of requests, runs, model calls and tool calls are sent to (OTLP over HTTP, JSON). Not set: nothing is sent, whatever OTEL_EXPORTER_OTLP_ENDPOINT says. See observability.md.",
    ),
    setting_value("otel.service", r#""gander""#, "What this server is called there (`service.name`)."),
];

/// The setting with this key.
pub(super) fn find_setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The known word that is most like this one, if any is like it at all.
pub(super) fn nearest_setting_name<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (setting_name_distance(word, candidate), candidate));
    scored.filter(|(distance, _)| *distance <= 2.max(word.len() / 3)).min().map(|(_, candidate)| candidate)
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
    use crate::config::setting::{Preset, parse_setting_literal};

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
        assert_eq!(nearest_setting_name("server.lisen", keys()), Some("server.listen"));
        assert_eq!(nearest_setting_name("permission.policy", keys()), Some("permissions.policy"));
        assert_eq!(nearest_setting_name("zzzz", keys()), None);
    }
}
