//! Every method of version 1 beyond the plain turn, and what `initialize` promises of them.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use gander_domain::{
    Accepted, AgentManifest, Command, CommandError, IfBusy, Message, MessageId, ModelChoice, Outcome, Part, Principal,
    Question, QuestionKind, QuestionOrigin, Reply, Report, ResetReason, Role, Roster, Seq, ServiceError,
    SessionCatalog, Settings, SettingsPatch, StopReason, ToolGate, Usage,
};
use gander_testkit::{CountingIds, SessionScript, build};
use gander_wire::acp::{AgentProfile, ArchiveFilter, Connection, Intent, ListFilter, LoginMethod, Presence};
use gander_wire::acp::{config_options, requests};
use serde_json::{Value, json};

use crate::common::{TestConnection, asking, catalog, code, profile, short, view};

const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

fn session() -> Value {
    json!({ "sessionId": build::session(1) })
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// A connection to an agent with this profile, introduced.
fn test_connection(profile: AgentProfile) -> TestConnection {
    let mut test_connection = TestConnection::fresh();
    test_connection.connection = Connection::new(profile, Principal::owner());
    test_connection.call("initialize", crate::common::hello());
    test_connection
}

/// What each advertised capability stands for: its place in `agentCapabilities`, a method and parameters.
fn methods() -> Vec<(&'static str, &'static str, Value)> {
    let opening = json!({ "sessionId": build::session(1), "cwd": "/w", "mcpServers": [] });
    let mcp = |kind: &str| json!({ "cwd": "/w", "mcpServers": [{ "type": kind, "name": "m", "url": "http://x", "headers": [] }] });
    let content = |block: Value| json!({ "sessionId": build::session(1), "prompt": [block] });
    vec![
        ("/loadSession", "session/load", opening.clone()),
        ("/sessionCapabilities/resume", "session/resume", opening.clone()),
        ("/sessionCapabilities/fork", "session/fork", opening.clone()),
        ("/sessionCapabilities/list", "session/list", json!({})),
        ("/sessionCapabilities/close", "session/close", session()),
        ("/sessionCapabilities/delete", "session/delete", session()),
        ("/sessionCapabilities/archive", "session/archive", session()),
        ("/sessionCapabilities/archive", "session/unarchive", session()),
        ("/sessionCapabilities/status", "session/status", session()),
        ("/sessionCapabilities/title", "session/set_title", json!({ "sessionId": build::session(1), "title": "t" })),
        (
            "/sessionCapabilities/additionalDirectories",
            "session/new",
            json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": ["/x"] }),
        ),
        (
            "/promptCapabilities/image",
            "session/prompt",
            content(json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" })),
        ),
        (
            "/promptCapabilities/audio",
            "session/prompt",
            content(json!({ "type": "audio", "mimeType": "audio/wav", "data": "UklGRg==" })),
        ),
        (
            "/promptCapabilities/embeddedContext",
            "session/prompt",
            content(json!({ "type": "resource", "resource": { "uri": "a:b", "text": "t" } })),
        ),
        ("/mcpCapabilities/http", "session/new", mcp("http")),
        ("/mcpCapabilities/sse", "session/new", mcp("sse")),
        ("/auth/logout", "logout", json!({})),
        ("/auth/status", "auth/status", json!({})),
        ("/providers", "providers/list", json!({})),
        ("/mcpCapabilities/acp", "session/new", mcp("acp")),
    ]
}

#[test]
fn initialize_promises_exactly_what_works() {
    let login = LoginMethod { id: "gander".to_owned(), name: "Gander".to_owned() };
    let rich = AgentProfile { audio: true, mcp_http: true, mcp_sse: true, logins: vec![login], ..profile() };
    for profile in [profile(), rich, AgentProfile::default()] {
        let mut advertised = 0;
        for (capability, method, params) in methods() {
            let mut test_connection = test_connection(profile.clone());
            let answer = test_connection.line();
            let promise = answer["result"]["agentCapabilities"].pointer(capability);
            let promised = promise.is_some_and(|promise| *promise != json!(false) && !promise.is_null());
            test_connection.call(method, params);
            let refused = test_connection.lines().iter().any(|line| line.get("error").is_some());
            assert_eq!(promised, !refused, "{capability} {method}");
            advertised += usize::from(promised);
        }
        assert!(advertised >= 12, "{advertised}");
    }
}

#[test]
fn a_logout_lasts_until_the_login_and_lets_go_of_everything() {
    let login = LoginMethod { id: "gander".to_owned(), name: "Gander".to_owned() };
    let mut test_connection = test_connection(AgentProfile { logins: vec![login], ..profile() });
    let hello = test_connection.line();
    assert_eq!(hello["result"]["authMethods"], json!([{ "id": "gander", "name": "Gander" }]));
    test_connection.call("session/new", json!({ "cwd": "/w", "mcpServers": [] }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    test_connection.prompt(test_connection.session(), build::run(5));
    test_connection.lines();
    test_connection.call("logout", json!({}));
    assert_eq!(short(&test_connection.lines()), ["error -32000", "result other"]);
    assert_eq!(test_connection.intent(), Intent::Detach { session: build::session(1) });
    test_connection.call("session/list", json!({}));
    assert_eq!(code(&test_connection.line()), -32000);
    test_connection.call("authenticate", json!({ "methodId": "other" }));
    assert_eq!(code(&test_connection.line()), -32602);
    test_connection.call("authenticate", json!({ "methodId": "gander" }));
    assert_eq!(test_connection.line()["result"], json!({}));
    test_connection.call("session/list", json!({}));
    assert!(matches!(test_connection.intent(), Intent::ListSessions { .. }));
}

#[test]
fn only_who_can_start_it_at_a_terminal_is_offered_the_setup() {
    let can_set_up = AgentProfile { setup: Some("/bin/gander".to_owned()), ..profile() };
    let offered = |profile: &AgentProfile, capabilities: Value| {
        let mut test_connection = TestConnection::fresh();
        test_connection.connection = Connection::new(profile.clone(), Principal::owner());
        test_connection.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
        let offered = test_connection.line()["result"]["authMethods"].clone();
        // Nobody has to use it.
        test_connection.call("session/list", json!({}));
        assert!(matches!(test_connection.intent(), Intent::ListSessions { .. }));
        test_connection.call("authenticate", json!({ "methodId": "setup" }));
        (offered, test_connection.line()["result"] == json!({}))
    };
    for none in [json!({}), json!({ "auth": { "terminal": false } }), json!({ "_meta": { "terminal-auth": "no" } })] {
        assert_eq!(offered(&can_set_up, none.clone()).0, json!([]), "{none}");
    }
    for able in [json!({ "auth": { "terminal": true } }), json!({ "_meta": { "terminal-auth": true } })] {
        let (methods, came_in) = offered(&can_set_up, able.clone());
        assert_eq!((&methods[0]["type"], &methods[0]["id"]), (&json!("terminal"), &json!("setup")), "{able} {methods}");
        assert_eq!(methods[0]["args"], json!(["setup"]));
        let started = json!({ "label": "Set up a model", "command": "/bin/gander", "args": ["setup"] });
        assert_eq!(methods[0]["_meta"], json!({ "terminal-auth": started }));
        assert!(came_in, "{able}");
        assert_eq!(offered(&profile(), able), (json!([]), false));
    }
}

#[test]
fn a_fork_is_answered_like_a_new_session() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/fork", json!({ "sessionId": build::session(9), "cwd": "/w" }));
    let Intent::ForkSession { ticket, session, params } = test_connection.intent() else { panic!("no fork") };
    assert_eq!((session, params.cwd.as_deref()), (build::session(9), Some("/w")));
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    let lines = test_connection.lines();
    assert_eq!(short(&lines), ["result other", "available_commands_update"]);
    assert_eq!(lines[0]["result"]["sessionId"], json!(build::session(1)));
    assert!(test_connection.connection.is_attached(build::session(1)));
}

#[test]
fn titles_are_trimmed_checked_and_answered() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/set_title", json!({ "sessionId": build::session(1), "title": "  My title " }));
    let Intent::Command { session, command, ticket: Some(ticket) } = test_connection.intent() else {
        panic!("no title")
    };
    assert_eq!((session, command), (build::session(1), Command::SetTitle { title: "My title".to_owned() }));
    test_connection.connection.handle_accepted(ticket, Accepted::Done);
    assert_eq!(test_connection.line()["result"], json!({ "title": "My title" }));
    for bad in [json!(""), json!("   "), json!("a\nb"), json!("x".repeat(201)), json!(null), json!(7)] {
        test_connection.call("session/set_title", json!({ "sessionId": build::session(1), "title": bad }));
        assert_eq!(code(&test_connection.line()), -32602);
    }
}

#[test]
fn a_session_is_put_away_taken_out_and_listed_accordingly() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.call("session/archive", session());
    let Intent::ArchiveSession { ticket, .. } = test_connection.intent() else { panic!("not archived") };
    test_connection.connection.handle_done(ticket);
    assert_eq!(test_connection.line()["result"], json!({}));
    assert!(!test_connection.connection.is_attached(build::session(1)));
    test_connection.call("session/unarchive", session());
    let Intent::Command { command, ticket: Some(ticket), .. } = test_connection.intent() else {
        panic!("not taken out")
    };
    assert_eq!(command, Command::Archive { archived: false });
    test_connection.connection.handle_accepted(ticket, Accepted::Done);
    assert_eq!(test_connection.line()["result"], json!({}));
    for (word, filter) in
        [("exclude", ArchiveFilter::Exclude), ("include", ArchiveFilter::Include), ("only", ArchiveFilter::Only)]
    {
        test_connection.call("session/list", json!({ "archived": word }));
        let Intent::ListSessions { filter: ListFilter { archived, .. }, .. } = test_connection.intent() else {
            panic!("no list")
        };
        assert_eq!(archived, filter);
    }
    test_connection.call("session/list", json!({ "archived": "sometimes" }));
    assert_eq!(code(&test_connection.line()), -32602);
}

#[test]
fn a_status_is_open_or_saved() {
    let mut test_connection = TestConnection::ready();
    for (presence, status) in [(Presence::Open, "open"), (Presence::Saved, "saved")] {
        test_connection.call("session/status", session());
        let Intent::SessionStatus { ticket, .. } = test_connection.intent() else { panic!("no status") };
        test_connection.connection.handle_status(ticket, presence);
        assert_eq!(test_connection.line()["result"], json!({ "status": status }));
    }
}

#[test]
fn the_answer_to_a_prompt_counts_what_its_turn_used() {
    let mut script = SessionScript::begin();
    let mut test_connection = TestConnection::open(&script.log);
    test_connection.prompt(test_connection.session(), build::run(5));
    script.prompt(build::run(5), IfBusy::Refuse).unwrap();
    let usage = Usage { model: "m".into(), input: 100, output: 20, cached: 60, thinking: 0, ..Usage::default() };
    script.report(build::run(5), Report::UsageAdded(usage.clone()));
    script.report(build::run(5), Report::UsageAdded(Usage { thinking: 7, cached: 0, ..usage }));
    script.report(build::run(5), END);
    test_connection.feed(&script.log);
    let usage = json!({ "totalTokens": 240, "inputTokens": 200, "outputTokens": 40, "thoughtTokens": 7, "cachedReadTokens": 60 });
    assert_eq!(test_connection.line()["result"], json!({ "stopReason": "end_turn", "usage": usage }));
}

#[test]
fn a_message_is_steered_into_a_running_turn_and_not_told_to_its_sender() {
    let mut script = SessionScript::begin();
    let mut here = TestConnection::open(&script.log);
    let mut there = TestConnection::open(&script.log);
    script.prompt(build::run(5), IfBusy::Refuse).unwrap();
    here.feed(&script.log);
    there.feed(&script.log);
    here.lines();
    there.lines();
    let head = script.log.len();
    here.call("_session/steering", json!({ "sessionId": build::session(1), "prompt": text("left!") }));
    let Intent::Command { command, ticket: Some(ticket), .. } = here.intent() else { panic!("not steered") };
    assert!(matches!(command, Command::Prompt { if_busy: IfBusy::Steer, .. }));
    let accepted = script.command(command).unwrap();
    here.connection.handle_accepted(ticket, accepted);
    assert_eq!(here.line()["result"], json!({ "outcome": "injected" }));
    here.feed(&script.log[head..]);
    there.feed(&script.log[head..]);
    assert_eq!((short(&here.lines()), short(&there.lines())), (vec![], vec!["user_message_chunk".to_owned()]));
}

#[test]
fn steering_without_a_turn_begins_one_or_asks_for_a_prompt() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let mut params = json!({ "sessionId": build::session(1), "prompt": text("x") });
    test_connection.call("_session/steering", params.clone());
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("not steered") };
    test_connection.connection.handle_accepted(ticket, Accepted::Started(build::run(5)));
    assert_eq!(test_connection.line()["result"], json!({ "outcome": "startedNewTurn" }));
    params["_meta"] = json!({ "steering": { "idleBehavior": "promptRequired" } });
    test_connection.call("_session/steering", params);
    assert_eq!(test_connection.line()["result"], json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }));
    assert_eq!(test_connection.connection.poll_intent(), None);
}

