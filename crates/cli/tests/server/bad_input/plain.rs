//! Rows whose input is bytes and whose answers can be written down beside them.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::bad_input::{TestServer, is_answer};

const NONE: &str = "0199aaaa-0000-7000-8000-000000000000";

/// One row, with all its variants.
pub(crate) struct Case {
    pub(crate) row: &'static str,
    stage: Stage,
    /// Each is sent as it is; `SESSION` and `FOLDER` stand for the real ones.
    lines: Vec<Vec<u8>>,
    answers: Vec<Answer>,
}

/// When the bytes come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    Ready,
}

/// What must come back: the id, and one of these codes; 0 is a result.
struct Answer(Value, &'static [i64]);

/// Sends a row's bytes and compares the answers.
pub(crate) async fn run(case: &Case) -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.acp(&["--standalone"])?;
    let mut session = String::new();
    if case.stage == Stage::Ready {
        agent.client.initialize().await?;
        session = agent.client.new_session(&server.folder).await?;
    }
    let from = agent.client.seen.len();
    for line in &case.lines {
        agent.client.write_raw(&filled(line, &session, &server)).await?;
    }
    agent.client.write_raw(b"\n{\"jsonrpc\":\"2.0\",\"id\":\"bell\",\"method\":\"_bell\"}\n").await?;
    let answers =
        |seen: &[Value]| -> Vec<Value> { seen.iter().filter(|message| is_answer(message)).cloned().collect() };
    while answers(&agent.client.seen[from..]).len() <= case.answers.len() {
        agent.client.receive().await?.context("the agent hung up")?;
    }
    let mut got = answers(&agent.client.seen[from..]);
    got.retain(|answer| answer["id"] != "bell");
    ensure!(fits(&got, &case.answers), "answers: {got:?}");
    if case.stage == Stage::Fresh {
        let greeted = got.iter().any(|answer| answer["result"]["protocolVersion"].is_number());
        if !greeted {
            agent.client.initialize().await?;
        }
    }
    server.probe(&mut agent).await?;
    let (status, _) = agent.leave().await?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Every row of this kind.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = json_rows();
    cases.extend(rpc_rows());
    cases.extend(acp_rows());
    cases
}

