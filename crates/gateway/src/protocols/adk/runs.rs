//! Runs: begun with words or with answers, followed until they end or ask.

use std::sync::Arc;

use gander_domain::caller::Caller;
use gander_domain::{
    Command, Entry, Event as Fact, IfBusy, Part, QuestionId, RunId, Seq, SessionId, SessionView, ToolCallId,
};
use gander_runtime::hub::{Ack, FollowedBatch, Follower, HubError};
use gander_services::{Services, prompts};
use gander_store::clock::SystemIds;
use gander_store::{DeltaForm, Limit, RunState, StoreError};
use gander_wire::adk::content::FunctionResponse;
use gander_wire::adk::question::read_adk_reply;
use gander_wire::adk::requests::check_adk_id;
use gander_wire::adk::run_meta::adk_run_meta_of_remote_agent;
use gander_wire::adk::{
    AdkBodyProblem, AdkEvent, AdkProjection, AdkRefusal, AdkRunRequest, NewAdkSession, PROTOCOL_NAME, RunInput,
    RunStage, StreamMode,
};
use gander_wire::check::{self, BadMedia};
use serde_json::{Map, Value, json};

use super::settings::OnLeave;
use super::{Adk, AppUser, LocatedSession, adk_hub_refusal, adk_run_origin, adk_session_refusal, adk_store_refusal};

/// What became of a request to run.
pub enum BeginOutcome {
    /// A run that can be followed.
    Watching(Box<AdkRunSubscription>),
    /// The answer was given before: there is nothing to tell.
    Nothing,
    /// An answer to what nobody asked.
    Unknown(String),
}

/// A run that is being followed. Dropping it is leaving.
pub struct AdkRunSubscription {
    telling: AdkProjection,
    follower: Follower,
    /// Just answered: until the log says so, the run only seems to ask.
    answered: Vec<QuestionId>,
    leaving: CancelRunOnDrop,
}

/// What answers mean.
enum ResponseMeaning {
    Answer(QuestionId, Box<Command>),
    /// It was answered before.
    Late,
    /// A call that this run made, long over, goes on with this.
    Result(Option<RunId>, FunctionResponse),
    Unknown(String),
}

impl Adk {
    /// Begins a run, or goes on with the one that asked.
    pub async fn begin_run(&self, caller: &Caller, request: AdkRunRequest) -> Result<BeginOutcome, AdkRefusal> {
        let app_user = AppUser { app: request.address.app.clone(), user: request.address.user.clone() };
        let app = self.find_app(&app_user.app)?;
        if let RunInput::Parts(parts) = &request.said {
            check_run_media(parts, &self.services.with_accepted_media(&app).takes)?;
        }
        let name = request.address.session.clone();
        let located = match self.find_session(caller, app_user.clone(), &name).await {
            Err(error) if error.status == 404 && self.settings.like_adk2goose => {
                let new = NewAdkSession { id: Some(check_adk_id(&name)?), ..NewAdkSession::default() };
                self.create_session(caller, app_user.clone(), new).await?;
                self.find_session(caller, app_user, &name).await?
            }
            Err(error) if error.status == 404 => {
                return Err(AdkRefusal::new(404, format!("Session not found: {name}")));
            }
            found => found?,
        };
        self.check_invocation(caller, &located, &request).await?;
        match request.said.clone() {
            RunInput::Parts(parts) => self.prompt_session(caller, &located, request, parts, None).await,
            RunInput::Nothing => self.prompt_session(caller, &located, request, Vec::new(), None).await,
            RunInput::Responses(responses) => self.respond_to_functions(caller, &located, request, responses).await,
        }
    }

