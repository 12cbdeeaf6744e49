//! A data directory that an earlier commit wrote opens and works: its question is answered, its grant counts, its schedule
//! runs, its vault is read.
//!
//! `fixtures/data-of-8c4ab07` was written by the binary of that commit with default settings and the demo model: one
//! finished session, one with an open question, one that was granted an edit "always", a schedule, and an extension whose
//! environment lies in the vault. Its sessions work in [`WORKSPACE`].

use std::path::Path;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Launch, PATIENCE, binary, eventually};

/// Stands in the fixture where the path of its sessions' folder was, and is as long as the path that takes its place:
/// rows of the database keep their lengths.
const WORKSPACE: &str = "/gander-upgrade-test-workspace";

const FINISHED: &str = "01a1e935-a7d4-740d-942b-758d4242114a";
const WITH_OPEN_QUESTION: &str = "01a1e935-a8bc-752d-8ca2-2509d8702391";

const RECIPE: &str = "version: \"1.0.0\"\ntitle: Daily\ndescription: Says something\nprompt: text\n";

#[tokio::test]
async fn a_data_directory_of_an_earlier_commit_opens_and_works() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let data = root.path().join("data");
    let workspace = workspace_of_the_same_length()?;
    let work = workspace.path();
    copy_fixture(&data, work)?;
    std::fs::write(work.join("daily.yaml"), RECIPE)?;

    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), &data);
    let server = launch.serve().await?;
    let mut client = server.client().await?;

    ensure!(!launch.export(FINISHED).await?.is_empty(), "a finished session has lost its log");

    client.load(WITH_OPEN_QUESTION, work).await?;
    let question = tokio::time::timeout(PATIENCE, client.asked("session/request_permission")).await??;
    client.choose(&question, "allow_once").await?;
    eventually("the answered tool call has run", || async {
        let shown = launch.stdout(&["sessions", "show", WITH_OPEN_QUESTION]).await;
        shown.is_ok_and(|text| text.contains("`write` is completed"))
    })
    .await?;

    // The demo model writes the file that was granted: nobody is asked, or this would never end.
    let session = client.new_session(work).await?;
    let reason = tokio::time::timeout(PATIENCE, client.turn(&session, "edit")).await.context("the grant is lost")??;
    ensure!(reason == "end_turn", "the turn ended with {reason}");

    let kept = std::fs::read_to_string(work.join("keeper.txt")).context("the extension was not started")?;
    ensure!(kept == "kept-in-the-vault", "the extension got another secret: {kept}");

    ensure!(!launch.stdout(&["schedule", "run", "daily"]).await?.trim().is_empty(), "the schedule made no session");
    server.stop().await?;
    Ok(())
}

fn workspace_of_the_same_length() -> anyhow::Result<tempfile::TempDir> {
    let parent = Path::new("/tmp");
    let random = WORKSPACE.len().checked_sub(parent.as_os_str().len() + 1).context("the parent is too long")?;
    Ok(tempfile::Builder::new().prefix("").rand_bytes(random).tempdir_in(parent)?)
}

fn copy_fixture(data: &Path, work: &Path) -> anyhow::Result<()> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/fixtures/data-of-8c4ab07");
    std::fs::create_dir(data)?;
    std::fs::copy(fixture.join("secrets.json"), data.join("secrets.json"))?;
    let (log, work) = (std::fs::read(fixture.join("log.db"))?, work.to_str().context("a path is text")?);
    ensure!(work.len() == WORKSPACE.len(), "rows would get another length: {work}");
    std::fs::write(data.join("log.db"), replace_bytes(log, WORKSPACE.as_bytes(), work.as_bytes()))?;
    Ok(())
}

fn replace_bytes(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}
