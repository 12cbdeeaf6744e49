//! What a release left in its data directory, kept as files: with default settings and the demo model, one finished session, one
//! with an open question, one that was granted an edit "always", a schedule, and an extension whose environment lies in the vault.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Client, Launch, PATIENCE, binary};
use serde_json::{Value, json};

/// Stands in a fixture where the path of its sessions' folder was, and is as long as the path that takes its place: rows of the
/// database keep their lengths.
const WORKSPACE: &str = "/gander-upgrade-test-workspace";
/// What the extension finds in its environment.
pub(super) const SECRET: &str = "kept-in-the-vault";
const RECIPE: &str = "version: \"1.0.0\"\ntitle: Daily\ndescription: Says something\nprompt: text\n";

/// The data directory of one release.
pub(super) struct Fixture {
    folder: PathBuf,
    sessions: KnownSessions,
}

/// Sessions that are looked at by name.
pub(super) struct KnownSessions {
    pub(super) finished: String,
    pub(super) with_open_question: String,
}

impl Fixture {
    /// Of every release.
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        let entries = std::fs::read_dir(fixtures_folder())?.map(|entry| Ok(entry?.path()));
        let folders: Vec<PathBuf> = entries.collect::<anyhow::Result<_>>()?;
        ensure!(!folders.is_empty(), "there is no fixture");
        folders.into_iter().map(Self::open).collect()
    }

    pub(super) fn of(version: &str) -> anyhow::Result<Self> {
        Self::open(fixture_folder(version))
    }

    fn open(folder: PathBuf) -> anyhow::Result<Self> {
        let path = folder.join("sessions.json");
        let text = std::fs::read_to_string(&path).with_context(|| format!("there is no {}", path.display()))?;
        let named: Value = serde_json::from_str(&text)?;
        let session = |name: &str| named[name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
        let sessions =
            KnownSessions { finished: session("finished")?, with_open_question: session("with_open_question")? };
        Ok(Self { folder, sessions })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn sessions(&self) -> &KnownSessions {
        &self.sessions
    }

    /// As if its sessions had worked in this folder.
    pub(super) fn copy_to(&self, data: &Path, work: &Path) -> anyhow::Result<()> {
        std::fs::create_dir(data)?;
        std::fs::copy(self.folder.join("secrets.json"), data.join("secrets.json"))?;
        let log = replace_path(&std::fs::read(self.folder.join("log.db"))?, Path::new(WORKSPACE), work)?;
        std::fs::write(data.join("log.db"), log)?;
        Ok(std::fs::write(work.join("daily.yaml"), RECIPE)?)
    }
}

fn fixtures_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/fixtures")
}

fn fixture_folder(version: &str) -> PathBuf {
    fixtures_folder().join(format!("data-of-{version}"))
}

pub(super) fn workspace_of_the_same_length() -> anyhow::Result<tempfile::TempDir> {
    let parent = Path::new("/tmp");
    let random = WORKSPACE.len().checked_sub(parent.as_os_str().len() + 1).context("the parent is too long")?;
    Ok(tempfile::Builder::new().prefix("").rand_bytes(random).tempdir_in(parent)?)
}

fn replace_path(bytes: &[u8], from: &Path, to: &Path) -> anyhow::Result<Vec<u8>> {
    let (from, to) = (from.as_os_str().as_encoded_bytes(), to.as_os_str().as_encoded_bytes());
    ensure!(from.len() == to.len(), "rows would get another length");
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    Ok(bytes)
}

/// Does with this build what a fixture holds, and keeps the files.
pub(super) async fn write_fixture(version: &str) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let data = root.path().join("data");
    std::fs::create_dir(&data)?;
    let workspace = workspace_of_the_same_length()?;
    let work = workspace.path();
    std::fs::write(work.join("daily.yaml"), RECIPE)?;
    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), &data);
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    add_extension_and_schedule(&launch, work).await?;
    let sessions = make_sessions(&mut client, work).await?;
    drop(client);
    ensure!(server.stop().await?.success(), "the server did not end in good order");

    let folder = fixture_folder(version);
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(data.join("secrets.json"), folder.join("secrets.json"))?;
    let log = replace_path(&std::fs::read(data.join("log.db"))?, work, Path::new(WORKSPACE))?;
    std::fs::write(folder.join("log.db"), log)?;
    let KnownSessions { finished, with_open_question } = sessions;
    let named = json!({ "finished": finished, "with_open_question": with_open_question });
    Ok(std::fs::write(folder.join("sessions.json"), format!("{named:#}\n"))?)
}

async fn add_extension_and_schedule(launch: &Launch, work: &Path) -> anyhow::Result<()> {
    let data = launch.data.to_str().context("a path is text")?;
    // The program's own words come last; its secret is taken from the environment, as the command demands.
    let mut keeper = tokio::process::Command::new(&launch.binary);
    keeper.args([
        "extensions",
        "add",
        "keeper",
        "--data",
        data,
        "--no-start",
        "--no-sandbox",
        "--env",
        "KEEPER_TOKEN",
        "--",
    ]);
    keeper.args(["/bin/sh", "-c", "printf %s $KEEPER_TOKEN > keeper.txt"]).env("KEEPER_TOKEN", SECRET);
    let added = keeper.output().await?;
    ensure!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let (folder, recipe) = (work.to_str().context("a path is text")?, work.join("daily.yaml"));
    let recipe = recipe.to_str().context("a path is text")?;
    let schedule =
        ["schedule", "add", "daily", "--cron", "0 7 * * *", "--zone", "UTC", "--recipe", recipe, "--cwd", folder];
    launch.stdout(&schedule).await.map(drop)
}

async fn make_sessions(client: &mut Client, work: &Path) -> anyhow::Result<KnownSessions> {
    let finished = client.new_session(work).await?;
    client.turn(&finished, "text").await?;

    // Before anything is granted.
    let with_open_question = client.new_session(work).await?;
    client.prompt(&with_open_question, "edit").await?;
    tokio::time::timeout(PATIENCE, client.asked("session/request_permission")).await??;

    let granted = client.new_session(work).await?;
    let turn = client.prompt(&granted, "edit").await?;
    grant_everything_until(client, turn).await?;
    Ok(KnownSessions { finished, with_open_question })
}

/// Answers each question with "always" until this prompt is answered.
async fn grant_everything_until(client: &mut Client, prompt: u64) -> anyhow::Result<()> {
    loop {
        let asks = |message: &Value| message["method"] == "session/request_permission";
        let message = client.until(|message| message["id"] == prompt || asks(message)).await?;
        if !asks(&message) {
            return Ok(());
        }
        client.choose(&message, "allow_always").await?;
    }
}