fn json_rows() -> Vec<Case> {
    let broken = |count: usize| (0..count).map(|_| Answer(Value::Null, &[-32700])).collect::<Vec<_>>();
    let numbers = ["NaN", "Infinity", "01", "+1", ".5", "0x10"].map(|number| list(&format!(r#"{{"n":{number}}}"#)));
    let utf8 = [&b"\xff\xfe"[..], b"\xc0\x80", b"\xed\xa0\x80"]
        .map(|bytes| [br#"{"id":1,"method":""#, bytes, b"\"}"].concat());
    let members = (0..200_000).map(|index| format!(r#""m{index}":1"#)).collect::<Vec<_>>().join(",");
    let version = |version: &str| request("v", "initialize", &format!(r#"{{"protocolVersion":{version}}}"#));
    let utf16: Vec<u8> = list("{}").iter().flat_map(|byte| [*byte, 0]).chain(*b"\n").collect();
    let escapes = format!("\"/{}\"", "\\u0061".repeat(2_000_000));
    let cwd = |value: &str| request("c", "session/new", &format!(r#"{{"cwd":{value},"mcpServers":[]}}"#));
    vec![
        row("J01", Stage::Ready, [br#"{"jsonrpc":"2.0","id":1,"method":"#.to_vec()], broken(1)),
        row("J02", Stage::Ready, [b"".to_vec(), b"   ".to_vec(), b"\r".to_vec()], vec![]),
        row("J04", Stage::Ready, [b"{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"session/list\"}".to_vec()], broken(2)),
        row("J05", Stage::Ready, utf8, broken(3)),
        row("J07", Stage::Ready, numbers, broken(6)),
        row("J08", Stage::Fresh, ["99999999999999999999", "1e400"].map(version), vec![bad("v"), bad("v")]),
        row("J10", Stage::Ready, [[b"\xef\xbb\xbf", list("{}").as_slice()].concat()], broken(1)),
        row("J11", Stage::Ready, [utf16], broken(1)),
        row("J13", Stage::Ready, [list(&format!("{{{members}}}"))], vec![Answer(json!("l"), &[-32602, 0])]),
        row("J16", Stage::Ready, nul_lines(), vec![bad("n"), bad("p"), Answer(json!("t"), &[0])]),
        row(
            "J17",
            Stage::Ready,
            [cwd(&"9".repeat(10 << 20)), cwd(&escapes)],
            vec![Answer(json!("c"), &[-32602]), Answer(json!("c"), &[-32602])],
        ),
    ]
}

fn rpc_rows() -> Vec<Case> {
    let raw = |text: &str| text.as_bytes().to_vec();
    let invalid = |id: Value| Answer(id, &[-32600]);
    let nameless =
        ["42", "null", "[]", r#""""#].map(|method| raw(&format!(r#"{{"jsonrpc":"2.0","id":5,"method":{method}}}"#)));
    let versions =
        ["\"1.0\"", "2.0"].map(|version| raw(&format!(r#"{{"jsonrpc":{version},"id":3,"method":"session/list"}}"#)));
    let missing = raw(r#"{"id":3,"method":"session/list"}"#);
    let long = raw(&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"session/list"}}"#, "i".repeat(1 << 20)));
    let large = raw(r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"session/list"}"#);
    let notify = |method: &str| raw(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#));
    let extra = raw(r#"{"jsonrpc":"2.0","id":"l","method":"session/list","params":{"more":[1]},"_meta":{},"x":1}"#);
    let cancel =
        |id: &str| raw(&format!(r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#));
    vec![
        row("R02", Stage::Ready, ["[]", "[1,2]"].map(raw), vec![invalid(Value::Null), invalid(Value::Null)]),
        row(
            "R03",
            Stage::Ready,
            [&versions[..], &[missing]].concat(),
            vec![invalid(json!(3)), invalid(json!(3)), Answer(json!(3), &[0])],
        ),
        row("R05", Stage::Ready, [raw(r#"{"jsonrpc":"2.0","id":4}"#)], vec![invalid(json!(4))]),
        row("R06", Stage::Ready, nameless, (0..4).map(|_| invalid(json!(5))).collect()),
        row("R08", Stage::Ready, [notify("no/such"), notify("session/nothing")], vec![]),
        row(
            "R09",
            Stage::Ready,
            [notify("$/x"), request("d", "$/x", "{}"), request("u", "_ext/x", "{}")],
            vec![unknown("d"), unknown("u")],
        ),
        row(
            "R11",
            Stage::Ready,
            [raw(r#"{"jsonrpc":"2.0","id":null,"method":"session/list"}"#)],
            vec![invalid(Value::Null)],
        ),
        row("R12", Stage::Ready, [long, large], vec![invalid(Value::Null), invalid(Value::Null)]),
        row("R15", Stage::Ready, ["[1]", "\"x\"", "7"].map(list), vec![bad("l"), bad("l"), bad("l")]),
        row("R17", Stage::Ready, [extra], vec![Answer(json!("l"), &[0])]),
        row("R18", Stage::Ready, [raw(r#"{"jsonrpc":"2.0","id":777,"result":{}}"#)], vec![]),
        row("R21", Stage::Ready, ["888", "1", "\"x\""].map(cancel), vec![]),
        row(
            "R23",
            Stage::Ready,
            [
                notify("session/update"),
                request("u", "session/update", "{}"),
                request("p", "session/request_permission", "{}"),
            ],
            vec![unknown("u"), unknown("p")],
        ),
        row(
            "R24",
            Stage::Ready,
            [raw("Welcome to bash!"), raw("[INFO] started")],
            vec![Answer(Value::Null, &[-32700]), Answer(Value::Null, &[-32700])],
        ),
    ]
}

fn acp_rows() -> Vec<Case> {
    let version = |version: u16| request("v", "initialize", &format!(r#"{{"protocolVersion":{version}}}"#));
    let new = request("s", "session/new", r#"{"cwd":"FOLDER","mcpServers":[]}"#);
    let nowhere = format!(
        r#"{{"sessionId":"{NONE}","cwd":"FOLDER","mcpServers":[],"prompt":[{{"type":"text","text":"hi"}}],"modeId":"ask"}}"#
    );
    let strangers = ["prompt", "load", "resume", "set_mode", "close"]
        .map(|method| request(method, &format!("session/{method}"), &nowhere));
    let lost = ["prompt", "load", "resume", "set_mode", "close"].map(|method| Answer(json!(method), &[-32002]));
    let folders = ["relative", "FOLDER/absent", "FOLDER/a-file", "/tmp\\u0000x", &format!("/{}", "d".repeat(5000))];
    let cwd = folders.map(|path| format!(r#"{{"cwd":"{path}","mcpServers":[]}}"#));
    let names = ["a", "b", "c", "d", "e"];
    let cwd: Vec<_> = names.iter().zip(&cwd).map(|(id, params)| request(id, "session/new", params)).collect();
    let options = [
        ("session/set_mode", r#"{"sessionId":"SESSION","modeId":"no_such_mode"}"#),
        ("session/set_model", r#"{"sessionId":"SESSION","modelId":"no such model"}"#),
        ("session/set_config_option", r#"{"sessionId":"SESSION","configId":"nothing","value":"x"}"#),
        ("session/set_config_option", r#"{"sessionId":"SESSION","configId":"mode","value":7}"#),
    ];
    vec![
        row("L01", Stage::Fresh, [new], vec![Answer(json!("s"), &[-32600])]),
        row(
            "L02",
            Stage::Fresh,
            [version(1), version(1)],
            vec![Answer(json!("v"), &[0]), Answer(json!("v"), &[-32600])],
        ),
        row("L04", Stage::Fresh, [version(99)], vec![Answer(json!("v"), &[0])]),
        row("L05", Stage::Ready, strangers, lost.into_iter().collect()),
        row("L11", Stage::Ready, cwd, names.map(bad).into_iter().collect()),
        row(
            "L13",
            Stage::Ready,
            options.map(|(method, params)| request("o", method, params)),
            (0..4).map(|_| bad("o")).collect(),
        ),
    ]
}

/// NUL in a name, in a path, and in a text, where it is allowed.
fn nul_lines() -> Vec<Vec<u8>> {
    let prompt = r#"{"sessionId":"SESSION","prompt":[{"type":"text","text":"a\u0000b"}]}"#;
    vec![
        request("n", "session/set_mode", r#"{"sessionId":"SESSION","modeId":"a\u0000"}"#),
        request("p", "session/new", r#"{"cwd":"FOLDER\u0000","mcpServers":[]}"#),
        request("t", "session/prompt", prompt),
    ]
}

fn row(row: &'static str, stage: Stage, lines: impl Into<Vec<Vec<u8>>>, answers: Vec<Answer>) -> Case {
    Case { row, stage, lines: lines.into(), answers }
}

fn list(params: &str) -> Vec<u8> {
    request("l", "session/list", params)
}

fn request(id: &str, method: &str, params: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#).into_bytes()
}

fn bad(id: &str) -> Answer {
    Answer(json!(id), &[-32602])
}

fn unknown(id: &str) -> Answer {
    Answer(json!(id), &[-32601])
}

fn filled(line: &[u8], session: &str, server: &TestServer) -> Vec<u8> {
    let mut bytes = line.to_vec();
    // Only text holds the words; bytes that are no text stay as they are.
    if let Ok(text) = std::str::from_utf8(line) {
        let folder = server.folder.to_string_lossy();
        bytes = text.replace("SESSION", session).replace("FOLDER", &folder).into_bytes();
    }
    bytes.push(b'\n');
    bytes
}

/// True if the answers are these, in any order between different ids.
fn fits(got: &[Value], wanted: &[Answer]) -> bool {
    let mut left: Vec<&Answer> = wanted.iter().collect();
    let all = got.iter().all(|answer| {
        let code = answer["error"]["code"].as_i64().unwrap_or(0);
        let found = left.iter().position(|Answer(id, codes)| *id == answer["id"] && codes.contains(&code));
        found.map(|at| left.remove(at)).is_some()
    });
    all && left.is_empty()
}
