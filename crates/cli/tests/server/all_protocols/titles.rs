//! What is shown is what runs (S27): an MCP server's own words never stand in for its tool's name and arguments.

use anyhow::{Context, ensure};
use gander_testkit::harness::{Terminal, script};
use gander_testkit::mcp::{HOSTILE, command};
use serde_json::{Value, json};

use crate::all_protocols::{protocols, test_server_with};

/// What a screen would reorder, hide, or take as a command.
const TRICKS: [(char, &str); 5] =
    [('\u{202e}', "202E"), ('\u{200d}', "200D"), ('\u{200b}', "200B"), ('\u{1b}', "001B"), ('\u{ad}', "00AD")];

fn arguments() -> Value {
    let tricks: String = TRICKS.iter().map(|(trick, _)| *trick).collect();
    json!({ "target": format!("/home/me/photo{tricks}gpj.exe"), "force": true, "last": format!("{}the end", " ".repeat(900)) })
}

/// A server whose tool says of itself that it only looks.
fn settings() -> anyhow::Result<String> {
    let (program, args, env) = command("server", "hostile");
    let (name, value) = env.first().context("no temper")?;
    Ok(format!("[extensions.weather]\ncommand = {program:?}\nargs = {args:?}\nenv = {{ {name} = {value:?} }}\n"))
}

fn wipes() -> String {
    script(&[json!([{ "tool": format!("weather__{HOSTILE}"), "args": arguments() }]), json!([{ "text": "done" }])])
}

/// Panics unless a person who reads this knows what would run.
fn tells_what_runs(protocol: &str, shown: &str) {
    assert!(shown.contains(HOSTILE), "{protocol} hides the tool: {shown:?}");
    assert!(shown.contains("/home/me/photo") && shown.contains("gpj.exe"), "{protocol} hides an argument: {shown:?}");
    assert!(shown.contains("force") && shown.contains("true"), "{protocol} hides an argument: {shown:?}");
    assert!(shown.contains("the end"), "{protocol} pads the last argument away: {shown:?}");
    for (trick, number) in TRICKS {
        assert!(!shown.contains(trick), "{protocol} prints U+{number} as it is: {shown:?}");
        let told = [format!("U+{number}"), format!("\\u{{{}}}", number.trim_start_matches('0').to_lowercase())];
        let told = told.iter().any(|told| shown.contains(told)) || (trick == '\u{1b}' && shown.contains("\\u001b"));
        assert!(told, "{protocol} drops U+{number}: {shown:?}");
    }
    // The tool's own words, if they are there at all, come after what runs.
    let lie = shown.find("Show the weather").unwrap_or(usize::MAX);
    assert!(shown.find(HOSTILE).is_some_and(|at| at < lie), "{protocol} begins with the lie: {shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tools_own_title_hides_neither_its_name_nor_its_arguments() -> anyhow::Result<()> {
    let (_root, server, mut test_session) = test_server_with(&settings()?).await?;
    test_session.run = test_session.start(&wipes()).await?;
    for protocol in protocols::all() {
        let (shown, call) = protocol.question(&test_session).await?;
        tells_what_runs(protocol.name(), &shown);
        ensure!(!shown.contains('\n') || shown.trim_end().lines().count() == 1, "{}: {shown:?}", protocol.name());
        if let Some(call) = call {
            let expected = json!({ "name": format!("weather__{HOSTILE}"), "arguments": arguments() });
            assert_eq!(call, expected, "{}", protocol.name());
        }
    }
    let log = server.launch.export(&test_session.session).await?;
    let ran = log.iter().any(|entry| matches!(entry.event, gander_domain::Event::ToolStarted { .. }));
    assert!(!ran, "hints of the server's own let nothing run unasked");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_at_the_terminal_reads_what_runs() -> anyhow::Result<()> {
    let (root, server, _place) = test_server_with(&settings()?).await?;
    let folder = gander_testkit::harness::workspace(root.path())?;
    let folder = folder.to_str().context("no text")?;
    let command = server.launch.command(["run", "--cwd", folder, &wipes()]);
    let mut terminal = Terminal::start(command)?;
    let shown = terminal.until("3)").await?;
    let (_, asked) = shown.split_once("? Allow ").context("no question")?;
    // Colours of our own and the terminal's line ends.
    let asked = asked.replace("\u{1b}[0m", "").replace("\u{1b}[33m", "").replace('\r', "");
    tells_what_runs("gander run", asked.lines().next().context("no title")?);
    let detail: String = asked.lines().skip(1).collect();
    assert!(detail.contains("target: /home/me/photo") && detail.contains("force: true"), "{asked}");
    assert!(!detail.chars().any(|letter| TRICKS.iter().any(|(trick, _)| *trick == letter)), "{asked:?}");
    terminal.enter("reject")?;
    terminal.until("done").await?;
    terminal.ended().await?;
    Ok(())
}
