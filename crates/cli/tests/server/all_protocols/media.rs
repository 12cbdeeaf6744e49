//! Pictures and sounds that no protocol takes, and one that each does: protocol × content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::all_protocols::protocols::TestSession;

/// The smallest picture.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    /// A picture of one byte too many.
    Large,
    /// A few bytes that would be ten gigabytes once unpacked.
    Bomb,
    /// A zip archive that claims to be a picture.
    Zip,
    /// The same, with its type in other letters.
    SpeltZip,
    /// A picture of no width.
    Nothing,
    /// No model of this agent hears.
    Sound,
    /// Nor does any see films.
    Film,
}

const CONTENTS: [Content; 7] =
    [Content::Large, Content::Bomb, Content::Zip, Content::SpeltZip, Content::Nothing, Content::Sound, Content::Film];

impl Content {
    fn mime(self) -> &'static str {
        match self {
            Self::Sound => "audio/wav",
            Self::Film => "video/mp4",
            Self::SpeltZip => "Image/PNG",
            Self::Large | Self::Bomb | Self::Zip | Self::Nothing => "image/png",
        }
    }

    fn data(self) -> String {
        let png = |width: u32, height: u32| {
            let head = b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR";
            [&head[..], &width.to_be_bytes(), &height.to_be_bytes(), &[8, 6, 0, 0, 0, 0, 0, 0, 0]].concat()
        };
        match self {
            Self::Large => STANDARD.encode([png(1, 1), vec![0; 10 << 20]].concat()),
            Self::Bomb => STANDARD.encode(png(50_000, 50_000)),
            Self::Nothing => STANDARD.encode(png(0, 5)),
            Self::Zip | Self::SpeltZip => "UEsDBBQAAAAIAA==".to_owned(),
            Self::Film => STANDARD.encode(b"\0\0\0\x18ftypmp42"),
            Self::Sound => STANDARD.encode(b"RIFF\x24\0\0\0WAVEfmt "),
        }
    }
}

const PROTOCOLS: [&str; 8] =
    ["acp", "acp_rest", "goose", "adk /run", "adk /run_sse", "adk artifact", "a2a REST", "a2a JSON-RPC"];

/// What a protocol says to this content: its status, and the code in its own error.
async fn told(test_session: &TestSession, protocol: &str, mime: &str, data: &str) -> anyhow::Result<(u16, Value)> {
    let kind = mime.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let inline = json!({ "inlineData": { "data": data, "mimeType": mime } });
    let adk = json!({
        "appName": "gander", "userId": "user", "sessionId": test_session.session,
        "newMessage": { "role": "user", "parts": [inline] },
    });
    let id = format!("m-{}", uuid::Uuid::now_v7());
    let part = json!({ "raw": data, "mediaType": mime });
    let message = json!({ "messageId": id, "role": "ROLE_USER", "contextId": test_session.session, "parts": [part] });
    let (path, body) = match protocol {
        "acp" => return acp(test_session, json!({ "type": kind, "data": data, "mimeType": mime })).await,
        "acp_rest" => {
            let part = json!({ "content_type": mime, "content": data, "content_encoding": "base64" });
            let input = json!([{ "role": "user", "parts": [part] }]);
            let run =
                json!({ "agent_name": "gander", "mode": "sync", "session_id": test_session.session, "input": input });
            ("/runs".to_owned(), run)
        }
        "goose" => {
            let content = json!([{ "type": kind, "data": data, "mimeType": mime }]);
            let message = json!({ "role": "user", "created": 1, "content": content, "metadata": {} });
            ("/reply".to_owned(), json!({ "session_id": test_session.session, "user_message": message }))
        }
        "adk /run" => ("/run".to_owned(), adk),
        "adk /run_sse" => ("/run_sse".to_owned(), adk),
        "adk artifact" => {
            let path = format!("/apps/gander/users/user/sessions/{}/artifacts", test_session.session);
            (path, json!({ "filename": "x", "artifact": inline }))
        }
        "a2a REST" => ("/a2a/message:send".to_owned(), json!({ "message": message })),
        "a2a JSON-RPC" => {
            let params = json!({ "message": message });
            ("/a2a".to_owned(), json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params }))
        }
        other => anyhow::bail!("no such protocol: {other}"),
    };
    let response = test_session.post(&path, &body).header("A2A-Version", "1.0").send().await?;
    let (status, text) = (response.status().as_u16(), response.text().await?);
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let code = match protocol {
        "acp_rest" => answer["code"].clone(),
        "adk /run" | "adk /run_sse" | "adk artifact" => answer["detail"][0]["type"].clone(),
        "a2a REST" => answer["error"]["details"][0]["reason"].clone(),
        "a2a JSON-RPC" => answer["error"]["code"].clone(),
        _ => Value::Null,
    };
    Ok((status, code))
}

async fn acp(test_session: &TestSession, block: Value) -> anyhow::Result<(u16, Value)> {
    let mut editor = test_session.editor().await?;
    let params = json!({ "sessionId": test_session.session, "prompt": [block] });
    let answer = editor.call("session/prompt", params).await;
    Ok(match answer {
        Ok(_) => (200, Value::Null),
        Err(error) => {
            (400, if error.to_string().contains("-32602") { json!(-32602) } else { json!(error.to_string()) })
        }
    })
}

/// What is refused, in each protocol's own form.
fn expected(protocol: &str, content: Content) -> (u16, Value) {
    let wrong_type = matches!(content, Content::Zip | Content::SpeltZip | Content::Sound | Content::Film);
    match protocol {
        "acp" => (400, json!(-32602)),
        "acp_rest" => (422, json!("invalid_input")),
        "goose" => (422, Value::Null),
        // An artifact is for people too: they hear and see.
        "adk artifact" if matches!(content, Content::Sound | Content::Film) => (200, Value::Null),
        "adk /run" | "adk /run_sse" | "adk artifact" => (422, json!("value_error")),
        "a2a REST" if wrong_type => (400, json!("CONTENT_TYPE_NOT_SUPPORTED")),
        "a2a REST" => (400, json!("INVALID_PARAMS")),
        _ if wrong_type => (200, json!(-32005)),
        _ => (200, json!(-32602)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_content_is_refused_at_every_protocol_in_its_own_form() -> anyhow::Result<()> {
    let (_root, server, test_session) = crate::all_protocols::test_server().await?;
    let before = server.launch.export(&test_session.session).await?.len();
    for content in CONTENTS {
        let data = content.data();
        for protocol in PROTOCOLS {
            let told = told(&test_session, protocol, content.mime(), &data).await?;
            assert_eq!(told, expected(protocol, content), "{protocol} × {content:?}");
        }
    }
    let log = server.launch.export(&test_session.session).await?;
    let artifacts = log.iter().filter(|entry| matches!(entry.event, gander_domain::Event::ArtifactSaved { .. }));
    assert_eq!(log.len() - artifacts.count(), before, "nothing of it was kept");
    for protocol in PROTOCOLS {
        let (status, code) = told(&test_session, protocol, "image/png", DOT).await?;
        assert_eq!((status, code.is_null()), (200, true), "{protocol}: {code}");
    }
    Ok(())
}
