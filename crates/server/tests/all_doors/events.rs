//! The events of a stream, as they come.

use anyhow::{Context, ensure};
use gander_testkit::harness::PATIENCE;
use reqwest::Response;
use serde_json::Value;

/// A stream that is being read.
pub struct Events {
    response: Response,
    unread: String,
}

impl Events {
    pub fn of(response: Response) -> anyhow::Result<Self> {
        ensure!(response.status().is_success(), "no stream: {}", response.status());
        Ok(Self { response, unread: String::new() })
    }

    /// The next event; nothing at the stream's end.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.unread = rest.to_owned();
                match data {
                    Some(data) => return Ok(Some(serde_json::from_str(&data)?)),
                    None => continue,
                }
            }
            let more =
                tokio::time::timeout(PATIENCE, self.response.chunk()).await.context("the stream is silent")??;
            let Some(more) = more else { return Ok(None) };
            self.unread.push_str(std::str::from_utf8(&more).context("a piece ends inside a character")?);
        }
    }

    /// Reads until an event is what is wanted.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        while let Some(event) = self.next().await? {
            if wanted(&event) {
                return Ok(event);
            }
        }
        anyhow::bail!("the stream ended")
    }
}