#[test]
fn a_command_is_what_would_have_been_typed() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let mut prompted = |params: Value| {
        test_connection.call("session/prompt", params);
        let Intent::Command { command: Command::Prompt { parts, meta, .. }, .. } = test_connection.intent() else {
            panic!("no prompt")
        };
        (parts, requests::read_named_command_request(meta.as_ref()).map(str::to_owned))
    };
    for typed in ["/clear", "/unknown", "/clear the table", "/", "what is /clear?"] {
        let params = json!({ "sessionId": build::session(1), "prompt": text(typed) });
        assert_eq!(prompted(params), (vec![Part::text(typed)], None), "the session knows what is meant");
    }
    let named = |name: &str, input: &str, prompt: Value| {
        let command = json!({ "name": name, "input": input });
        json!({ "sessionId": build::session(1), "prompt": prompt, "command": command })
    };
    let say = (vec![Part::text("/say it")], Some("say".to_owned()));
    assert_eq!(prompted(named("say", "it", json!([]))), say);
    assert_eq!(prompted(named("/say", "it", text("/say it"))), say, "it was typed too");
    let beside = (vec![Part::text("/say it"), Part::text("twice")], Some("say".to_owned()));
    assert_eq!(prompted(named("say", "it", text("twice"))), beside);
    let clear = (vec![Part::text("/clear")], Some("clear".to_owned()));
    assert_eq!(prompted(named("clear", "", text("all of it"))), clear, "the session's own take nothing else");
}

