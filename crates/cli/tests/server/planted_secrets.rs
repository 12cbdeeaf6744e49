//! Forty secrets that tools bring to light: none of them is found on disk, in logs, in exports or in the audit trail.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_testkit::harness::{Launch, data, script, workspace};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// Variables whose values the server knows to be secret.
const KEYS: [&str; 8] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
];

fn secret(number: usize) -> String {
    format!("pl@nted/{number:02}+secret=value{number:02}")
}

fn url_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// What looks like a secret although nobody told the server of it. Put together so that no scanner finds one here.
fn unknown_secrets() -> [String; 4] {
    let letters = "a1B2c3D4e5F6g7H8i9J0";
    [
        format!("sk-{letters}"),
        format!("ghp_{letters}"),
        format!("AKIA{}", &letters.to_uppercase()[..16]),
        format!("eyJ{letters}.eyJ{letters}.{letters}"),
    ]
}

/// Every file below, as bytes.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files(&entry.path(), found)?;
        } else if entry.file_type()?.is_file() {
            found.push((entry.path().display().to_string(), std::fs::read(entry.path())?));
        }
    }
    Ok(())
}

/// The steps that bring each secret to light, and the forms that must not be found. No prompt holds one.
fn plant(folder: &Path) -> anyhow::Result<(Vec<Value>, Vec<String>)> {
    let (mut steps, mut planted) = (Vec::new(), Vec::new());
    let shell = |command: String| json!([{"tool": "shell", "args": {"command": command, "timeout_seconds": 2}}]);
    let mut add = |form: String, command: &dyn Fn(&str) -> Value| -> anyhow::Result<()> {
        let name = format!("note-{}.txt", planted.len());
        std::fs::write(folder.join(&name), format!("before {form} after"))?;
        steps.push(command(&name));
        planted.push(form);
        Ok(())
    };
    let read = |name: &str| json!([{"tool": "read", "args": {"path": name}}]);
    let fails = |name: &str| shell(format!("cat {name} >&2; exit 1"));
    let times_out = |name: &str| shell(format!("cat {name}; sleep 60"));
    for number in 0..KEYS.len() {
        add(secret(number), &read)?;
        add(STANDARD.encode(secret(number)), &read)?;
        add(url_encoded(&secret(number)), &|name| shell(format!("cat {name}")))?;
    }
    let mcp =
        |tool: &str, name: &str| json!([{"tool": format!("teller__{tool}"), "args": {"path": folder.join(name)}}]);
    for number in 0..2 {
        add(secret(number), &fails)?;
        add(secret(number), &|name| mcp("tell", name))?;
        add(STANDARD.encode(secret(number)), &|name| mcp("tell", name))?;
        add(url_encoded(&secret(number)), &|name| mcp("lament", name))?;
    }
    for number in 0..4 {
        add(secret(number), &times_out)?;
    }
    for unknown in unknown_secrets() {
        add(unknown, &fails)?;
    }
    steps.push(shell("env; set".to_owned()));
    Ok((steps, planted))
}

/// Settings with an MCP server that says what files hold.
fn with_teller(launch: &Launch) -> anyhow::Result<()> {
    let (program, arguments, variables) = gander_testkit::mcp::command("server", "teller");
    let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    let settings = format!(
        "[extensions.teller]\ncommand = {program:?}\nargs = {arguments:?}\nenv = {{ {} }}\n",
        variables.join(", ")
    );
    let folder = launch.data.join("config/gander");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("gander.toml");
    std::fs::write(&file, settings)?;
    Ok(std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?)
}

#[tokio::test]
async fn forty_planted_secrets_are_found_nowhere() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?)
        .with_policy_auto("forty commands are run, and nobody is there to be asked");
    let launch = KEYS.iter().enumerate().fold(launch, |launch, (number, name)| launch.with(name, &secret(number)));
    let folder = workspace(root.path())?;
    let (steps, planted) = plant(&folder)?;
    assert_eq!(planted.len(), 40);
    with_teller(&launch)?;
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(&folder).await?;
    for some in steps.chunks(8) {
        let steps: Vec<Value> = some.iter().cloned().chain([json!([{"text": "done"}])]).collect();
        client.turn(&session, &script(&steps)).await?;
    }
    let mut places = vec![
        ("the export".to_owned(), launch.stdout(&["sessions", "export", &session]).await?.into_bytes()),
        ("the audit trail".to_owned(), launch.stdout(&["audit", "--json"]).await?.into_bytes()),
    ];
    let shown: Vec<String> = client.seen.iter().map(Value::to_string).collect();
    places.push(("what a client was shown".to_owned(), shown.join("\n").into_bytes()));
    let whole = String::from_utf8_lossy(&places[0].1).into_owned();
    ensure!(whole.matches("[redacted]").count() >= 40, "the tools did bring them to light");
    server.stop().await?;
    files(&launch.data, &mut places)?;
    // Each in every form, wherever and in whichever form it was planted.
    let forms = (0..KEYS.len()).map(secret).flat_map(|known| [STANDARD.encode(&known), url_encoded(&known), known]);
    let searched: std::collections::BTreeSet<String> = planted.into_iter().chain(forms).collect();
    for (number, secret) in searched.iter().enumerate() {
        for (place, bytes) in &places {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            ensure!(!found, "secret {number} is in {place}: {secret}");
        }
    }
    Ok(())
}
