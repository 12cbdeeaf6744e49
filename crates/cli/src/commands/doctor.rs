//! `gander doctor`: active settings and their sources, and what does not work.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::ensure;
use gander::app::open_store;
use gander::config::{Origin, SETTINGS, TakesEffect};
use gander::daemon::{Attached, Hello, ServerError, Want, connect_to_attach};
use gander_client::Link;
use gander_services::models::{ModelPreferences, Models};
use gander_services::oidc::{IssuerStatus, OidcSettings, probe_oidc_issuer};
use gander_services::paths::{DirectoryLock, disk_use_of_path};
use gander_services::units::ByteSize;
use gander_store::PostgresStore;
use gander_store::postgres::DatabaseInfo;
use gander_tools::sandbox::{Layers, SandboxLimits};
use serde_json::{Value, json};

use super::client;
use super::cluster::SECRETS_STAY;
use crate::commands::{Context, Exit};
use crate::output::{Tone, clean_output_text};
use crate::terminal::list_table::table_size_text;

pub(super) async fn run(context: Context, rebuild: bool) -> anyhow::Result<Exit> {
    if rebuild {
        return rebuild_log_for_doctor(&context).await;
    }
    let doctor = Doctor { context };
    doctor.head("gander")?;
    doctor.row("version", gander::VERSION, "")?;
    doctor.row("SQLite", gander_store::sqlite::library_version(), "built in")?;
    doctor.paths()?;
    doctor.store().await?;
    doctor.server().await?;
    doctor.model().await?;
    doctor.extensions()?;
    doctor.safety()?;
    doctor.identity_provider().await?;
    doctor.settings()?;
    Ok(Exit::Done)
}

/// Makes what can be made from the log again. Nobody else may use it meanwhile.
async fn rebuild_log_for_doctor(context: &Context) -> anyhow::Result<Exit> {
    let paths = &context.config.paths;
    paths.create_folders()?;
    let lock = DirectoryLock::try_take(&paths.server_lock())?;
    ensure!(lock.is_some(), "{}", ServerError::Taken(paths.data_directory().to_owned()));
    let store = open_store(&context.config).await?;
    let sessions = store.rebuild_folds().await?;
    store.close().await?;
    if context.config.sections.store.url.is_none() {
        gander_store::sqlite::reclaim_whole_file(paths.data_directory())?;
    }
    let plural = if sessions == 1 { "" } else { "s" };
    context.output.line(&format!("Rebuilt the indexes of {sessions} session{plural}."))?;
    Ok(Exit::Done)
}

struct Doctor {
    context: Context,
}

impl Doctor {
    fn head(&self, text: &str) -> io::Result<()> {
        let output = self.context.output;
        output.line(&output.style().paint(Tone::Bold, text))
    }

    fn row(&self, name: &str, value: &str, origin: &str) -> io::Result<()> {
        let output = self.context.output;
        let origin = if origin.is_empty() { String::new() } else { format!("  ({origin})") };
        output.line(&format!("  {name:<28} {value}{}", output.style().paint(Tone::Dim, &origin)))
    }

    fn paths(&self) -> io::Result<()> {
        let config = &self.context.config;
        let data = config.paths.data_directory();
        self.head("\npaths")?;
        self.row("data", &data.display().to_string(), &config.origin("data").to_string())?;
        self.disk_use()?;
        let file = if config.file.exists() { "in use" } else { "does not exist; create it with: gander config init" };
        self.row("settings file", &config.file.display().to_string(), file)?;
        self.row("socket", &config.paths.socket_file().display().to_string(), "")?;
        let token = config.paths.token_file();
        let state = match std::fs::metadata(&token) {
            Ok(file) if file.mode() & 0o077 == 0 => "mode 600",
            Ok(_) => "WARNING: other users can read it; fix it with chmod 600",
            Err(_) => "created at the first start",
        };
        self.row("token", &token.display().to_string(), state)?;
        for warning in &config.warnings {
            self.row("warning", warning, "")?;
        }
        Ok(())
    }

    /// Where sessions are, and whether that can be reached. A server that runs is asked for its health itself.
    async fn store(&self) -> io::Result<()> {
        let config = &self.context.config;
        self.head("\nstore")?;
        let origin = config.origin("store.url").to_string();
        let Some(url) = &config.sections.store.url else {
            return self.row("sessions", "SQLite", "log.db in the data directory");
        };
        self.row("sessions", &url.to_string(), &origin)?;
        let probed = match url.parse() {
            Ok(url) => PostgresStore::probe_database(&url).await,
            Err(error) => Err(error),
        };
        match probed {
            Ok(found) => {
                let DatabaseInfo { server_version, schema, incarnation, sessions, bytes } = found;
                self.row("PostgreSQL", &server_version, "")?;
                match schema {
                    0 => self.row("tables", "none yet", "made when a server starts"),
                    _ => {
                        self.row("tables", &format!("version {schema}, incarnation {incarnation}"), "")?;
                        self.row("size", &table_size_text(bytes), &format!("about {sessions} sessions"))
                    }
                }
            }
            Err(error) => {
                self.row("WARNING", &clean_output_text(&error.to_string()), "no session can be read or written")
            }
        }?;
        match config.sections.cluster.read_keys() {
            Ok(Some(_)) => self.row("secrets", "in the database", "encrypted with cluster.key_file"),
            Ok(None) => self.row("secrets", "in the data directory", SECRETS_STAY),
            Err(error) => self.row("WARNING", &clean_output_text(&error.to_string()), "the server does not start"),
        }
    }