#[test]
fn a_title_set_in_the_middle_of_a_run_is_answered_at_once() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let params = json!({ "sessionId": build::session(1), "prompt": text("/title New one") });
    test_connection.call("session/prompt", params);
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no command") };
    test_connection.connection.handle_accepted(ticket, Accepted::Done);
    assert_eq!(test_connection.line()["result"], json!({ "stopReason": "end_turn" }));
}

#[test]
fn a_command_that_there_is_not_is_refused_in_the_dialects_own_way() {
    let unknown = ServiceError::UnknownCommand("unknown".to_owned());
    let params = json!({ "sessionId": build::session(1), "prompt": [], "command": { "name": "unknown" } });
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.call("session/prompt", params);
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no command") };
    test_connection.connection.handle_refusal(ticket, &unknown);
    let error = test_connection.line()["error"].clone();
    assert_eq!(
        (&error["message"], &error["data"]["reason"]),
        (&json!("no such command: unknown"), &json!("unknown_command"))
    );
}

#[test]
fn a_busy_session_refuses_to_be_cleared() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.call("session/prompt", json!({ "sessionId": build::session(1), "prompt": text("/clear") }));
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no command") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::Command(CommandError::RunActive(build::run(5))));
    assert_eq!(test_connection.line()["error"]["data"]["reason"], "session_busy");
}