    /// A client that names an invocation means that one: an answer must be to what it asks, and one that is over is not
    /// run again, be it with other words. Words for one that is not over are a prompt like any other.
    async fn check_invocation(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        request: &AdkRunRequest,
    ) -> Result<(), AdkRefusal> {
        let Some(name) = request.invocation.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(());
        };
        let unknown = || AdkRefusal::new(404, format!("Invocation not found: {name}"));
        let run: RunId = name.strip_prefix("e-").and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
        let row = self.services.sessions.find_run(caller, run).await.map_err(adk_session_refusal)?;
        let row = row.filter(|row| row.session == located.session).ok_or_else(unknown)?;
        match (&request.said, row.state) {
            (RunInput::Responses(responses), _) => self.check_same_invocation(located, responses, run).await,
            (RunInput::Parts(_), RunState::Ended(..)) => {
                let message = format!("Invocation is finished, leave invocationId out to begin another: {name}");
                Err(AdkRefusal::new(400, message))
            }
            (RunInput::Parts(_), RunState::Awaiting | RunState::Queued | RunState::Running) => Ok(()),
            (RunInput::Nothing, RunState::Ended(..)) => {
                Err(AdkRefusal::new(400, format!("Invocation is finished and has nothing to resume: {name}")))
            }
            (RunInput::Nothing, RunState::Awaiting) => {
                Err(AdkRefusal::new(409, format!("Invocation waits for an answer: {name}")))
            }
            (RunInput::Nothing, RunState::Queued | RunState::Running) => {
                Err(AdkRefusal::new(409, format!("Invocation is under way: {name}")))
            }
        }
    }

    /// Questions of the session that are known are those of this run. Another session's are as unknown as none.
    async fn check_same_invocation(
        &self,
        located: &LocatedSession,
        responses: &[FunctionResponse],
        run: RunId,
    ) -> Result<(), AdkRefusal> {
        for response in responses {
            let Some(id) = response.id.strip_prefix("adk-").and_then(|id| id.parse::<QuestionId>().ok()) else {
                continue;
            };
            let row =
                self.services.sessions.find_question_in(located.session, id).await.map_err(adk_session_refusal)?;
            if row.is_some_and(|row| row.run.is_some_and(|asker| asker != run)) {
                return Err(AdkRefusal::new(400, format!("the invocation e-{run} did not ask this: {}", response.id)));
            }
        }
        Ok(())
    }

    async fn prompt_session(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        request: AdkRunRequest,
        parts: Vec<Part>,
        continues: Option<RunId>,
    ) -> Result<BeginOutcome, AdkRefusal> {
        self.switch_session_to_app(caller, located).await?;
        let AdkRunRequest { said, content, streaming, state_delta, custom_metadata, run_config, live, .. } = request;
        let run = RunId::make(&mut SystemIds);
        let mut note = Map::new();
        match content.filter(|_| parts.is_empty() || run_needs_original_parts(&parts)) {
            Some(content) => drop(note.insert("content".to_owned(), content)),
            None if parts.is_empty() => drop(note.insert("silent".to_owned(), json!(true))),
            None => {}
        }
        if !state_delta.is_empty() {
            note.insert("stateDelta".to_owned(), Value::Object(state_delta.clone()));
            self.set_state(caller, located, state_delta, Some(json!({ PROTOCOL_NAME: { "run": run } }))).await?;
        }
        if !custom_metadata.is_empty() {
            note.insert("customMetadata".to_owned(), Value::Object(custom_metadata));
        }
        if live {
            note.insert("live".to_owned(), json!(true));
        }
        if let Some(run) = continues {
            note.insert("continues".to_owned(), json!(run));
        }
        note.extend(adk_run_meta_of_remote_agent(run_config, &said));
        // Without a message the agent goes on with what was said.
        let parts = if parts.is_empty() { vec![Part::text("Continue.")] } else { parts };
        let parts = prompts::prepare_prompt(&self.services, caller, located.session, parts)
            .await
            .map_err(|error| AdkRefusal::new(400, error.to_string()))?;
        let meta = Some(json!({ PROTOCOL_NAME: note }));
        let view = self.load_view(caller, located.session).await?;
        let follower = self.services.hub.follow_live(located.session, view.head);
        let command =
            Command::Prompt { run, origin: adk_run_origin(caller), parts, if_busy: IfBusy::QueueOrSupersede, meta };
        let leaving = self.cancel_on_drop(caller, located.session, run);
        self.services
            .hub
            .execute_command(caller, located.session, command, Ack::Committed)
            .await
            .map_err(|error| adk_hub_refusal(&error))?;
        let telling = self.run_projection(run, &view, streaming);
        Ok(BeginOutcome::Watching(Box::new(AdkRunSubscription { telling, follower, answered: Vec::new(), leaving })))
    }

    /// All answers are understood before the first one counts.
    async fn respond_to_functions(
        &self,
        caller: &Caller,
        located: &LocatedSession,
        request: AdkRunRequest,
        responses: Vec<FunctionResponse>,
    ) -> Result<BeginOutcome, AdkRefusal> {
        let view = self.services.sessions.view_to_answer(caller, located.session).await.map_err(adk_session_refusal)?;
        let (mut answers, mut results, mut continues) = (Vec::new(), Vec::new(), None);
        for response in responses {
            match self.classify_response(caller, &view, response).await? {
                ResponseMeaning::Answer(question, command) => answers.push((question, *command)),
                ResponseMeaning::Late => {}
                ResponseMeaning::Result(run, response) => {
                    continues = continues.or(run);
                    results.push(response);
                }
                ResponseMeaning::Unknown(id) => return Ok(BeginOutcome::Unknown(id)),
            }
        }
        match (&view.run, answers.is_empty(), results.is_empty()) {
            (Some(_), false, _) => self.answer_questions(caller, &view, answers, request.streaming).await,
            (_, _, false) => {
                let text = |result: &FunctionResponse| {
                    let FunctionResponse { name, response, id } = result;
                    Part::text(format!("The call {id} of {name} gave this in the end: {response}"))
                };
                let parts = results.iter().map(text).collect();
                self.prompt_session(caller, located, request, parts, continues).await
            }
            (_, _, true) => Ok(BeginOutcome::Nothing),
        }
    }

    async fn classify_response(
        &self,
        caller: &Caller,
        view: &SessionView,
        response: FunctionResponse,
    ) -> Result<ResponseMeaning, AdkRefusal> {
        let Some(id) = response.id.strip_prefix("adk-").and_then(|id| id.parse::<QuestionId>().ok()) else {
            return Ok(ResponseMeaning::Unknown(response.id));
        };
        if let Some(question) = view.run.as_ref().and_then(|run| run.find_question(id)) {
            let meta = json!({ PROTOCOL_NAME: { "response": response.response, "name": response.name } });
            let reply = read_adk_reply(question, &response.response)?;
            let (origin, meta) = (adk_run_origin(caller), Some(Box::new(meta)));
            return Ok(ResponseMeaning::Answer(id, Box::new(Command::Answer { question: id, reply, origin, meta })));
        }
        let row = self.services.sessions.find_question_in(view.session, id).await.map_err(adk_session_refusal)?;
        if row.is_some() {
            return Ok(ResponseMeaning::Late);
        }
        let called = self.find_call_run(view.session, ToolCallId::new(id.uuid())).await?;
        Ok(match called {
            Some(run) => ResponseMeaning::Result(run, response),
            None => ResponseMeaning::Unknown(response.id),
        })
    }

    async fn answer_questions(
        &self,
        caller: &Caller,
        view: &SessionView,
        answers: Vec<(QuestionId, Command)>,
        streaming: bool,
    ) -> Result<BeginOutcome, AdkRefusal> {
        let Some(active) = &view.run else { return Ok(BeginOutcome::Nothing) };
        let mut telling = self.run_projection(active.id, view, streaming);
        let mut position = Seq(active.from.0.saturating_sub(1));
        while position < view.head {
            let page =
                self.services.hub.store().read(view.session, position, Limit::default(), DeltaForm::Joined).await;
            let page = page.map_err(adk_store_refusal)?;
            let Some(last) = page.last() else { break };
            position = last.seq;
            page.iter().for_each(|entry| telling.project_entry(entry, &mut Vec::new()));
        }
        let follower = self.services.hub.follow_live(view.session, position);
        let leaving = self.cancel_on_drop(caller, view.session, active.id);
        let mut answered = Vec::new();
        for (question, command) in answers {
            match self.services.hub.execute_command(caller, view.session, command, Ack::Committed).await {
                Ok(_) => answered.push(question),
                Err(HubError::Refused(gander_domain::CommandError::NoSuchQuestion(_))) => {} // somebody was faster
                Err(error) => return Err(adk_hub_refusal(&error)),
            }
        }
        if answered.is_empty() {
            return Ok(BeginOutcome::Nothing);
        }
        Ok(BeginOutcome::Watching(Box::new(AdkRunSubscription { telling, follower, answered, leaving })))
    }

    /// The run of a call, if there was such a call.
    async fn find_call_run(&self, session: SessionId, id: ToolCallId) -> Result<Option<Option<RunId>>, AdkRefusal> {
        let mut position = Seq::ZERO;
        loop {
            let page = self.services.hub.store().read(session, position, Limit::default(), DeltaForm::Joined).await;
            let page = page.map_err(adk_store_refusal)?;
            let Some(last) = page.last() else { return Ok(None) };
            position = last.seq;
            let is_it = |entry: &&Entry| matches!(&entry.event, Fact::ToolCalled { call } if call.id == id);
            if let Some(entry) = page.iter().find(is_it) {
                return Ok(Some(entry.run));
            }
        }
    }

    fn run_projection(&self, run: RunId, view: &SessionView, streaming: bool) -> AdkProjection {
        let telling = AdkProjection::new(run, &view.settings.agent, run_stream_mode(streaming));
        telling.with_long_running(&self.long_running_tools(&view.settings.agent))
    }

    fn cancel_on_drop(&self, caller: &Caller, session: SessionId, run: RunId) -> CancelRunOnDrop {
        let cancels = self.settings.on_leave == OnLeave::Cancel;
        CancelRunOnDrop {
            services: Arc::clone(&self.services),
            caller: caller.clone(),
            session,
            run,
            cancels,
            over: false,
        }
    }
}

