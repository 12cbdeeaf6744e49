//! What one principal sees of another through A2A: every method in JSON-RPC of two versions and in gRPC.

use gander_wire::a2a::protobuf::{self, MessageType, table};
use reqwest::Method;

use crate::scopes::a2a::METHODS;
use crate::scopes::belongings::{Belongings, made_up};
use crate::scopes::rows::{Filled, Template, body};
use crate::scopes::tenants::normal;
use crate::scopes::{SETS, TestServer};

/// A method, in which version, and what it is asked.
const CALLS: [(&str, &str, &str); 24] = [
    (
        "SendMessage",
        "1.0",
        r#"{"message":{"messageId":"m9","taskId":"{task}","role":"ROLE_USER","parts":[{"text":"allow_once"}]}}"#,
    ),
    (
        "SendMessage",
        "1.0",
        r#"{"message":{"messageId":"m9","contextId":"{context}","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
    ),
    (
        "SendMessage",
        "1.0",
        r#"{"message":{"messageId":"m9","contextId":"{deleted}","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
    ),
    (
        "SendStreamingMessage",
        "1.0",
        r#"{"message":{"messageId":"m9","taskId":"{task}","role":"ROLE_USER","parts":[{"text":"allow_once"}]}}"#,
    ),
    ("GetTask", "1.0", r#"{"id":"{task}"}"#),
    ("ListTasks", "1.0", r#"{"contextId":"{context}"}"#),
    ("CancelTask", "1.0", r#"{"id":"{task}"}"#),
    ("SubscribeToTask", "1.0", r#"{"id":"{task}"}"#),
    ("CreateTaskPushNotificationConfig", "1.0", r#"{"taskId":"{task}","id":"{push?}","url":"https://hook.invalid/y"}"#),
    ("GetTaskPushNotificationConfig", "1.0", r#"{"taskId":"{task}","id":"{push}"}"#),
    ("ListTaskPushNotificationConfigs", "1.0", r#"{"taskId":"{task}"}"#),
    ("DeleteTaskPushNotificationConfig", "1.0", r#"{"taskId":"{task}","id":"{push?}"}"#),
    ("GetExtendedAgentCard", "1.0", "{}"),
    (
        "message/send",
        "0.3",
        r#"{"message":{"kind":"message","messageId":"m9","taskId":"{task}","role":"user","parts":[{"kind":"text","text":"allow_once"}]}}"#,
    ),
    (
        "message/send",
        "0.3",
        r#"{"message":{"kind":"message","messageId":"m9","contextId":"{context}","role":"user","parts":[{"kind":"text","text":"x"}]}}"#,
    ),
    (
        "message/stream",
        "0.3",
        r#"{"message":{"kind":"message","messageId":"m9","taskId":"{task}","role":"user","parts":[{"kind":"text","text":"allow_once"}]}}"#,
    ),
    ("tasks/get", "0.3", r#"{"id":"{task}"}"#),
    ("tasks/cancel", "0.3", r#"{"id":"{task}"}"#),
    ("tasks/resubscribe", "0.3", r#"{"id":"{task}"}"#),
    (
        "tasks/pushNotificationConfig/set",
        "0.3",
        r#"{"taskId":"{task}","pushNotificationConfig":{"id":"{push?}","url":"https://hook.invalid/y"}}"#,
    ),
    ("tasks/pushNotificationConfig/get", "0.3", r#"{"id":"{task}","pushNotificationConfigId":"{push}"}"#),
    ("tasks/pushNotificationConfig/list", "0.3", r#"{"id":"{task}"}"#),
    ("tasks/pushNotificationConfig/delete", "0.3", r#"{"id":"{task}","pushNotificationConfigId":"{push?}"}"#),
    ("agent/getAuthenticatedExtendedCard", "0.3", "{}"),
];

/// How a call reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    JsonRpc,
    Grpc,
}

#[test]
fn every_method_has_a_row() {
    let known = METHODS.iter().flat_map(|(new, old, ..)| [*new, *old]).filter(|name| !name.is_empty());
    for name in known {
        assert!(CALLS.iter().any(|(method, ..)| *method == name), "nobody asks {name}");
    }
}

/// What a method takes, in protocol buffers.
fn takes(method: &str) -> &'static MessageType {
    match method {
        "SendMessage" | "SendStreamingMessage" => &table::SEND_MESSAGE_REQUEST,
        "GetTask" => &table::GET_TASK_REQUEST,
        "ListTasks" => &table::LIST_TASKS_REQUEST,
        "CancelTask" => &table::CANCEL_TASK_REQUEST,
        "SubscribeToTask" => &table::SUBSCRIBE_TO_TASK_REQUEST,
        "CreateTaskPushNotificationConfig" => &table::TASK_PUSH_NOTIFICATION_CONFIG,
        "GetTaskPushNotificationConfig" => &table::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        "ListTaskPushNotificationConfigs" => &table::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST,
        "DeleteTaskPushNotificationConfig" => &table::DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST,
        "GetExtendedAgentCard" => &table::GET_EXTENDED_AGENT_CARD_REQUEST,
        other => panic!("not a method of gRPC: {other}"),
    }
}

impl TestServer {
    async fn a2a(&self, token: &str, binding: Binding, (method, version): (&str, &str), params: &str) -> (u16, String) {
        match binding {
            Binding::JsonRpc => {
                let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                let headers = vec![("a2a-version", version.to_owned())];
                let request = Filled { address: "/a2a".to_owned(), headers, body: Some(call) };
                self.answer(token, &Method::POST, &request).await
            }
            Binding::Grpc => self.grpc(token, method, params).await,
        }
    }

    /// Status and message of a refusal; the bytes of anything else, unless it streams.
    async fn grpc(&self, token: &str, method: &str, params: &str) -> (u16, String) {
        let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
        let message = protobuf::write_protobuf(takes(method), &serde_json::from_str(params).unwrap());
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let bytes = [&[0], &length[..], &message].concat();
        let request = client.post(self.url(&format!("/lf.a2a.v1.A2AService/{method}"))).bearer_auth(token);
        let request = request.header("content-type", "application/grpc").header("te", "trailers").body(bytes);
        let response = loop {
            let response = request.try_clone().unwrap().header("a2a-version", "1.0").send().await.unwrap();
            if response.headers().get("grpc-status").is_none_or(|status| status != "14") {
                break response;
            }
        };
        let header =
            |name| response.headers().get(name).map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned());
        match (header("grpc-status"), header("grpc-message")) {
            (Some(status), message) => (status.parse().unwrap(), message.unwrap_or_default()),
            (None, _) if ["SendStreamingMessage", "SubscribeToTask"].contains(&method) => (0, "a stream".to_owned()),
            (None, _) => (0, String::from_utf8_lossy(&response.bytes().await.unwrap()).into_owned()),
        }
    }

    /// What is told about this id, and about one of the same form that nobody has.
    async fn both_tasks(
        &self,
        token: &str,
        binding: Binding,
        (method, version, template): (&str, &str, &Template),
        base: &Belongings,
        slot: &str,
    ) -> [(u16, String); 2] {
        let (real, fake) = (base.id(slot), made_up(base.id(slot)));
        let mut answers = Vec::new();
        for id in [fake.as_str(), real] {
            let params = template.filled("", |name| if name == slot { id } else { base.id(name) }).body.unwrap();
            let (status, text) = self.a2a(token, binding, (method, version), &params).await;
            // A task in protocol buffers holds its time in as many bytes as it needs.
            let timed = binding == Binding::Grpc && status == 0 && text.contains(id);
            assert!(!text.contains(&base.secret()) || token == base.token, "{method}: {text}");
            answers.push(if timed { (status, "a task".to_owned()) } else { normal((status, text), id, base) });
        }
        answers.reverse();
        answers.try_into().unwrap()
    }
}

fn calls() -> Vec<(Binding, &'static str, &'static str, Template)> {
    let bindings =
        |version| if version == "1.0" { &[Binding::JsonRpc, Binding::Grpc][..] } else { &[Binding::JsonRpc] };
    let call = |(method, version, params)| {
        bindings(version).iter().map(move |binding| (*binding, method, version, body(params)))
    };
    CALLS.into_iter().flat_map(call).collect()
}

#[tokio::test]
async fn every_id_counts_for_its_owner() {
    let server = TestServer::with(&[("GANDER_A2A_GRPC", "true")]).await;
    let (mut idle, mut tried) = (Vec::new(), 0);
    for (binding, method, version, template) in calls() {
        for slot in template.slots().iter().filter(|slot| slot.counts) {
            tried += 1;
            let ann = server.belongings_for(&format!("ann-{tried}"), |slot| template.names(slot)).await;
            let call = (method, version, &template);
            let [real, fake] = server.both_tasks(&ann.token, binding, call, &ann, &slot.name).await;
            if real == fake {
                idle.push(format!("{method} in {binding:?} with a {}: {real:?}", slot.name));
            }
        }
    }
    assert!(idle.is_empty(), "{} of {tried} show nothing:\n{}", idle.len(), idle.join("\n"));
}

#[tokio::test]
async fn anothers_tasks_look_made_up_to_every_method_with_every_scope() {
    let server = TestServer::with(&[("GANDER_A2A_GRPC", "true")]).await;
    let ann = server.belongings("ann").await;
    let mut leaks = Vec::new();
    for (name, scopes) in SETS {
        let bob = server.token("bob", scopes);
        for (binding, method, version, template) in calls() {
            for slot in template.slots() {
                let call = (method, version, &template);
                let [real, fake] = server.both_tasks(&bob, binding, call, &ann, &slot.name).await;
                if real != fake {
                    leaks.push(format!(
                        "{method} in {binding:?} with a {} as {name}:\n  {real:?}\n  {fake:?}",
                        slot.name
                    ));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}
