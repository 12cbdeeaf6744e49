//! Many clients at one session: each is told everything once, in order, and one answer wins.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Client, Transcript, script};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::acp_net::test_server::{TRANSPORTS, TestServer, Transport};

const CLIENTS: usize = 10;

/// `GANDER_RACES=1000` for the whole number.
fn races() -> usize {
    std::env::var("GANDER_RACES").ok().and_then(|races| races.parse().ok()).unwrap_or(100)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_clients_over_three_transports_are_told_everything_once() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    let mut prompter = server.client(Transport::Http).await?;
    let session = prompter.new_session(&server.folder).await?;
    let mut clients = Vec::new();
    for index in 0..CLIENTS {
        let mut client = server.client(TRANSPORTS[index % 3]).await?;
        client.load(&session, &server.folder).await.with_context(|| format!("client {index}"))?;
        clients.push(client);
    }
    for turn in 1..=3 {
        let pace = Pace { deltas: 300, word: turn, between_ms: 1, ..Pace::default() };
        let whole: String = (0..300).map(|index| pace.delta(index)).collect();
        ensure!(prompter.turn(&session, &pace.marker()).await? == "end_turn", "turn {turn}");
        for (index, client) in clients.iter_mut().enumerate() {
            while !Transcript::of(&client.seen, &session).text().ends_with(&whole) {
                client.receive().await?.with_context(|| format!("client {index} in turn {turn}"))?;
            }
        }
    }
    let expected = Transcript::of(&clients[0].seen, &session);
    for (index, client) in clients.iter().enumerate() {
        ensure!(Transcript::of(&client.seen, &session) == expected, "client {index} saw something else");
    }
    ensure!(Transcript::of(&prompter.seen, &session).text() == expected.text(), "the prompter saw something else");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_joiner_gets_history_then_life_without_a_seam() -> anyhow::Result<()> {
    for (first, second) in [(Transport::Socket, Transport::Http), (Transport::Http, Transport::Socket)] {
        let server = TestServer::paced().await?;
        let mut client = server.client(first).await?;
        let session = client.new_session(&server.folder).await?;
        let pace = Pace { deltas: 400, between_ms: 2, word: 7, ..Pace::default() };
        let whole: String = (0..400).map(|index| pace.delta(index)).collect();
        let id = client.prompt(&session, &pace.marker()).await?;
        client.update("agent_message_chunk").await?;
        let mut late = server.client(second).await?;
        late.load(&session, &server.folder).await?;
        client.answer_to(id).await?;
        while Transcript::of(&late.seen, &session).text() != whole {
            let message = late.receive().await?.context("hung up")?;
            ensure!(whole.starts_with(&Transcript::of(&late.seen, &session).text()), "a seam: {message}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_over_two_transports_exactly_one_wins() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    let mut clients = Vec::new();
    for transport in TRANSPORTS {
        clients.push(server.client(transport).await?);
    }
    let session = clients[0].new_session(&server.folder).await?;
    for client in &mut clients[1..] {
        client.load(&session, &server.folder).await?;
    }
    let mut wins = BTreeSet::new();
    for race in 0..races() {
        wins.insert(one_race(&mut clients, &session, race).await.with_context(|| format!("race {race}"))?);
    }
    let written = std::fs::read_to_string(server.folder.join("ran.txt")).unwrap_or_default();
    let allowed = wins.iter().filter(|(_, allowed)| *allowed).count();
    ensure!(written.lines().count() == allowed, "{} runs of the tool, {allowed} allowed", written.lines().count());
    Ok(())
}

/// One question, answered yes by one client and no by another at once. Gives the race and whether yes won.
async fn one_race(clients: &mut [Client], session: &str, race: usize) -> anyhow::Result<(usize, bool)> {
    let prompter = race % 3;
    let call = json!([{"tool": "shell", "args": {"command": format!("echo {race} >> ran.txt")}}]);
    let id = clients[prompter].prompt(session, &script(&[call, json!([{"text": format!("done {race}")}])])).await?;
    let mut asked = Vec::new();
    for client in clients.iter_mut() {
        asked.push(client.asked("session/request_permission").await?);
    }
    let (yes, no) = ((race + race / 3) % 3, (race + race / 3 + 1) % 3);
    let (one, two) = if race.is_multiple_of(2) { (yes, no) } else { (no, yes) };
    let kind = |who| if who == yes { "allow_once" } else { "reject_once" };
    clients[one].choose(&asked[one], kind(one)).await?;
    clients[two].choose(&asked[two], kind(two)).await?;
    ensure!(clients[prompter].answer_to(id).await?["stopReason"] == "end_turn", "not ended");
    let done = format!("done {race}");
    let mut verdicts = BTreeSet::new();
    for client in clients.iter_mut() {
        while !Transcript::of(&client.seen, session).text().contains(&done) {
            client.receive().await?.context("hung up")?;
        }
        verdicts.insert(verdict(&client.seen));
        client.seen.clear();
    }
    ensure!(verdicts.len() == 1, "clients saw different ends: {verdicts:?}");
    Ok((race, verdicts.contains("completed")))
}

/// How the last tool call ended.
fn verdict(seen: &[Value]) -> String {
    let statuses = seen.iter().filter_map(|message| message["params"]["update"]["status"].as_str());
    statuses.rev().find(|status| matches!(*status, "completed" | "failed")).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_drops_changes_nothing_for_the_run() -> anyhow::Result<()> {
    let server = TestServer::paced().await?;
    for transport in [Transport::Socket, Transport::Http] {
        let mut client = server.client(transport).await?;
        let session = client.new_session(&server.folder).await?;
        let pace = Pace { deltas: 100, between_ms: 5, word: 3, ..Pace::default() };
        let whole: String = (0..100).map(|index| pace.delta(index)).collect();
        client.prompt(&session, &pace.marker()).await?;
        client.update("agent_message_chunk").await?;
        drop(client);
        let mut other = server.client(transport).await?;
        other.load(&session, &server.folder).await?;
        while Transcript::of(&other.seen, &session).text() != whole {
            other.receive().await?.context("hung up")?;
        }
    }
    Ok(())
}
