//! What an agent is told that was not there, or not all the time: sessions change their agents, and agents lose sessions.

use gander_domain::{Context, Message, MessageId, Notice, Part, Role, Severity};

use super::transcript::transcript_text;

/// How an agent got a session of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// It begins: nothing was said there.
    New,
    /// The agent still has what was said to it.
    Resumed,
    /// It once had it and has lost it.
    Lost,
}

/// The richest form in which an agent takes what was said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryForm {
    /// As messages.
    Structured,
    /// As text before the prompt.
    Transcript,
    /// It is set to be told nothing.
    Withheld,
}

/// What was said that an agent does not know, and how it is told.
pub(super) struct HandOver<'a> {
    opened: Opened,
    unseen: Vec<&'a Message>,
    form: HistoryForm,
}

impl<'a> HandOver<'a> {
    /// `last_prompt` is the last message that the agent was prompted with, if it was.
    pub(super) fn new(context: &'a Context, opened: Opened, last_prompt: Option<MessageId>, form: HistoryForm) -> Self {
        Self { opened, unseen: hand_over_unseen_messages(context, opened, last_prompt), form }
    }

    /// The messages, for an agent that takes them as such.
    pub(super) fn messages(&self) -> &[&'a Message] {
        match self.form {
            HistoryForm::Structured => &self.unseen,
            HistoryForm::Transcript | HistoryForm::Withheld => &[],
        }
    }

    /// The text before the prompt, for an agent that takes nothing better.
    pub(super) fn transcript(&self) -> Option<String> {
        match self.form {
            HistoryForm::Transcript => transcript_text(self.transcript_reason(), self.unseen.iter().copied()),
            HistoryForm::Structured | HistoryForm::Withheld => None,
        }
    }

    /// Why the agent is told: one that lost a session was there, and no other agent need have been.
    fn transcript_reason(&self) -> &'static str {
        match self.opened {
            Opened::New => "This conversation began before you came to it.",
            Opened::Resumed => "This conversation went on with another agent since your last turn.",
            Opened::Lost => "You took part in this conversation before, and your session of it is lost.",
        }
    }

    /// What the log says of it.
    pub(super) fn notice(&self, agent: &str) -> Option<Notice> {
        let told = match self.form {
            HistoryForm::Structured => "it was given the history",
            HistoryForm::Transcript => "it was given the transcript",
            HistoryForm::Withheld => "it starts without what was said before",
        };
        let title = match self.opened {
            Opened::Lost => format!("Context lost: {agent} no longer has this session, {told}"),
            Opened::New | Opened::Resumed if self.unseen.is_empty() => return None,
            Opened::New | Opened::Resumed => format!("Handed over to {agent}: {told}"),
        };
        Some(Notice { severity: Severity::Warning, title, detail: None })
    }
}

/// The parts of the prompt of the active run.
pub(super) fn hand_over_prompt_parts(context: &Context) -> Vec<Part> {
    let own = &context.messages[context.run_start_index()..];
    let prompt = own.iter().find(|message| message.role == Role::User);
    prompt.map(|message| message.parts.clone()).unwrap_or_default()
}

/// What came after an agent's own last turn is what another agent was told and said.
fn hand_over_unseen_messages(context: &Context, opened: Opened, last_prompt: Option<MessageId>) -> Vec<&Message> {
    let before = &context.messages[..context.run_start_index()];
    let unseen = match opened {
        Opened::New | Opened::Lost => before,
        Opened::Resumed => {
            let own = last_prompt.and_then(|prompt| before.iter().position(|message| message.id == prompt));
            let after = own.map_or(&[][..], |own| &before[own + 1..]);
            let next = after.iter().position(|message| message.role == Role::User && !message.is_by_session());
            next.map_or(&[][..], |next| &after[next..])
        }
    };
    unseen.iter().map(|message| &**message).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use gander_testkit::build;

    use super::*;

    fn context(roles: &[Role]) -> (Context, Vec<MessageId>) {
        let mut ids = gander_testkit::ids::CountingIds::default();
        let messages: Vec<Arc<Message>> = roles
            .iter()
            .map(|role| Arc::new(Message::text(MessageId::make(&mut ids), *role, format!("{role:?}"))))
            .collect();
        let init = build::birth(build::session(1));
        let mut context = Context::empty(init.settings, init.workspace, Vec::new());
        let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
        (context.messages, context.run_first_message) = (messages, ids.last().copied());
        (context, ids)
    }

    #[test]
    fn an_agent_that_comes_back_is_told_what_another_one_heard_and_said() {
        let roles = [Role::User, Role::Agent, Role::User, Role::Agent, Role::User];
        let (context, ids) = context(&roles);
        let unseen = |opened, last| {
            let hand_over = HandOver::new(&context, opened, last, HistoryForm::Structured);
            hand_over.messages().iter().map(|message| message.id).collect::<Vec<_>>()
        };
        assert_eq!(unseen(Opened::New, None), ids[..4]);
        assert_eq!(unseen(Opened::Lost, Some(ids[2])), ids[..4]);
        assert_eq!(unseen(Opened::Resumed, Some(ids[0])), ids[2..4]);
        assert_eq!(unseen(Opened::Resumed, Some(ids[2])), []);
        let nothing = HandOver::new(&context, Opened::Resumed, Some(ids[2]), HistoryForm::Transcript);
        assert_eq!((nothing.notice("a"), nothing.transcript()), (None, None));
        let told = HandOver::new(&context, Opened::New, None, HistoryForm::Transcript);
        assert_eq!(told.notice("a").unwrap().title, "Handed over to a: it was given the transcript");
        let begins = |opened, last| {
            let hand_over = HandOver::new(&context, opened, last, HistoryForm::Transcript);
            hand_over.transcript().unwrap().split_inclusive('.').next().unwrap().to_owned()
        };
        assert!(told.transcript().unwrap().contains("User: User"));
        assert_eq!(begins(Opened::New, None), "This conversation began before you came to it.");
        let since = "This conversation went on with another agent since your last turn.";
        assert_eq!(begins(Opened::Resumed, Some(ids[0])), since);
        let lost = "You took part in this conversation before, and your session of it is lost.";
        assert_eq!(begins(Opened::Lost, Some(ids[2])), lost);
    }
}