impl AdkRunSubscription {
    /// What happens next; an empty list is no end. `None` once everything is told.
    pub async fn next_events(&mut self) -> Result<Option<Vec<AdkEvent>>, AdkRefusal> {
        if self.is_complete() {
            return Ok(None);
        }
        let gone = || adk_hub_refusal(&HubError::Gone(self.leaving.session));
        let batch = self.follower.next_batch().await;
        let batch: FollowedBatch = batch.map_err(|error: StoreError| adk_store_refusal(error))?.ok_or_else(gone)?;
        let mut events = Vec::new();
        for entry in batch.iter() {
            self.telling.project_entry(entry, &mut events);
            if self.is_complete() {
                break;
            }
        }
        self.leaving.over = self.is_complete();
        Ok(Some(events))
    }

    /// How far the run is.
    pub fn stage(&self) -> &RunStage {
        self.telling.stage()
    }

    /// True if everything is told: the run ended, or it asks.
    pub fn is_complete(&self) -> bool {
        match self.telling.stage() {
            RunStage::Ended(_) => true,
            RunStage::Asking => !self.answered.iter().any(|question| self.telling.is_open_question(*question)),
            RunStage::Waiting | RunStage::Running => false,
        }
    }
}

/// A client that goes before the end, where that is set to stop the run.
struct CancelRunOnDrop {
    services: Arc<Services>,
    caller: Caller,
    session: SessionId,
    run: RunId,
    cancels: bool,
    over: bool,
}

