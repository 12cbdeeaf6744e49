//! A2A requests in both versions: what is understood, and how each binding says that something is wrong.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use gander_domain::{Choice, ChoiceKind, Question, QuestionKind, QuestionOrigin, Reply};
use gander_testkit::build;
use gander_wire::a2a::card::{self, CardAccess, CardDetails};
use gander_wire::a2a::json_rpc::{RpcRefusal, RpcRequest};
use gander_wire::a2a::{
    A2aDialect, A2aError, A2aErrorKind, A2aMessage, A2aMethod, A2aPart, A2aPartContent, A2aRequest, A2aRole,
    PushConfig, content, question,
};
use serde_json::{Value, json};

fn message(id: &str, parts: Vec<A2aPart>) -> A2aMessage {
    A2aMessage {
        message_id: id.to_owned(),
        context_id: None,
        task_id: None,
        role: A2aRole::User,
        parts,
        metadata: None,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

fn open(body: &Value, version: &str) -> Result<(Value, A2aDialect, A2aRequest), Box<RpcRefusal>> {
    RpcRequest::parse(body.to_string().as_bytes(), version)?.into_request()
}

fn sent(request: A2aRequest) -> gander_wire::a2a::requests::SendRequest {
    match request {
        A2aRequest::Send(send) | A2aRequest::Stream(send) => *send,
        other => panic!("not a message: {other:?}"),
    }
}

#[test]
fn the_same_message_is_read_from_both_versions() {
    let v1 = json!({ "jsonrpc": "2.0", "id": "a", "method": "SendMessage", "params": {
        "message": { "message_id": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }, { "raw": "aGk=",
            "mediaType": "image/png", "filename": "a.png" }, { "data": { "x": 1 } }], "unknown": 1, "metadata": null },
        "configuration": { "returnImmediately": true, "historyLength": 2 } } });
    let v03 = json!({ "jsonrpc": "2.0", "id": "a", "method": "message/send", "params": {
        "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hi" },
            { "kind": "file", "file": { "bytes": "aGk=", "mimeType": "image/png", "name": "a.png" } },
            { "kind": "data", "data": { "x": 1 } }] },
        "configuration": { "blocking": false, "historyLength": 2 } } });
    let (id, dialect, request) = open(&v1, "1.0").unwrap();
    assert_eq!((id, dialect), (json!("a"), A2aDialect::V1));
    let send = sent(request);
    let file = A2aPart {
        filename: Some("a.png".to_owned()),
        media_type: Some("image/png".to_owned()),
        ..A2aPart::new(A2aPartContent::Raw("aGk=".to_owned()))
    };
    assert_eq!(send.message, message("m", vec![A2aPart::text("hi"), file, A2aPart::data(json!({ "x": 1 }))]));
    assert_eq!((send.at_once, send.history, &send.push), (true, Some(2), &None));
    assert_eq!(sent(open(&v03, "").unwrap().2), send);
}

#[test]
fn the_protobuf_json_of_v03_is_read_too() {
    let params = json!({ "request": { "message_id": "m", "role": "ROLE_USER", "content": [{ "text": "hi" },
        { "data": { "data": { "x": 1 } } }] }, "configuration": { "blocking": true } });
    let Value::Object(params) = params else { unreachable!() };
    let send = sent(A2aRequest::from_params(gander_wire::a2a::A2aMethod::Send, A2aDialect::V03Rest, params).unwrap());
    assert_eq!(send.message, message("m", vec![A2aPart::text("hi"), A2aPart::data(json!({ "x": 1 }))]));
    let params = json!({ "parent": "tasks/t", "config_id": "c", "config": { "name": "n",
        "push_notification_config": { "url": "http://x/", "token": "k" } } });
    let Value::Object(params) = params else { unreachable!() };
    let request = A2aRequest::from_params(gander_wire::a2a::A2aMethod::SetPush, A2aDialect::V03Rest, params).unwrap();
    let config = PushConfig {
        id: "c".to_owned(),
        task_id: "t".to_owned(),
        url: "http://x/".to_owned(),
        token: Some("k".to_owned()),
        authentication: None,
    };
    assert_eq!(request, A2aRequest::SetPush(config));
}

#[test]
fn every_wrong_field_is_told_at_once() {
    let body = json!({ "id": 1, "method": "SendMessage", "params": { "message": { "role": "user", "parts": [{}] } } });
    let refusal = open(&body, "1.0").unwrap_err();
    let fields: Vec<&str> = refusal.error.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["message.messageId", "message.role", "message.parts[0]."]);
    let response = refusal.response();
    assert_eq!(response["error"]["code"], -32602);
    assert_eq!(response["error"]["data"][0]["reason"], "INVALID_PARAMS");
    assert_eq!(response["error"]["data"][1]["fieldViolations"][0]["field"], "message.messageId");
}

