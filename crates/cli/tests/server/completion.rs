//! Completion in a shell: the script asks the binary, which asks the server of the data directory.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use crate::binary::TestDirectory;

/// What a shell shows for the last word of a line, as the script of fish asks for it.
fn complete(test_directory: &TestDirectory, line: &[&str]) -> Vec<String> {
    let usual = test_directory.command(&[]);
    let mut command = Command::new(usual.get_program());
    command.env_clear().current_dir(usual.get_current_dir().unwrap());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("GANDER_DATA", test_directory.data()).env("GANDER_COMPLETE", "fish");
    let output = command.args(["--", "gander"]).args(line).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn nothing_is_started_where_nothing_was_stored() {
    let test_directory = TestDirectory::new();
    assert!(complete(&test_directory, &["sessions", "sh"]).iter().any(|line| line.starts_with("show\t")));
    assert_eq!(complete(&test_directory, &["chat", "--session", ""]), Vec::<String>::new());
    assert!(!test_directory.data().exists() && test_directory.no_server());
}

#[test]
fn a_shell_completes_what_the_server_knows() {
    let test_directory = TestDirectory::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(test_directory.ok(&["completions", shell]).contains("GANDER_COMPLETE"), "{shell}");
    }
    test_directory.ok(&["run", "text"]);
    let session = test_directory.json_lines(&["sessions", "list", "--json"])[0]["sessionId"].clone();
    let session = session.as_str().unwrap();
    test_directory.ok(&["token", "add", "phone"]);
    test_directory.ok(&["sessions", "rename", session, "the first one"]);
    // Also when no server runs: one is started, as by the command that is typed.
    test_directory.stop_server();
    assert_eq!(complete(&test_directory, &["chat", "--session", ""]), [format!("{}\tthe first one", &session[..8])]);
    assert_eq!(complete(&test_directory, &["sessions", "show", &session[..4]]).len(), 1);
    let running = complete(&test_directory, &["cancel", ""]);
    assert!(running.iter().all(|line| line.starts_with("--")), "no turn is running: {running:?}");
    let begins = |line: &[&str], with: &str| complete(&test_directory, line).iter().any(|one| one.starts_with(with));
    assert!(begins(&["run", "--mode", "pl"], "planner\t"));
    assert!(begins(&["run", "--model", "demo/"], "demo/demo"));
    assert!(begins(&["setup", "anth"], "anthropic\t"));
    assert!(begins(&["extensions", "show", "mem"], "memory\t"));
    assert!(begins(&["token", "revoke", "p"], "phone"));
    assert!(begins(&["schedule", "add", "x", "--zone", "Europe/Ber"], "Europe/Berlin"));
    std::fs::create_dir_all(test_directory.root.path().join("work/.gander/recipes")).unwrap();
    let recipe = "version: 1.0.0\ntitle: T\ndescription: d\nprompt: hi\n";
    std::fs::write(test_directory.root.path().join("work/.gander/recipes/news.yaml"), recipe).unwrap();
    assert!(begins(&["run", "--recipe", "ne"], "news"));
    test_directory.ok(&["schedule", "add", "morning", "--cron", "0 7 * * *", "--recipe", "news"]);
    assert!(begins(&["schedule", "pause", ""], "morning\t"));
    let other = ["--data", "/nowhere", "chat", "--session", ""];
    assert_eq!(complete(&test_directory, &other), Vec::<String>::new(), "the line names another data directory");
}
