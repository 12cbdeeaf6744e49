//! The events of a stream, as they come.

use anyhow::{Context, ensure};
use gander_testkit::harness::PATIENCE;
use reqwest::Response;
use serde_json::Value;

/// A stream that is being read.
pub struct Events {
    response: Response,
    unread: Vec<u8>,
}

impl Events {
    pub fn of(response: Response) -> anyhow::Result<Self> {
        ensure!(response.status().is_success(), "no stream: {}", response.status());
        Ok(Self { response, unread: Vec::new() })
    }

    /// The next event; nothing at the stream's end.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            // A piece may end inside a character, an event does not.
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                let block = String::from_utf8(block)?;
                let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                match data {
                    Some(data) => return Ok(Some(serde_json::from_str(&data)?)),
                    None => continue,
                }
            }
            let more =
                tokio::time::timeout(PATIENCE, self.response.chunk()).await.context("the stream is silent")??;
            let Some(more) = more else { return Ok(None) };
            self.unread.extend(more);
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
