//! The examples, as a user's client sees them.

use gander::Part;
use gander::testing::Harness;
use serde_json::json;

#[allow(dead_code)]
#[path = "../../examples/echo.rs"]
mod echo;
#[allow(dead_code)]
#[path = "../../examples/images.rs"]
mod images;
#[allow(dead_code)]
#[path = "../../examples/notes.rs"]
mod notes;

#[cfg(feature = "model-example")]
#[allow(dead_code)]
#[path = "../../examples/model.rs"]
mod model;

/// One grey pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test]
async fn echo_says_what_it_hears() {
    let harness = Harness::start(echo::agent()).await.unwrap();
    assert_eq!(harness.new_session().await.unwrap().prompt("hello").await.unwrap().text, "You said: hello");
}

#[tokio::test]
async fn notes_are_written_only_if_somebody_agrees() {
    let harness = Harness::start(notes::agent()).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let turn = session.prompt("write todo milk").await.unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason.as_str()), ("Nothing was changed.", "refusal"));
    assert_eq!(turn.tool_calls[0].status, "failed");
    assert!(session.prompt("read todo").await.unwrap().text.starts_with("I have no such note"));
    session.allow_permissions();
    let turn = session.prompt("write todo milk").await.unwrap();
    assert_eq!((turn.text.as_str(), turn.questions.as_slice()), ("todo is written.", &["Write todo".to_owned()][..]));
    assert_eq!(turn.plan, ["Write the note"]);
    let turn = session.prompt("read todo").await.unwrap();
    assert_eq!((turn.text.as_str(), turn.questions.len()), ("milk", 0));
    session.always_allow_permissions();
    assert!(session.prompt("delete todo").await.unwrap().text.contains("I forget"));
    assert!(session.prompt("read ../secret").await.unwrap_err().to_string().contains("not the name of a note"));
    assert!(session.prompt("dance").await.unwrap_err().to_string().contains("say: write NAME TEXT"));
}

#[tokio::test]
async fn images_are_described_and_commands_change_how() {
    let harness = Harness::start(images::agent()).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let prompt =
        |text: &str| [Part::text(text), Part::Image { mime: "image/png".to_owned(), data: DOT.to_owned(), uri: None }];
    let turn = session.prompt_parts(&prompt("what is this?")).await.unwrap();
    assert_eq!(turn.text, "PNG, 1 x 1 pixels, 70 bytes\n");
    assert_eq!(session.prompt_parts(&prompt("/size")).await.unwrap().text, "1x1");
    assert_eq!(session.prompt_parts(&prompt("/report dot.txt")).await.unwrap().text, "Saved as dot.txt");
    assert!(session.prompt("nothing").await.unwrap_err().to_string().contains("send an image along"));
    // The same over A2A: the artifact is one of its task.
    let file = json!({ "raw": DOT, "mediaType": "image/png" });
    let task = crate::send_a2a(&harness, "images", json!([{ "text": "/report dot.txt" }, file])).await;
    let artifacts = task["task"]["artifacts"].as_array().cloned().unwrap_or_default();
    assert!(artifacts.iter().any(|artifact| artifact["name"] == "dot.txt"), "{task:#}");
}

/// A server that answers as a provider does, with the last word of what it is asked.
#[cfg(feature = "model-example")]
async fn start_provider() -> std::net::SocketAddr {
    use gander::axum::{Json, Router, routing::post};
    let complete = async |Json(body): Json<serde_json::Value>| {
        let asked = body["messages"].as_array().and_then(|messages| messages.last().cloned()).unwrap_or_default();
        let text = asked["content"].to_string();
        let said = text.trim_matches(|letter: char| !letter.is_alphanumeric()).rsplit(' ').next().unwrap_or_default();
        let chunk = |delta: serde_json::Value, finish: Option<&str>| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            format!("data: {}\n\n", json!({ "id": "1", "object": "chat.completion.chunk", "choices": [choice] }))
        };
        let chunks = [chunk(json!({ "content": "heard " }), None), chunk(json!({ "content": said }), None)];
        let body = chunks.concat() + &chunk(json!({}), Some("stop")) + "data: [DONE]\n\n";
        ([("content-type", "text/event-stream")], body)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/chat/completions", post(complete));
    tokio::spawn(async move { gander::axum::serve(listener, router).await });
    address
}

#[cfg(feature = "model-example")]
#[tokio::test]
async fn the_model_of_another_crate_answers() {
    use genai::ServiceTarget;
    use genai::resolver::{AuthData, Endpoint};
    let address = start_provider().await;
    let at_provider = move |target: ServiceTarget| {
        let endpoint = Endpoint::from_owned(format!("http://{address}/v1/"));
        Ok(ServiceTarget { endpoint, auth: AuthData::from_single("none"), ..target })
    };
    rustls::crypto::ring::default_provider().install_default().ok(); // another test may have chosen it
    let client = genai::Client::builder().with_service_target_resolver_fn(at_provider).build().unwrap();
    let harness = Harness::start(model::agent(client, "gpt-4o-mini")).await.unwrap();
    let session = harness.new_session().await.unwrap();
    assert_eq!(session.prompt("say hello").await.unwrap().text, "heard hello");
    assert_eq!(session.prompt("say goodbye").await.unwrap().text, "heard goodbye");
}
