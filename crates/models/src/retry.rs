//! When to ask again: exponential back-off with jitter that honours `Retry-After`.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::time::sleep;

use super::{ModelError, ModelInfo, ModelStream};

/// How often and how patiently a call is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// How often a call is tried in all; at least once.
    pub attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub base: Duration,
    /// The longest wait. A provider that wants more gets its error reported instead.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 4, base: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

impl Retry {
    /// The wait before the next attempt, if there is to be one. `jitter` is between 0 and 1.
    pub fn next_delay(&self, failed: u32, retry_after: Option<Duration>, jitter: f64) -> Option<Duration> {
        if failed >= self.attempts || retry_after.is_some_and(|wanted| wanted > self.longest) {
            return None;
        }
        let doubled = self.base.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(self.longest);
        match retry_after {
            // Never earlier than asked, and not all at once.
            Some(wanted) => Some(wanted + self.base.mul_f64(jitter / 4.0)),
            None => Some(doubled.mul_f64(0.5 + jitter / 2.0)),
        }
    }
}

/// Attempts until one succeeds, fails for good, or the patience ends.
pub async fn retry_until_streaming<A>(
    retry: &Retry,
    info: &ModelInfo,
    attempt: impl Fn() -> A,
) -> Result<ModelStream, ModelError>
where
    A: Future<Output = Result<ModelStream, ModelError>>,
{
    let mut failed = 0;
    loop {
        let error = match attempt().await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        failed += 1;
        let wait = error.is_retryable().then(|| retry.next_delay(failed, error.retry_after(), random_retry_fraction()));
        let Some(wait) = wait.flatten() else { return Err(error) };
        tracing::info!(model = info.qualified_name(), failed, wait_ms = wait.as_millis() as u64, %error, "asking again");
        sleep(wait).await;
    }
}

/// The wait that the headers ask for: milliseconds, seconds, or a date.
pub fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|text| text.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let text = header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// A number between 0 and 1 that differs from process to process and call to call.
fn random_retry_fraction() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn waits_double_until_the_attempts_are_used_up() {
        let retry = Retry { attempts: 5, base: Duration::from_secs(1), longest: Duration::from_secs(3) };
        let waits: Vec<_> = (1..=5).map(|failed| retry.next_delay(failed, None, 1.0)).collect();
        assert_eq!(waits, [Some(1), Some(2), Some(3), Some(3), None].map(|secs| secs.map(Duration::from_secs)));
        assert_eq!(retry.next_delay(1, None, 0.0), Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_provider_is_never_asked_earlier_than_it_wants() {
        let retry = Retry::default();
        assert_eq!(retry.next_delay(1, Some(Duration::from_secs(7)), 1.0), Some(Duration::from_millis(7250)));
        assert_eq!(retry.next_delay(1, Some(Duration::from_secs(61)), 0.0), None);
    }

    #[test]
    fn every_form_of_the_header_is_understood() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().unwrap();
        let read = |name: &'static str, text: &'static str| retry_after(|asked| (asked == name).then_some(text), now);
        assert_eq!(read("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(read("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("retry-after-ms", "40"), Some(Duration::from_millis(40)));
        assert_eq!(read("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after", "soon"), None);
        assert_eq!(read("retry-after", "-1"), None);
    }
}
