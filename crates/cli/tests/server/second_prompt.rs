//! A second prompt over ACP while a turn runs: refused unless the prompt or the settings say otherwise.

use anyhow::ensure;
use gander_testkit::harness::{Agent, Background, Launch, Refusal, Transcript, data, script, workspace};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// An editor whose session has a turn that does not end by itself.
struct Busy {
    agent: Agent,
    session: String,
    first: u64,
    _background: Background,
    _root: tempfile::TempDir,
}

impl Busy {
    async fn start(variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(GANDER, data(root.path())?);
        let launch = variables.iter().fold(launch, |launch, (name, value)| launch.with(name, value));
        let background = Background(launch.data.clone());
        let mut agent = launch.editor(&[]).await?;
        let session = agent.client.new_session(&workspace(root.path())?).await?;
        let first = agent.client.prompt(&session, &script(&[json!([{"text": "a", "delay_ms": 600_000}])])).await?;
        Ok(Self { agent, session, first, _background: background, _root: root })
    }

    /// Sends a second prompt with this `_meta`.
    async fn second(&mut self, meta: Value) -> anyhow::Result<u64> {
        let prompt = [json!({"type": "text", "text": "text"})];
        let params = json!({"sessionId": self.session, "prompt": prompt, "_meta": meta});
        Ok(self.agent.client.request("session/prompt", params).await?)
    }

    /// Cancels the first turn, and gives how both prompts ended.
    async fn ends(&mut self, second: u64) -> anyhow::Result<[Value; 2]> {
        let client = &mut self.agent.client;
        client.notify("session/cancel", json!({"sessionId": self.session})).await?;
        let first = client.answer_to(self.first).await?["stopReason"].clone();
        Ok([first, client.answer_to(second).await?["stopReason"].clone()])
    }
}

#[tokio::test]
async fn it_is_refused_with_what_to_do() -> anyhow::Result<()> {
    let mut busy = Busy::start(&[]).await?;
    for (meta, said) in [(json!({}), "_meta.ifBusy"), (json!({"ifBusy": "later"}), "refuse, queue or steer")] {
        let second = busy.second(meta).await?;
        let refused = busy.agent.client.answer_to(second).await.map_err(|error| error.downcast::<Refusal>());
        ensure!(
            refused.as_ref().is_err_and(|error| error.as_ref().is_ok_and(|error| error.message.contains(said))),
            "{refused:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn it_waits_for_its_turn_if_it_says_so() -> anyhow::Result<()> {
    let mut busy = Busy::start(&[]).await?;
    let second = busy.second(json!({"ifBusy": "queue"})).await?;
    // A cancel is for the turn that runs: whatever waits is next.
    let client = &mut busy.agent.client;
    client.notify("$/cancel_request", json!({"requestId": busy.first})).await?;
    assert_eq!(client.answer_to(busy.first).await?["stopReason"], "cancelled");
    assert_eq!(client.answer_to(second).await?["stopReason"], "end_turn");
    Ok(())
}

#[tokio::test]
async fn a_prompt_that_steers_ends_with_the_turn_that_it_steers() -> anyhow::Result<()> {
    let mut busy = Busy::start(&[]).await?;
    let second = busy.second(json!({"ifBusy": "steer"})).await?;
    assert_eq!(busy.ends(second).await?, [json!("cancelled"), json!("cancelled")]);
    Ok(())
}

#[tokio::test]
async fn the_settings_say_what_every_prompt_does() -> anyhow::Result<()> {
    let mut busy = Busy::start(&[("GANDER_ACP_IF_BUSY", "steer")]).await?;
    let second = busy.second(json!({})).await?;
    assert_eq!(busy.ends(second).await?, [json!("cancelled"), json!("cancelled")]);
    Ok(())
}

#[tokio::test]
async fn a_prompt_right_behind_a_cancel_waits_for_the_end_of_the_cancelled_turn() -> anyhow::Result<()> {
    let mut busy = Busy::start(&[]).await?;
    for round in 0..5 {
        let (session, client) = (json!({"sessionId": busy.session}), &mut busy.agent.client);
        client.notify("session/cancel", session.clone()).await?;
        let next = client.prompt(&busy.session, &script(&[json!([{"text": format!("answer {round}")}])])).await?;
        assert_eq!(client.answer_to(busy.first).await?["stopReason"], "cancelled");
        assert_eq!(client.answer_to(next).await?["stopReason"], "end_turn");
        let told = Transcript::of(&client.seen, &busy.session).text();
        ensure!(told.contains(&format!("answer {round}")), "{told}");
        busy.first = client.prompt(&busy.session, &script(&[json!([{"text": "a", "delay_ms": 600_000}])])).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_second_cancel_ends_the_prompt_that_waits() -> anyhow::Result<()> {
    let mut busy = Busy::start(&[]).await?;
    let (session, client) = (json!({"sessionId": busy.session}), &mut busy.agent.client);
    client.notify("session/cancel", session.clone()).await?;
    let next = client.prompt(&busy.session, &script(&[json!([{"text": "b", "delay_ms": 600_000}])])).await?;
    client.notify("session/cancel", session).await?;
    // The one that waits never ran: it may be answered first.
    let is_cancelled = |seen: &[Value], id: u64| {
        seen.iter().any(|message| message["id"] == id && message["result"]["stopReason"] == "cancelled")
    };
    while ![busy.first, next].iter().all(|id| is_cancelled(&client.seen, *id)) {
        ensure!(client.receive().await?.is_some(), "the agent hung up");
    }
    assert_eq!(client.turn(&busy.session, &script(&[json!([{"text": "still here"}])])).await?, "end_turn");
    Ok(())
}