#[test]
fn an_address_that_was_visited_is_told_to_be_complete() {
    let mut script = SessionScript::begin();
    script.prompt(build::run(5), IfBusy::Refuse).unwrap();
    let question = Question {
        id: build::question_id(7),
        call: None,
        title: "Log in".to_owned(),
        ask: QuestionKind::Visit { url: "https://example.org/login".to_owned() },
        origin: QuestionOrigin::Held,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    };
    script.report(build::run(5), Report::Asked(question));
    let mut test_connection = TestConnection::open(&script.log);
    test_connection
        .send(&json!({ "jsonrpc": "2.0", "id": crate::common::question(), "result": { "action": "accept" } }));
    let Intent::Command { command, .. } = test_connection.intent() else { panic!("no answer") };
    let Command::Answer { reply: Reply::Filled { .. }, .. } = &command else { panic!("not accepted") };
    let head = script.log.len();
    script.command(command).unwrap();
    test_connection.feed(&script.log[head..]);
    let line = test_connection.line();
    assert_eq!(
        (&line["method"], &line["params"]),
        (&json!("elicitation/complete"), &json!({ "elicitationId": crate::common::question() }))
    );
    let mut late = TestConnection::loading(&script.log);
    late.feed(&script.log);
    assert!(!short(&late.lines()).contains(&"elicitation/complete".to_owned()));
}

