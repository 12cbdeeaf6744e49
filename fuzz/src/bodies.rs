//! Bodies of requests: ACP-REST, A2A in its three bindings, goose, ADK.

use gander_wire::a2a::json_rpc::{RpcRequest, json_rpc_result_response};
use gander_wire::a2a::protobuf::{MessageType, read_protobuf, table, write_protobuf};
use gander_wire::a2a::requests::A2aMethod;
use gander_wire::a2a::{A2aDialect, A2aRequest, content as a2a_content, question as a2a_question};
use gander_wire::acp_rest::requests::{
    AcpRestRunRequest, ResumeRequest, check_acp_rest_cancel_request, read_acp_rest_history_message,
};
use gander_wire::acp_rest::types::AcpRestMessage;
use gander_wire::adk::evaluation::{AddSession, EvalCase, RunEvalRequest, evaluation_invocations, read_eval_set_id};
use gander_wire::adk::live::LiveInput;
use gander_wire::adk::requests::{read_adk_memory_session_id, read_adk_state_delta, read_adk_telemetry_consent};
use gander_wire::adk::{AdkRunRequest, NewAdkArtifact, NewAdkSession};
use gander_wire::goose::client::GoosedTurn;
use gander_wire::goose::requests::{read_goose_conversation, read_goose_prompt};
use gander_wire::json_check::check_json;
use serde_json::{Map, Value};

use crate::sample_session::{CountingIds, permission_question, run_id};

const A2A_METHODS: [A2aMethod; 11] = [
    A2aMethod::Send,
    A2aMethod::Stream,
    A2aMethod::Get,
    A2aMethod::List,
    A2aMethod::Cancel,
    A2aMethod::Subscribe,
    A2aMethod::SetPush,
    A2aMethod::GetPush,
    A2aMethod::ListPush,
    A2aMethod::DeletePush,
    A2aMethod::ExtendedCard,
];

/// Bodies of ACP-REST.
pub fn fuzz_acp_rest(data: &[u8]) {
    drop(check_json(data));
    if let Ok(request) = AcpRestRunRequest::from_body(data) {
        drop(format!("{request:?}"));
    }
    drop(ResumeRequest::from_body(run_id(), data));
    drop(check_acp_rest_cancel_request(run_id(), data));
    if let Ok(message) = serde_json::from_slice::<AcpRestMessage>(data) {
        drop(read_acp_rest_history_message(&message));
    }
}

/// Requests of A2A over JSON-RPC, of clients of each version.
pub fn fuzz_a2a_json_rpc(data: &[u8]) {
    for version in ["1.0", "0.3", ""] {
        let answer = match RpcRequest::parse(data, version).and_then(RpcRequest::into_request) {
            Ok((id, _, request)) => {
                use_a2a_request(&request);
                json_rpc_result_response(&id, Value::Null)
            }
            Err(refusal) => refusal.response(),
        };
        let id = serde_json::from_slice::<Value>(data).ok().and_then(|request| request.get("id").cloned());
        assert!(answer["id"].is_null() || Some(&answer["id"]) == id.as_ref(), "another id: {answer}");
    }
}

/// Bodies of A2A over HTTP and JSON: each as every method.
pub fn fuzz_a2a_rest(data: &[u8]) {
    let Ok(Value::Object(params)) = serde_json::from_slice(data) else { return };
    for dialect in [A2aDialect::V1, A2aDialect::V03Rest] {
        for method in A2A_METHODS {
            use_a2a_params(method, dialect, params.clone());
        }
    }
}

/// Messages of A2A over gRPC: what is read and written again is read the same.
pub fn fuzz_a2a_grpc(data: &[u8]) {
    let kinds: [(&MessageType, Option<A2aMethod>); 10] = [
        (&table::SEND_MESSAGE_REQUEST, Some(A2aMethod::Send)),
        (&table::GET_TASK_REQUEST, Some(A2aMethod::Get)),
        (&table::LIST_TASKS_REQUEST, Some(A2aMethod::List)),
        (&table::CANCEL_TASK_REQUEST, Some(A2aMethod::Cancel)),
        (&table::TASK_PUSH_NOTIFICATION_CONFIG, Some(A2aMethod::SetPush)),
        (&table::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST, Some(A2aMethod::GetPush)),
        (&table::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST, Some(A2aMethod::ListPush)),
        (&table::STREAM_RESPONSE, None),
        (&table::TASK, None),
        (&table::AGENT_CARD, None),
    ];
    let Some((first, bytes)) = data.split_first() else { return };
    let (kind, method) = kinds[usize::from(*first) % kinds.len()];
    let Ok(fields) = read_protobuf(kind, bytes) else { return };
    let written = write_protobuf(kind, &Value::Object(fields.clone()));
    let again = read_protobuf(kind, &written).expect("what was written can be read");
    let twice = write_protobuf(kind, &Value::Object(again.clone()));
    assert_eq!(written, twice, "{fields:?} became {again:?}");
    if let Some(method) = method {
        use_a2a_params(method, A2aDialect::V1, fields);
    }
}

fn use_a2a_params(method: A2aMethod, dialect: A2aDialect, params: Map<String, Value>) {
    match A2aRequest::from_params(method, dialect, params) {
        Ok(request) => use_a2a_request(&request),
        Err(error) => drop((error.json_rpc_error(dialect), error.rest_body())),
    }
}

fn use_a2a_request(request: &A2aRequest) {
    if let A2aRequest::Send(send) | A2aRequest::Stream(send) = request {
        let takes = ["text/plain".to_owned(), "image/*".to_owned()];
        drop(a2a_content::a2a_prompt_parts(&send.message, &takes));
        drop(a2a_content::a2a_message_meta(&send.message));
        let question = permission_question();
        drop(a2a_question::read_a2a_reply(question, &send.message));
    }
}

/// Messages that goose's clients send, and what a goose behind gander says.
pub fn fuzz_goose(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    drop(read_goose_prompt(&value));
    if let Some(messages) = value.as_array() {
        drop(read_goose_conversation(messages, &mut CountingIds::default()));
    }
    let mut turn = GoosedTurn::new("model");
    let mut ids = CountingIds::default();
    let events = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    for event in events {
        drop(turn.handle_event(event, &mut ids));
    }
    drop(turn.handle_stream_end("the end"));
}

/// Bodies and live frames of ADK.
pub fn fuzz_adk(data: &[u8]) {
    for refusal in [
        AdkRunRequest::from_body(data, None).err(),
        NewAdkSession::from_body(data).err(),
        NewAdkSession::from_named_body("s", data).err(),
        NewAdkArtifact::from_body(data).err(),
        read_adk_state_delta(data).err(),
        read_adk_memory_session_id(data).err(),
        read_adk_telemetry_consent(data).err(),
        read_eval_set_id(data).err(),
        EvalCase::from_body("e", data).map(|case| drop(case.invocations().map(evaluation_invocations))).err(),
        AddSession::from_body(data).err(),
        RunEvalRequest::from_body(data).err(),
    ]
    .into_iter()
    .flatten()
    {
        drop(refusal.response_body());
    }
    let address = ["app_name", "user_id", "session_id"].map(|name| (name.to_owned(), "x".to_owned()));
    let mut live = LiveInput::from_query(&address, 1 << 10).unwrap();
    for frame in data.split(|byte| *byte == b'\n') {
        drop(live.handle_frame(frame));
    }
}
