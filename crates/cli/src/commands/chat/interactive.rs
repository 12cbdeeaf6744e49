//! The chat at a terminal that can be drawn on: keys in, the screen out.

use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use super::app::{ChatApp, TerminalAction};
use super::driver::ChatDriver;
use super::key_parser::Key;
use super::key_reader::read_keys;
use super::screen::ChatScreen;
use super::view::{Frame, View};
use crate::commands::Exit;
use crate::terminal::spinner;

/// Between two drawings while much is told: what comes meanwhile is drawn together.
const FRAME_TIME: Duration = Duration::from_millis(30);

/// Until the person leaves.
pub(super) async fn run_interactive(mut driver: ChatDriver, mut app: ChatApp) -> anyhow::Result<Exit> {
    let mut screen = ChatScreen::open()?;
    let mut keys = read_keys();
    let mut resized = signal(SignalKind::window_change())?;
    let (mut terminated, mut hung_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut ticks = tokio::time::interval(spinner::TICK);
    let mut frames = tokio::time::interval(FRAME_TIME);
    frames.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let style = app.conversation.transcript.style();
    let (mut tick, mut quiet_since) = (0, Instant::now());
    app.conversation.handle_connected();
    app.conversation.transcript.set_columns(screen.measure().0 - 1);
    let exit = loop {
        app.settle(Instant::now());
        if let Some(exit) = driver.carry_out(&mut app.conversation) {
            break exit;
        }
        let (columns, rows) = screen.measure();
        app.conversation.transcript.set_columns(columns - 1);
        let lines = app.conversation.transcript.take_done();
        let waited = quiet_since.elapsed();
        screen.draw(&lines, app.view(Frame { columns, rows, tick, waited }, style))?;
        tokio::select! {
            // Keys first: who types must not wait for a long answer.
            biased;
            key = keys.recv() => match key {
                Some(key) => handle_interactive_key(&mut app, &mut screen, key)?,
                None => app.conversation.leave(),
            },
            // It is measured before the next drawing.
            _ = resized.recv() => {}
            event = async { frames.tick().await; driver.next_event().await } => {
                driver.feed(&mut app.conversation, event);
                quiet_since = Instant::now();
            }
            _ = ticks.tick(), if app.conversation.waits_for().is_some() => tick += 1,
            _ = terminated.recv() => app.conversation.leave(),
            _ = hung_up.recv() => app.conversation.leave(),
        }
    };
    let lines = app.conversation.transcript.take_done();
    screen.draw(&lines, View::default())?;
    Ok(exit)
}

fn handle_interactive_key(app: &mut ChatApp, screen: &mut ChatScreen, key: Key) -> std::io::Result<()> {
    match app.handle_key(Instant::now(), key) {
        TerminalAction::Nothing => Ok(()),
        TerminalAction::Suspend => screen.suspend(),
        TerminalAction::Redraw => screen.clear(),
    }
}
