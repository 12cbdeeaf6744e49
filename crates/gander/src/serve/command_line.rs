//! The command line of a program that is an agent.

use std::path::PathBuf;

/// What the command line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) verb: Verb,
    pub(super) options: ServeOptions,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Acp,
    Serve,
    Token,
}

/// How to do it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServeOptions {
    pub(super) data: Option<PathBuf>,
    pub(super) config: Option<PathBuf>,
    pub(super) listen: Option<String>,
    /// As the settings write it: a list of names.
    pub(super) open: Option<String>,
}

/// Why there is nothing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestedCommand {
    Help(String),
    Version,
    Wrong(String),
}

impl CommandLine {
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>, program: &str) -> Result<Self, RequestedCommand> {
        let mut arguments = arguments.into_iter();
        let wrong = |what: String| RequestedCommand::Wrong(format!("{what}\n\n{}", command_line_usage(program)));
        let verb = match arguments.next().as_deref() {
            Some("acp") => Verb::Acp,
            Some("serve") => Verb::Serve,
            Some("token") => Verb::Token,
            Some("help" | "--help" | "-h") => return Err(RequestedCommand::Help(command_line_usage(program))),
            Some("version" | "--version" | "-V") => return Err(RequestedCommand::Version),
            Some(other) => return Err(wrong(format!("no such command: {other}"))),
            None => return Err(wrong("a command is missing".to_owned())),
        };
        let mut options = ServeOptions::default();
        while let Some(argument) = arguments.next() {
            if matches!(argument.as_str(), "--help" | "-h") {
                return Err(RequestedCommand::Help(command_line_usage(program)));
            }
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (argument, arguments.next()),
            };
            let value = value.ok_or_else(|| wrong(format!("a value is missing after {flag}")));
            match (verb, flag.as_str()) {
                (_, "--data") => options.data = Some(value?.into()),
                (_, "--config") => options.config = Some(value?.into()),
                (Verb::Serve, "--listen") => options.listen = Some(value?),
                (Verb::Serve, "--open") => {
                    options.open = Some(format!("{:?}", value?.split(',').map(str::trim).collect::<Vec<_>>()));
                }
                (Verb::Acp | Verb::Serve | Verb::Token, _) => return Err(wrong(format!("no such option: {flag}"))),
            }
        }
        Ok(Self { verb, options })
    }
}

fn command_line_usage(program: &str) -> String {
    format!(
        "usage: {program} acp                speak ACP on stdin and stdout, for editors\n\
        \x20      {program} serve              listen for ACP, ACP-REST, A2A, ADK and goose clients\n\
        \x20      {program} token              print the token that callers of `serve` present\n\
        \n\
        --data DIR            where sessions, token and settings lie\n\
        --config FILE         the settings file\n\
        --listen ADDR:PORT    where `serve` listens (127.0.0.1:4747)\n\
        --open PROTOCOLS      protocols of `serve` that need no token on this machine: acp-rest, a2a, adk"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, RequestedCommand> {
        CommandLine::parse(line.split_whitespace().map(str::to_owned), "echo")
    }

    #[test]
    fn commands_take_their_own_options() {
        let options = ServeOptions {
            data: Some("d".into()),
            listen: Some("127.0.0.1:0".to_owned()),
            open: Some(r#"["a2a", "adk"]"#.to_owned()),
            ..ServeOptions::default()
        };
        let expected = CommandLine { verb: Verb::Serve, options };
        assert_eq!(parse("serve --data d --listen=127.0.0.1:0 --open a2a,adk"), Ok(expected));
        assert_eq!(parse("acp"), Ok(CommandLine { verb: Verb::Acp, options: ServeOptions::default() }));
    }

    #[test]
    fn what_is_wrong_is_named_before_the_usage() {
        let said = |line: &str| match parse(line) {
            Err(RequestedCommand::Wrong(text)) => text.lines().next().unwrap_or_default().to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(said(""), "a command is missing");
        assert_eq!(said("fly"), "no such command: fly");
        assert_eq!(said("acp --listen x"), "no such option: --listen");
        assert_eq!(said("serve --data"), "a value is missing after --data");
        assert!(matches!(parse("serve --help"), Err(RequestedCommand::Help(_))));
        assert_eq!(parse("--version"), Err(RequestedCommand::Version));
    }
}
