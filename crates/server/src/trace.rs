//! Logs on stderr, and panics in them: a panic ends its task, never the process.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use uuid::Uuid;

use crate::output::Style;

/// Starts logging. A filter that cannot be read is `info`, and said to be wrong.
pub fn start(filter: &str, style: Style) {
    let (filter, wrong) = match EnvFilter::try_new(filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let logs = fmt::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(style == Style::Colour);
    let started = match style.is_terminal() {
        true => logs.without_time().with_target(false).try_init(),
        false => logs.compact().try_init(),
    };
    log_panics();
    if let Some(error) = wrong {
        tracing::warn!(%error, "log filter cannot be read, using info");
    }
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}

fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(id = %Uuid::now_v7(), place, "panic: {message}");
    }));
}