/// In every binding: REST and gRPC read their parameters in the same place.
#[test]
fn a_request_that_is_a_response_too_is_neither() {
    for extra in ["result", "error"] {
        let mut body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "x" } });
        body[extra] = json!({});
        let refusal = open(&body, "1.0").unwrap_err();
        assert_eq!((refusal.response()["error"]["code"].clone(), refusal.id), (json!(-32600), json!(1)), "{extra}");
    }
}

#[test]
fn ids_have_an_end() {
    let long = "x".repeat(7_000);
    let message = |field: &str, id: &str| {
        let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
        message[field] = json!(id);
        json!({ "message": message })
    };
    for (method, field, params) in [
        (A2aMethod::Get, "id", json!({ "id": long })),
        (A2aMethod::Cancel, "id", json!({ "id": long })),
        (A2aMethod::Send, "message.messageId", message("messageId", &long)),
        (A2aMethod::Send, "message.contextId", message("contextId", &long)),
        (A2aMethod::Send, "message.taskId", message("taskId", &long)),
    ] {
        let Value::Object(params) = params else { unreachable!("written so above") };
        let error = A2aRequest::from_params(method, A2aDialect::V1, params).unwrap_err();
        assert_eq!(error.violations[0].field, field);
        assert!(error.to_string().len() < 1_000, "the id is said back");
    }
}

#[test]
fn what_is_no_request_has_its_code() {
    let send = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "id": "x" } });
    let cases: Vec<(Vec<u8>, &str, Value, i64)> = vec![
        (b"{nope".to_vec(), "1.0", Value::Null, -32700),
        (b"\"\\ud800\"".to_vec(), "1.0", Value::Null, -32700),
        (b"[]".to_vec(), "1.0", Value::Null, -32600),
        (json!({ "jsonrpc": "2.0", "id": 1 }).to_string().into_bytes(), "1.0", json!(1), -32600),
        (json!({ "jsonrpc": "1.0", "id": 1, "method": "GetTask" }).to_string().into_bytes(), "1.0", json!(1), -32600),
        (json!({ "id": 1.5, "method": "GetTask" }).to_string().into_bytes(), "1.0", Value::Null, -32600),
        (send("Nope").to_string().into_bytes(), "1.0", json!(1), -32601),
        (json!({ "id": 1, "method": "GetTask", "params": [1] }).to_string().into_bytes(), "1.0", json!(1), -32602),
        (json!({ "id": 1, "method": "GetTask", "params": {} }).to_string().into_bytes(), "1.0", json!(1), -32602),
        (send("GetTask").to_string().into_bytes(), "9.9", json!(1), -32009),
        (send("GetTask").to_string().into_bytes(), "", json!(1), -32009),
    ];
    for (body, version, id, code) in cases {
        let refusal = RpcRequest::parse(&body, version).and_then(RpcRequest::into_request).unwrap_err();
        let found = (refusal.id.clone(), refusal.response()["error"]["code"].clone());
        assert_eq!(found, (id, json!(code)), "{}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn errors_of_1_0_are_internal_errors_to_0_3() {
    let error = A2aError::new(A2aErrorKind::VersionNotSupported, "no");
    assert_eq!(error.json_rpc_error(A2aDialect::V03), json!({ "code": -32603, "message": "no", "data": null }));
    assert_eq!(A2aError::no_such_task("t").json_rpc_error(A2aDialect::V03)["code"], -32001);
    let rest = A2aError::no_such_task("t").rest_body();
    assert_eq!(
        rest,
        json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "task not found: t", "details": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org", "metadata": {} }] } })
    );
}

#[test]
fn lists_have_sizes_states_and_times() {
    let list = |params: Value| open(&json!({ "id": 1, "method": "ListTasks", "params": params }), "1.0");
    for bad in [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 101 }),
        json!({ "status": "working" }),
        json!({ "statusTimestampAfter": "soon" }),
        json!({ "historyLength": -1 }),
    ] {
        assert_eq!(list(bad.clone()).unwrap_err().error.kind, A2aErrorKind::InvalidParams, "{bad}");
    }
    let A2aRequest::List(list) = list(json!({ "pageSize": 2, "status": "TASK_STATE_WORKING" })).unwrap().2 else {
        panic!("not a list")
    };
    assert_eq!((list.page_size, list.state.map(|state| state.name()), list.artifacts), (2, Some("working"), false));
}