    /// How big the data directory is, and each part of it.
    fn disk_use(&self) -> io::Result<()> {
        let paths = &self.context.config.paths;
        let total = disk_use_of_path(paths.data_directory());
        self.row("disk use", &table_size_text(total), "")?;
        let log =
            ["log.db", "log.db-wal", "log.db-shm"].map(|name| disk_use_of_path(&paths.data_directory().join(name)));
        let parts = [
            ("sessions", log.iter().sum(), "log.db; delete old ones with: gander sessions prune"),
            ("private folders", disk_use_of_path(&paths.scratch_folder()), "workspaces of sessions without a folder"),
            ("extensions", disk_use_of_path(&paths.extensions_folder()), "files of MCP servers"),
            ("temporary files", disk_use_of_path(&paths.temporary_folder()), "removed when the server starts"),
            ("server log", disk_use_of_path(&paths.server_log()), "server.log"),
        ];
        let others = total.saturating_sub(parts.iter().map(|(_, bytes, _)| bytes).sum());
        for (name, bytes, what) in parts.into_iter().chain([("other", others, "")]) {
            self.row(&format!("  {name}"), &table_size_text(bytes), what)?;
        }
        Ok(())
    }

    async fn server(&self) -> anyhow::Result<()> {
        self.head("\nserver")?;
        match connect_to_attach(&self.context.config.paths, &Hello::new(Want::Acp)).await {
            Ok(None) => self.row("running", "no", "commands that need it start it in the background")?,
            Err(error) => self.row("running", "yes, but it does not answer properly", &error.to_string())?,
            Ok(Some(Attached { reader, writer, welcome })) => {
                let kind = if welcome.background { "background" } else { "foreground" };
                self.row("running", &format!("yes, process {}, version {}", welcome.pid, welcome.version), kind)?;
                let listens: Vec<String> = welcome.listens.iter().map(|address| format!("http://{address}")).collect();
                let listens = if listens.is_empty() { "the Unix socket only".to_owned() } else { listens.join(", ") };
                self.row("listens on", &listens, "")?;
                let mut connection = client::introduce_client(Link::from_line_streams(reader, writer)).await?;
                // A server of another build may not know the question.
                let status = connection.call_method("_gander/status", &json!({})).await.unwrap_or_default();
                for (name, value) in status.as_object().into_iter().flatten() {
                    match name.as_str() {
                        "version" | "pid" => {}
                        "idle_sessions" => {
                            self.row("idle sessions in memory", &cache_check_text(value), "limits.idle_sessions")?
                        }
                        "sessions" => self.row("sessions", &sessions_check_text(value), "")?,
                        // What only says how busy the disk was is for `gander server status --json` and metrics.
                        "store" => {}
                        name => self.row(name, value.as_str().unwrap_or(&value.to_string()), "")?,
                    }
                }
                if let Ok(settings) = connection.call_method("_gander/settings", &json!({})).await {
                    self.running_settings(&settings)?;
                }
            }
        }
        Ok(())
    }

    /// Where the running server differs from what this command finds in the file, the environment and the flags.
    fn running_settings(&self, settings: &Value) -> io::Result<()> {
        let config = &self.context.config;
        if settings["file"].as_str().is_some_and(|file| Path::new(file) != config.file) {
            self.row(
                "its settings file",
                &clean_output_text(settings["file"].as_str().unwrap_or_default()),
                "not the one that this command reads",
            )?;
        }
        if let Some(fault) = settings["fault"].as_str() {
            self.row(
                "WARNING",
                &format!("the settings file is not applied: {}", clean_output_text(fault)),
                "the previous settings stay active",
            )?;
        }
        let here = serde_json::to_value(&config.sections).unwrap_or_default();
        for setting in SETTINGS {
            let (active, here) = (setting.value_in(&settings["active"]), setting.value_in(&here));
            if active == here {
                continue;
            }
            let why = match (setting.takes_effect(), config.origin(setting.key)) {
                (_, Origin::Variable(name)) => format!("{name} is set in this shell only"),
                (TakesEffect::Restart, _) => "apply it with: gander server restart".to_owned(),
                (TakesEffect::NextDecision | TakesEffect::NextRun, _) => "not applied".to_owned(),
            };
            self.row(setting.key, &format!("the server uses {active}, this command finds {here}"), &why)?;
        }
        Ok(())
    }

