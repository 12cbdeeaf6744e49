//! Slash commands of the chat itself. All others are the server's.

use super::session_options::SessionOption;

/// What a person can do in the chat beside talking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
    Help,
    New,
    /// Choose among the sessions, or open the one with this id.
    Sessions(Option<String>),
    /// Choose among the agents, or set the session to this one.
    Agent(Option<String>),
    /// Choose a value of an option, or set it.
    Option {
        id: String,
        value: Option<String>,
    },
    /// Run this prompt when the turn has ended.
    Queue(String),
    Cancel,
    Quit,
}

/// The commands and what they do, for completion and `/help`.
const COMMANDS: [(&str, &str); 7] = [
    ("help", "Keys and commands"),
    ("new", "Start a new session"),
    ("sessions", "Go to another session"),
    ("agent", "Choose another agent"),
    ("queue", "Run a prompt when the turn has ended"),
    ("cancel", "Cancel the turn"),
    ("quit", "Leave; a running turn continues"),
];

/// The keys, for `/help`.
const KEYS: [(&str, &str); 11] = [
    ("enter", "send; while a turn runs, hand the message to it"),
    ("alt-enter", "new line (also ctrl-j, or \\ at the end of a line)"),
    ("tab", "complete a /command or an @file"),
    ("up, down", "earlier inputs, or the line above and below"),
    ("ctrl-a/e/w/u/k/y", "go to start, end; delete word, to start, to end; paste back"),
    ("y n a 1-9", "answer a question; v shows all of it"),
    ("r", "reject with a reason, which the model is told"),
    ("esc", "close a list; else cancel the turn"),
    ("ctrl-c", "cancel the turn; again: leave"),
    ("ctrl-d", "leave; a running turn continues"),
    ("ctrl-z", "suspend; fg comes back"),
];

/// What a line means to the chat; `None` if it is for the agent.
pub(super) fn read_chat_command(line: &str, options: &[SessionOption]) -> Option<ChatCommand> {
    let (name, rest) = line.strip_prefix('/')?.split_once(char::is_whitespace).unwrap_or((line.strip_prefix('/')?, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match name {
        "help" | "?" => Some(ChatCommand::Help),
        "new" => Some(ChatCommand::New),
        "sessions" | "session" => Some(ChatCommand::Sessions(rest)),
        "queue" => rest.map(ChatCommand::Queue),
        "cancel" => Some(ChatCommand::Cancel),
        "quit" | "exit" => Some(ChatCommand::Quit),
        "agent" => Some(ChatCommand::Agent(rest)),
        id => {
            let option = options.iter().find(|option| option.id == id)?;
            Some(ChatCommand::Option { id: option.id.clone(), value: rest })
        }
    }
}

/// Everything that can be completed after a slash.
pub(super) fn known_chat_commands(options: &[SessionOption], server: &[(String, String)]) -> Vec<(String, String)> {
    let own = COMMANDS.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned()));
    let chosen = options.iter().map(|option| (option.id.clone(), format!("{}: {}", option.name, option.current)));
    let mut all: Vec<(String, String)> = own.chain(chosen).collect();
    let more = server.iter().filter(|(name, _)| !all.iter().any(|(known, _)| known == name)).cloned();
    let more: Vec<_> = more.collect();
    all.extend(more);
    all
}

/// What `/help` says.
pub(super) fn chat_command_help(commands: &[(String, String)]) -> Vec<String> {
    let keys = KEYS.iter().map(|(key, what)| format!("  {key:<17} {what}"));
    let commands = commands.iter().map(|(name, what)| format!("  /{name:<16} {what}"));
    keys.chain(commands).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_commands_and_options_are_told_from_the_servers() {
        let model =
            SessionOption { id: "model".into(), name: "Model".into(), current: "a/b".into(), choices: Vec::new() };
        let read = |line: &str| read_chat_command(line, std::slice::from_ref(&model));
        assert_eq!(read("/model a/c"), Some(ChatCommand::Option { id: "model".into(), value: Some("a/c".into()) }));
        assert_eq!(read("/sessions"), Some(ChatCommand::Sessions(None)));
        assert_eq!(read("/agent coding"), Some(ChatCommand::Agent(Some("coding".into()))));
        assert_eq!(read("/queue then test it"), Some(ChatCommand::Queue("then test it".into())));
        assert_eq!((read("/compact"), read("hello"), read("/policy ask"), read("/queue")), (None, None, None, None));
        let all = known_chat_commands(&[model], &[("compact".into(), "x".into()), ("new".into(), "theirs".into())]);
        assert_eq!(all.iter().filter(|(name, _)| name == "new").count(), 1);
        assert!(all.iter().any(|(name, _)| name == "compact"));
    }
}