#[test]
fn meta_is_kept_and_given_back() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/new", json!({ "cwd": "/w", "mcpServers": [], "_meta": { "k": [1] } }));
    let Intent::NewSession { ticket, params } = test_connection.intent() else { panic!("no session") };
    let kept = params.meta.unwrap();
    assert_eq!(kept, json!({ "acp": { "_meta": { "k": [1] } } }));
    let mut script = SessionScript::begin();
    script.log[0].meta = Some(Box::new(kept));
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    assert_eq!(test_connection.lines()[0]["result"]["_meta"], json!({ "k": [1] }));
    let mut late = TestConnection::loading(&script.log);
    late.feed(&script.log);
    assert_eq!(late.lines()[0]["result"]["_meta"], json!({ "k": [1] }));
}

#[test]
fn the_meta_of_a_prompt_is_shown_to_the_others() {
    let mut script = SessionScript::begin();
    let mut here = TestConnection::open(&script.log);
    let mut there = TestConnection::open(&script.log);
    let params = json!({ "sessionId": build::session(1), "prompt": text("hi"), "_meta": { "k": 2 } });
    here.call("session/prompt", params);
    let Intent::Command { command, .. } = here.intent() else { panic!("no prompt") };
    script.command(command).unwrap();
    there.feed(&script.log);
    assert_eq!(there.line()["params"]["update"]["_meta"], json!({ "k": 2 }));
}

#[test]
fn a_new_session_may_name_the_workspace_it_goes_on_in() {
    let mut test_connection = TestConnection::ready();
    let id = build::session(4).to_string();
    let named = |test_connection: &mut TestConnection, params: Value| {
        test_connection.call("session/new", params);
        let Intent::NewSession { params, .. } = test_connection.intent() else { panic!("no session") };
        params.reuse
    };
    assert_eq!(named(&mut test_connection, json!({ "_meta": { "sessionId": id } })), Some(id));
    assert_eq!(named(&mut test_connection, json!({ "device_id": "phone" })).as_deref(), Some("phone"));
    assert_eq!(named(&mut test_connection, json!({ "cwd": "/w" })), None);
    test_connection.call("session/new", json!({ "_meta": { "sessionId": "" } }));
    assert_eq!(code(&test_connection.line()), -32602);
}

#[test]
fn what_only_looks_is_dropped_when_it_is_taken_back() {
    let mut test_connection = TestConnection::ready();
    let list = test_connection.call("session/list", json!({}));
    let status = test_connection.call("session/status", session());
    let close = test_connection.call("session/close", session());
    for id in [list, status, close] {
        test_connection.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
    }
    let codes: Vec<i64> = test_connection.lines().iter().map(code).collect();
    assert_eq!(codes, [-32800, -32800]);
    while let Some(intent) = test_connection.connection.poll_intent() {
        match intent {
            Intent::ListSessions { ticket, .. } => test_connection.connection.handle_listed(ticket, vec![], None),
            Intent::SessionStatus { ticket, .. } => test_connection.connection.handle_status(ticket, Presence::Open),
            Intent::CloseSession { ticket, .. } => test_connection.connection.handle_done(ticket),
            _ => panic!("not wanted"),
        }
    }
    assert_eq!(test_connection.line()["id"], json!(close));
}

