//! Logs on stderr, and panics in them: a panic ends its task, never the process, and is counted.

use gander_tools::Redactor;
use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};
use uuid::Uuid;

use crate::output::Style;

/// Starts logging. A filter that cannot be read is `info`, and said to be wrong. A panic says whatever its author had at hand:
/// it is written down without secrets.
pub fn start_trace(filter: &str, style: Style, redactor: Redactor) {
    let (filter, wrong) = match EnvFilter::try_new(filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let logs = fmt::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(style == Style::Colour);
    let discreet = filter_fn(|event| is_discreet_trace(event.target(), *event.level()));
    let started = match style.is_terminal() {
        true => logs.without_time().with_target(false).finish().with(discreet).try_init(),
        false => logs.compact().finish().with(discreet).try_init(),
    };
    trace_panics(redactor);
    if let Some(error) = wrong {
        tracing::warn!(%error, "log filter cannot be read, using info");
    }
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}

/// Whatever the filter says: beyond `info` the MCP library writes down what lets others in, such as the code of a login.
fn is_discreet_trace(target: &str, level: Level) -> bool {
    let library = target == "rmcp" || target.starts_with("rmcp::");
    !library || level <= Level::INFO
}

fn trace_panics(redactor: Redactor) {
    std::panic::set_hook(Box::new(move |panic| {
        let message = redactor.redact_text(panic.payload_as_str().unwrap_or("no message"));
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(id = %Uuid::now_v7(), place, "panic: {message}");
    }));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_panic_is_written_down_without_secrets_in_any_form() {
        let secret = "pl@nted+secret=values";
        let encoded = [secret, "cGxAbnRlZCtzZWNyZXQ9dmFsdWVz", "pl%40nted%2Bsecret%3Dvalues"];
        let log = Log::default();
        let writer = log.clone();
        let subscriber = fmt::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        let hook = std::panic::take_hook();
        trace_panics(Redactor::new([secret]));
        tracing::subscriber::with_default(subscriber, || {
            for form in encoded {
                std::panic::catch_unwind(|| panic!("cannot read {form} of the vault")).unwrap_err();
            }
        });
        std::panic::set_hook(hook);
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.matches("panic: cannot read [redacted] of the vault").count(), 3, "{log}");
        assert!(encoded.iter().all(|form| !log.contains(form)), "{log}");
    }

    /// What was logged.
    #[derive(Clone, Default)]
    struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_mcp_library_does_not_write_down_logins() {
        assert!(!is_discreet_trace("rmcp::transport::auth", Level::DEBUG) && !is_discreet_trace("rmcp", Level::TRACE));
        assert!(
            is_discreet_trace("rmcp::transport::auth", Level::INFO)
                && is_discreet_trace("gander_gateway", Level::DEBUG)
        );
    }
}
