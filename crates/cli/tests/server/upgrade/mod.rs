//! Data directories that earlier releases wrote open and work: their question is answered, their grant counts, their schedule
//! runs, their vault is read. Each release has its own folder in `fixtures`. What a later release wrote is refused and not touched.

mod fixture;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Launch, PATIENCE, binary, eventually};

use self::fixture::Fixture;
use crate::binary::TestDirectory;

#[tokio::test]
async fn data_directories_of_earlier_releases_open_and_work() -> anyhow::Result<()> {
    for fixture in Fixture::all()? {
        opens_and_works(&fixture).await.with_context(|| format!("{}", fixture.folder().display()))?;
    }
    Ok(())
}

async fn opens_and_works(fixture: &Fixture) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let data = root.path().join("data");
    let workspace = fixture::workspace_of_the_same_length()?;
    let work = workspace.path();
    fixture.copy_to(&data, work)?;

    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), &data);
    let server = launch.serve().await?;
    let mut client = server.client().await?;

    ensure!(!launch.export(&fixture.sessions().finished).await?.is_empty(), "a finished session has lost its log");

    let asked = &fixture.sessions().with_open_question;
    client.load(asked, work).await?;
    let question = tokio::time::timeout(PATIENCE, client.asked("session/request_permission")).await??;
    client.choose(&question, "allow_once").await?;
    eventually("the answered tool call has run", || async {
        let shown = launch.stdout(&["sessions", "show", asked]).await;
        shown.is_ok_and(|text| text.contains("`write` is completed"))
    })
    .await?;

    // The demo model writes the file that was granted: nobody is asked, or this would never end.
    let session = client.new_session(work).await?;
    let reason = tokio::time::timeout(PATIENCE, client.turn(&session, "edit")).await.context("the grant is lost")??;
    ensure!(reason == "end_turn", "the turn ended with {reason}");

    let kept = std::fs::read_to_string(work.join("keeper.txt")).context("the extension was not started")?;
    ensure!(kept == fixture::SECRET, "the extension got another secret: {kept}");

    ensure!(!launch.stdout(&["schedule", "run", "daily"]).await?.trim().is_empty(), "the schedule made no session");
    server.stop().await?;
    Ok(())
}

/// A rollback: the data of a later release, whose schema this one does not know.
#[test]
fn data_of_a_later_release_is_refused_with_a_sentence_and_left_as_it_is() -> anyhow::Result<()> {
    let test_directory = TestDirectory::new();
    let workspace = fixture::workspace_of_the_same_length()?;
    Fixture::of(env!("CARGO_PKG_VERSION"))?.copy_to(&test_directory.data(), workspace.path())?;
    let path = test_directory.data().join("log.db");
    let mut log = std::fs::read(&path)?;
    // SQLite's `user_version`, in the header of the file.
    log[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &log)?;

    for words in [&["run", "text"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let refused = test_directory.run(words);
        assert_ne!(refused.code, 0, "{words:?}: {refused:?}");
        let sentence = "data was written by a newer gander: use that version again, or another data directory";
        assert!(refused.err.contains(sentence), "{words:?}: {refused:?}");
    }
    assert!(test_directory.no_server(), "a server runs on data that it cannot read");
    ensure!(std::fs::read(&path)? == log, "the data was changed");
    Ok(())
}

/// Before a release: `UPDATE=1 cargo test --workspace --test server -- upgrade` writes what is missing.
#[tokio::test]
async fn this_release_has_a_fixture() -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    if std::env::var_os("UPDATE").is_some() && Fixture::of(version).is_err() {
        fixture::write_fixture(version).await?;
    }
    Fixture::of(version).map(drop)
}