#[test]
fn a_forked_history_is_shown_whole_with_its_tools() {
    let mut script = asking();
    let message = Message::text(MessageId::new(build::run(60).uuid()), Role::User, "before");
    script.command(Command::Cancel { run: None, origin: build::origin() }).unwrap();
    script.report(build::run(5), END);
    script
        .command(Command::Reset { keep_to: Seq::ZERO, replacement: vec![message], reason: ResetReason::Replaced })
        .unwrap();
    let mut test_connection = TestConnection::loading(&script.log);
    test_connection.ids = CountingIds::after(900);
    test_connection.feed(&script.log);
    assert_eq!(short(&test_connection.lines()), ["user_message_chunk", "result other", "available_commands_update"]);
    let gate = ToolGate::Open; // a session that was forked goes on like any other
    script.prompt(build::run(70), IfBusy::Refuse).unwrap();
    script.report(build::run(70), Report::ToolWanted { call: build::shell(build::call_id(71)), gate });
    let head = test_connection.connection.view(build::session(1)).unwrap().head;
    let rest: Vec<_> = script.log.iter().filter(|entry| entry.seq > head).cloned().collect();
    test_connection.feed(&rest);
    assert_eq!(short(&test_connection.lines()), ["user_message_chunk", "tool_call", "tool_call_update"]);
}

#[test]
fn a_model_is_named_without_its_provider_if_only_one_has_it() {
    let model = |id: &str| ModelChoice { id: id.to_owned(), name: id.to_owned() };
    let ids = ["a/claude-sonnet-4-5-20250929", "a/big", "b/big", "b/small"];
    let catalog = SessionCatalog { models: ids.map(model).to_vec(), ..SessionCatalog::clone(&catalog()) };
    let settings = Settings::new("gander", "assistant");
    let chosen = |name: &str| config_options::config_option_patch(&catalog, &settings, "model", name);
    let ids = [("small", "b/small"), ("b/big", "b/big"), ("claude-sonnet-4-5", "a/claude-sonnet-4-5-20250929")];
    for (name, id) in ids {
        assert_eq!(chosen(name).unwrap().model.as_deref(), Some(id), "{name}");
    }
    let told = |name: &str| chosen(name).unwrap_err().to_string();
    assert!(told("big").contains("several models are called so, name one: a/big, b/big"), "{}", told("big"));
    assert!(told("claude").contains("unknown model 'claude'"), "{}", told("claude"));
}

#[test]
fn an_agent_that_no_mode_leads_to_is_an_option_of_its_own() {
    let settings = Settings::new("gander", "assistant");
    let shown = |catalog: &SessionCatalog, settings: &Settings| {
        let options = serde_json::to_value(config_options::config_options(catalog, settings)).unwrap();
        options.as_array().unwrap().iter().find(|option| option["id"] == "agent").cloned()
    };
    assert_eq!(shown(&catalog(), &settings), None);
    let far = AgentManifest::new("far", "Far", "elsewhere");
    let agents = catalog().roster.agents().iter().cloned().chain([Arc::new(far)]).collect();
    let catalog = SessionCatalog { roster: Arc::new(Roster::new(agents)), ..SessionCatalog::clone(&catalog()) };
    let option = shown(&catalog, &settings).unwrap();
    assert_eq!((&option["currentValue"], &option["options"][1]["value"]), (&json!("gander"), &json!("far")));
    let patch = config_options::config_option_patch(&catalog, &settings, "agent", "far").unwrap();
    assert_eq!((patch.agent.as_deref(), patch.mode.as_deref()), (Some("far"), Some("default")));
    let same = config_options::config_option_patch(&catalog, &settings, "agent", "gander").unwrap();
    assert_eq!(same, SettingsPatch::default());
    let refused = config_options::config_option_patch(&catalog, &settings, "agent", "none").unwrap_err().to_string();
    assert!(refused.contains("unknown agent 'none', available: gander, far"), "{refused}");
}
