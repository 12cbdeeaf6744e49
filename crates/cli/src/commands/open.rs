//! `gander open`: the web page in a browser that comes in with a one-use ticket.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::Args;
use qrcodegen::{QrCode, QrCodeEcc};
use serde_json::{Value, json};

use super::client;
use crate::commands::{Context, Exit};

/// Options of `gander open`.
#[derive(Debug, Args)]
pub(super) struct OpenOptions {
    /// Show a QR code for a phone in the same network; connections are encrypted with a certificate of this server
    #[arg(long)]
    phone: bool,
    /// Print the link instead of opening a browser
    #[arg(long)]
    print: bool,
    /// Address to listen on [default: where the server already listens, else server.listen, or this machine's network address for --phone]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Sign out every browser and close its connections
    #[arg(long, conflicts_with_all = ["phone", "print", "listen"])]
    revoke: bool,
}

pub(super) async fn run(context: Context, options: OpenOptions) -> anyhow::Result<Exit> {
    let (config, output) = (&context.config, context.output);
    let mut connection = client::connect_client(config, &std::env::current_dir()?).await?;
    if options.revoke {
        let answer = connection.call_method("_gander/browsers/revoke", &json!({})).await?;
        output.line(&format!("signed out: {}", open_browsers_text(answer["revoked"].as_u64().unwrap_or_default())))?;
        return Ok(Exit::Done);
    }
    let reach = if options.phone { "phone" } else { "here" };
    let answer = connection.call_method("_gander/ticket", &json!({ "reach": reach, "listen": options.listen })).await?;
    let url = answer["url"].as_str().context("the server gave no link")?;
    if options.phone {
        show_open_code(&context, url, &answer)?;
    } else if options.print || !config.browser.as_deref().is_some_and(|program| open_with_program(program, url)) {
        output.line(url)?;
    } else {
        output.line(&format!("opened {} in the browser", answer["address"].as_str().unwrap_or_default()))?;
        return Ok(Exit::Done);
    }
    output.note(&format!("The link works once, within {}.", ticket_lifetime_text(&answer)));
    Ok(Exit::Done)
}

fn open_browsers_text(count: u64) -> String {
    if count == 1 { "1 browser".to_owned() } else { format!("{count} browsers") }
}

fn ticket_lifetime_text(answer: &Value) -> String {
    match answer["expiresInSeconds"].as_u64().unwrap_or_default() {
        seconds if seconds < 120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    }
}

/// True if the program took the address. What it prints is about itself.
fn open_with_program(program: &str, url: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn show_open_code(context: &Context, url: &str, answer: &Value) -> anyhow::Result<()> {
    let output = context.output;
    let code = QrCode::encode_text(url, QrCodeEcc::Low).context("the link does not fit into a QR code")?;
    output.note(&drawn_qr_code(&code));
    output.line(url)?;
    let fingerprint = answer["fingerprint"].as_str().unwrap_or_default();
    output.note(&format!("The phone warns about the certificate. Its SHA-256 fingerprint must be:\n  {fingerprint}"));
    Ok(())
}

/// Two rows per line, dark on light whatever the terminal's colours: cameras do not read the reverse reliably.
fn drawn_qr_code(code: &QrCode) -> String {
    const QUIET: i32 = 2;
    let (size, dark) = (code.size(), |x, y| code.get_module(x, y));
    let rows = (-QUIET..size + QUIET).step_by(2).map(|y| {
        let cells = (-QUIET..size + QUIET).map(|x| match (dark(x, y), dark(x, y + 1)) {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        });
        format!("\x1b[30;107m{}\x1b[0m", cells.collect::<String>())
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_module_of_a_code_is_drawn() {
        let code = QrCode::encode_text("https://192.168.1.5:4747/#ticket=x", QrCodeEcc::Low).unwrap();
        let text = drawn_qr_code(&code);
        let lines: Vec<&str> =
            text.lines().map(|line| line.trim_start_matches("\x1b[30;107m").trim_end_matches("\x1b[0m")).collect();
        let drawn = |x: i32, y: i32| {
            let cell =
                lines[usize::try_from((y + 2) / 2).unwrap()].chars().nth(usize::try_from(x + 2).unwrap()).unwrap();
            if (y + 2) % 2 == 0 { ['█', '▀'].contains(&cell) } else { ['█', '▄'].contains(&cell) }
        };
        for (x, y) in (0..code.size()).flat_map(|x| (0..code.size()).map(move |y| (x, y))) {
            assert_eq!(drawn(x, y), code.get_module(x, y), "{x} {y}");
        }
    }
}