#[test]
fn content_that_no_agent_reads_is_refused() {
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let raw = |mime: &str| if mime == "image/png" { picture } else { "aGk=" };
    let part = |mime: &str| A2aPart {
        media_type: Some(mime.to_owned()),
        ..A2aPart::new(A2aPartContent::Raw(raw(mime).to_owned()))
    };
    let takes = ["image/*".to_owned()];
    let refused =
        content::a2a_prompt_parts(&message("m", vec![part("application/x-unsupported")]), &takes).unwrap_err();
    assert_eq!(refused.kind, A2aErrorKind::ContentTypeNotSupported);
    for read in ["text/x-rust; charset=utf-8", "application/json", "image/png"] {
        assert!(content::a2a_prompt_parts(&message("m", vec![part(read)]), &takes).is_ok(), "{read}");
    }
    assert!(content::a2a_prompt_parts(&message("m", vec![part("x/y")]), &["*/*".to_owned()]).is_ok());
    let broken = A2aPart::new(A2aPartContent::Raw("%%%".to_owned()));
    assert_eq!(
        content::a2a_prompt_parts(&message("m", vec![broken]), &takes).unwrap_err().kind,
        A2aErrorKind::InvalidParams
    );
}

#[test]
fn words_and_data_answer_questions() {
    let permission = build::permission(build::question_id(1), build::call_id(1));
    let words = |text: &str| question::read_a2a_reply(&permission, &message("m", vec![A2aPart::text(text)]));
    let allow = Reply::Chosen { choice: "allow".to_owned(), kind: ChoiceKind::AllowOnce };
    assert_eq!(words(" Allow "), Ok(allow.clone()));
    assert_eq!(words("yes"), Ok(allow.clone()));
    assert_eq!(words("maybe").unwrap_err().kind, A2aErrorKind::InvalidParams);
    let data = message("m", vec![A2aPart::data(json!({ "choice": "allow" }))]);
    assert_eq!(question::read_a2a_reply(&permission, &data), Ok(allow));
    let form = Question {
        ask: QuestionKind::Form {
            schema: json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] }),
        },
        call: None,
        origin: QuestionOrigin::Parked,
        ..permission
    };
    let filled = |content| Ok(Reply::Filled { content });
    assert_eq!(
        question::read_a2a_reply(&form, &message("m", vec![A2aPart::text("Ada")])),
        filled(json!({ "name": "Ada" }))
    );
    assert_eq!(
        question::read_a2a_reply(&form, &message("m", vec![A2aPart::text("{\"a\":1}")])),
        filled(json!({ "a": 1 }))
    );
    let none: Vec<Choice> = Vec::new();
    let nothing = Question { ask: QuestionKind::Choose { choices: none }, ..form };
    assert!(question::read_a2a_reply(&nothing, &message("m", vec![A2aPart::text("yes")])).is_err());
}

/// Mere words answer what holds a task up; what is asked aside is answered by its name alone.
#[test]
fn words_are_no_answer_to_what_is_asked_aside() {
    let held = build::permission(build::question_id(2), build::call_id(1));
    let aside = Question { id: build::question_id(1), call: None, origin: QuestionOrigin::NonBlocking, ..held.clone() };
    let open = [aside.clone(), held.clone()];
    assert_eq!(question::a2a_answered_question(&open, &message("m", vec![A2aPart::text("yes")])), Some(&held));
    assert_eq!(question::a2a_answered_question(&open[..1], &message("m", vec![A2aPart::text("yes")])), None);
    let named = message("m", vec![A2aPart::data(json!({ "question": aside.id, "choice": "allow" }))]);
    assert_eq!(question::a2a_answered_question(&open, &named), Some(&aside));
}

#[test]
fn one_card_serves_both_versions() {
    let manifest = gander_domain::AgentManifest::new("a", "A", "d");
    let place = CardDetails {
        commands: gander_domain::SlashCommand::of_every_session(),
        url: "http://h/a2a".to_owned(),
        grpc: Some("h:1".to_owned()),
        version: "1".to_owned(),
        access: CardAccess::Token,
        push: true,
    };
    let card = card::agent_card(&manifest, &place);
    assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 5);
    assert_eq!((&card["url"], &card["protocolVersion"]), (&json!("http://h/a2a"), &json!("0.3.0")));
    let new = card::agent_card_in_dialect(A2aDialect::V1, &manifest, &place);
    assert!(new.get("url").is_none() && new["capabilities"]["extendedAgentCard"] == true);
    let old = card::agent_card_in_dialect(A2aDialect::V03, &manifest, &place);
    assert!(old.get("supportedInterfaces").is_none() && old["preferredTransport"] == "JSONRPC");
}