    /// Which model a session started from here would get, and why.
    async fn model(&self) -> anyhow::Result<()> {
        let config = &self.context.config;
        self.head("\nmodel")?;
        let models = Models::new(config.catalogue()?, config.keys.clone(), ModelPreferences::default());
        match &config.sections.model.default {
            Some(model) => self.row("active", model, &config.origin("model.default").to_string())?,
            None => {
                let choice = models.default_model().await;
                self.row("active", &choice.model, &choice.reason)?;
                if !choice.alternatives.is_empty() {
                    self.row("also available", &choice.alternatives.join(", "), "")?;
                }
            }
        }
        let names: Vec<&str> = config.keys.key_names().collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        self.row("keys and addresses found", &names, "")?;
        Ok(())
    }

    fn extensions(&self) -> io::Result<()> {
        let extensions = &self.context.config.extensions;
        if !extensions.is_empty() {
            self.head("\nMCP servers in every session")?;
        }
        extensions.iter().try_for_each(|spec| self.row(&spec.name, &spec.command_or_url(), ""))
    }

    fn safety(&self) -> io::Result<()> {
        self.head("\nsafety")?;
        let config = &self.context.config;
        let policy = json!(config.sections.permissions.policy);
        let rules = config.sections.permissions.rules.len();
        self.row("policy", policy.as_str().unwrap_or("?"), &config.origin("permissions.policy").to_string())?;
        self.row("rules", &rules.to_string(), "")?;
        let sandbox = gander::sandbox::configured_sandbox(config).available_layers();
        let reason = match &sandbox {
            Layers::None(reason) => format!("{reason}: every command prompts, and then runs with your rights"),
            Layers::Some(_) => "for shell commands and MCP servers".to_owned(),
        };
        self.row("sandbox", &sandbox.to_string(), &reason)?;
        if let Layers::Some(_) = &sandbox {
            self.row(
                "limits per command",
                &limits_check_text(gander::sandbox::sandbox_limits(&config.sections.sandbox)),
                "",
            )?;
        }
        for shortfall in sandbox.missing_layers() {
            self.row("", shortfall, "")?;
        }
        let style = self.context.output.style();
        self.row("terminal", if style.is_terminal() { "yes" } else { "no: nobody can be asked here" }, "")
    }

    /// Whose tokens count besides local ones, and whether the keys that check them can be had.
    async fn identity_provider(&self) -> io::Result<()> {
        let config = &self.context.config;
        let Ok(Some(oidc)) = OidcSettings::from_section(&config.sections.auth.oidc) else { return Ok(()) };
        self.head("\nidentity provider")?;
        self.row("issuer", &clean_output_text(&oidc.issuer), &config.origin("auth.oidc.issuer").to_string())?;
        self.row("audience", &clean_output_text(&oidc.audience), &config.origin("auth.oidc.audience").to_string())?;
        let login = oidc.client_id.as_deref().map_or("off: auth.oidc.client_id is not set", |_| "on");
        self.row("gander login", login, "")?;
        match probe_oidc_issuer(&oidc.issuer).await {
            Ok(IssuerStatus { keys, device_login }) => {
                self.row("signing keys", &keys.to_string(), "fetched just now")?;
                match (oidc.client_id.is_some(), device_login) {
                    (true, false) => {
                        self.row("WARNING", "the issuer offers no device login", "gander login cannot work")
                    }
                    (true, true) | (false, _) => Ok(()),
                }
            }
            Err(error) => {
                let reason = format!("the issuer {}", clean_output_text(&error.to_string()));
                self.row("WARNING", &reason, "its tokens are refused once the keys are a day old")
            }
        }
    }

    fn settings(&self) -> io::Result<()> {
        self.head("\nsettings that differ from their defaults")?;
        let config = &self.context.config;
        let values = serde_json::to_value(&config.sections).unwrap_or_default();
        let changed = SETTINGS.iter().filter(|setting| config.origin(setting.key) != Origin::Default);
        let mut none = true;
        for setting in changed {
            none = false;
            let value = setting.value_in(&values);
            self.row(setting.key, &value.to_string(), &config.origin(setting.key).to_string())?;
        }
        if none { self.row("none", "", "") } else { Ok(()) }
    }
}

/// How many sessions do something, in words.
fn sessions_check_text(stats: &Value) -> String {
    let number = |name: &str| stats[name].as_u64().unwrap_or_default();
    format!("{} active, {} clients attached", number("active"), number("attached"))
}

/// How full the cache of idle sessions is, in words.
fn cache_check_text(stats: &Value) -> String {
    let number = |name: &str| stats[name].as_u64().unwrap_or_default();
    format!("{}, {} of {}", number("sessions"), table_size_text(number("bytes")), ByteSize(number("limit")))
}

/// What a command may have, in words.
fn limits_check_text(caps: SandboxLimits) -> String {
    let memory =
        caps.memory.map_or("unlimited memory".to_owned(), |memory| format!("{} per process", ByteSize(memory)));
    let processes = caps.processes.map_or("unlimited processes".to_owned(), |most| format!("{most} processes"));
    format!("{memory}, {processes}")
}
