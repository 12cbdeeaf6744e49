//! Which model is chosen when nobody chose one.
#![allow(clippy::unwrap_used)]

use gander_models::{Catalogue, DetectedModel, Probe, detect_model, probes_to_try};

use crate::server::{Server, hanging, status};

async fn choose(variables: &[(&str, &str)], probes: &[Probe]) -> DetectedModel {
    rustls::crypto::ring::default_provider().install_default().ok();
    let lookup = |key: &str| variables.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
    detect_model(&Catalogue::built_in(), &lookup, probes).await
}

fn probe(provider: &str, server: &Server, path: &str) -> Probe {
    Probe { provider: provider.into(), url: format!("{}{path}", server.url) }
}

#[tokio::test]
async fn a_key_decides_and_others_are_alternatives() {
    let choice = choose(&[("OPENAI_API_KEY", "k"), ("GEMINI_API_KEY", "k"), ("XAI_API_KEY", " ")], &[]).await;
    let wanted = DetectedModel {
        model: "openai/gpt-5.6-terra".into(),
        reason: "OPENAI_API_KEY is set".into(),
        alternatives: vec!["gemini/gemini-3.6-flash".into()],
    };
    assert_eq!(choice, wanted);
}

#[tokio::test]
async fn a_compatible_server_is_asked_for_its_models() {
    let server = Server::start(vec![status("200 OK", "", r#"{"data":[{"id":"gpt-4o"},{"id":"gpt-4o-mini"}]}"#)]).await;
    let choice = choose(&[("OPENAI_BASE_URL", &format!("{}/v1", server.url))], &[]).await;
    let reason = "OPENAI_BASE_URL is set".to_owned();
    assert_eq!(choice, DetectedModel { model: "openai/gpt-4o".into(), reason, alternatives: vec![] });
}

#[tokio::test]
async fn local_servers_are_found_and_strangers_are_not() {
    let tags = r#"{"models":[{"name":"nomic-embed-text:latest"},{"name":"qwen3:8b"},{"name":"llama3.2:latest"}]}"#;
    let ollama = Server::start(vec![status("200 OK", "", tags)]).await;
    let studio = Server::start(vec![status("200 OK", "", r#"{"data":[{"id":"gpt-oss-20b"}]}"#)]).await;
    let stranger = Server::start(vec![status("200 OK", "", "<html>a wiki</html>")]).await;
    let silent = Server::start(vec![hanging(status("200 OK", "", ""))]).await;
    let probes = [
        probe("vllm", &silent, "/v1/models"),
        probe("llamacpp", &stranger, "/v1/models"),
        probe("ollama", &ollama, "/api/tags"),
        probe("lmstudio", &studio, "/v1/models"),
    ];
    let choice = choose(&[], &probes).await;
    let wanted = DetectedModel {
        model: "ollama/qwen3:8b".into(),
        reason: format!("a local server answers at {}/api/tags", ollama.url),
        alternatives: vec!["ollama/llama3.2:latest".into(), "lmstudio/gpt-oss-20b".into()],
    };
    assert_eq!(choice, wanted);
}

#[tokio::test]
async fn with_nothing_found_it_is_plainly_the_demo() {
    let closed = Probe { provider: "ollama".into(), url: Server::closed().await };
    let choice = choose(&[], &[closed]).await;
    assert_eq!((choice.model.as_str(), choice.alternatives.len()), ("demo/demo", 0));
    assert!(choice.reason.contains("scripted demo, not a language model"), "{}", choice.reason);
}

#[test]
fn local_servers_are_looked_for_where_they_usually_are() {
    let lookup = |name: &str| (name == "OLLAMA_HOST").then(|| "box:9".to_owned());
    let urls: Vec<String> = probes_to_try(&Catalogue::built_in(), &lookup).into_iter().map(|probe| probe.url).collect();
    let wanted = [
        "http://box:9/api/tags",
        "http://127.0.0.1:1234/v1/models",
        "http://127.0.0.1:8080/v1/models",
        "http://127.0.0.1:8000/v1/models",
    ];
    assert_eq!(urls, wanted);
}