impl Drop for CancelRunOnDrop {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.over || !self.cancels || self.services.hub.is_draining() {
            return;
        }
        let (services, caller, session) = (Arc::clone(&self.services), self.caller.clone(), self.session);
        let command = Command::Cancel { run: Some(self.run), origin: adk_run_origin(&self.caller) };
        runtime.spawn(async move {
            if let Err(error) = services.hub.execute_command(&caller, session, command, Ack::Committed).await {
                tracing::debug!(%error, "nothing to cancel");
            }
        });
    }
}

fn run_stream_mode(streaming: bool) -> StreamMode {
    if streaming { StreamMode::Pieces } else { StreamMode::Whole }
}

/// What our own parts cannot show again as it was sent.
fn run_needs_original_parts(parts: &[Part]) -> bool {
    parts.iter().any(|part| !matches!(part, Part::Text { .. } | Part::Image { .. } | Part::Audio { .. }))
        || parts.iter().any(|part| matches!(part, Part::Text { text } if text.starts_with("The call adk-")))
}

/// Refuses what the agent has no use for.
fn check_run_media(parts: &[Part], takes: &[String]) -> Result<(), AdkRefusal> {
    let problem = |(index, error): (usize, BadMedia)| {
        let location = vec![json!("body"), json!("newMessage"), json!("parts"), json!(index)];
        AdkBodyProblem { kind: "value_error", location, message: error.to_string(), input: Value::Null }
    };
    let bad = |(index, part)| check::check_media_for(part, takes).err().map(|error| problem((index, error)));
    let problems: Vec<AdkBodyProblem> = parts.iter().enumerate().filter_map(bad).collect();
    if problems.is_empty() { Ok(()) } else { Err(AdkRefusal::unprocessable(&problems)) }
}
