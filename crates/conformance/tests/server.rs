//! The server with conformance agents, as a process: it lists them, and they answer.

use gander_testkit::harness::{Launch, PATIENCE, data};

#[tokio::test]
async fn conformance_agents_are_listed_and_answer() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let root = tempfile::tempdir()?;
    let binary = env!("CARGO_BIN_EXE_gander-conformance");
    let launch = Launch::demo(binary, data(root.path())?).with("GANDER_SERVER_OPEN", "[\"acp-rest\"]");
    let server = launch.serve().await?;
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let url = |path: &str| format!("http://{}{path}", server.address);
    let agents = client.get(url("/agents?limit=100")).send().await?.text().await?;
    for name in ["echo", "awaiter", "artifact-producer", "tck", "wire"] {
        assert!(agents.contains(&format!("\"name\":\"{name}\"")), "{name} is not listed");
    }
    let input = r#"[{"role":"user","parts":[{"content":"Howdy","content_type":"text/plain"}]}]"#;
    let body = format!(r#"{{"agent_name":"echo","mode":"sync","input":{input}}}"#);
    let request = client.post(url("/runs")).header("content-type", "application/json").body(body);
    let run = request.send().await?.text().await?;
    assert!(run.contains("\"completed\"") && run.contains("Howdy"), "{run}");
    server.kill().await?;
    Ok(())
}
