//! An example as a process: an editor's pipes, an HTTP client, two at once, and `kill -9`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The example `echo`, which cargo builds beside this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "build it first: cargo build -p gander --examples ({})", path.display());
    path
}

/// A process that is killed when the test is done with it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn start(name: &str, arguments: &[&str], data: &Path) -> Process {
    let mut command = Command::new(example(name));
    command.args(arguments).arg("--data").arg(data.join("data")).current_dir(data);
    command.env_clear().env("HOME", data).env("XDG_RUNTIME_DIR", data);
    Process(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
}

/// An editor at the other end of a process's pipes.
struct Editor {
    process: Process,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Editor {
    fn open(name: &str, data: &Path) -> Self {
        let mut process = start(name, &["acp"], data);
        let (stdin, stdout) = (process.0.stdin.take(), BufReader::new(process.0.stdout.take().unwrap()));
        let mut editor = Self { process, stdin, stdout, next: 0 };
        editor.call("initialize", &json!({ "protocolVersion": 1 }));
        editor
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
        self.next
    }

    /// Calls and gives the answer, and what was told before it.
    fn call(&mut self, method: &str, params: &Value) -> (Value, Vec<Value>) {
        let id = self.send(method, params);
        let mut told = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the agent hung up");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                return (message, told);
            }
            told.push(message);
        }
    }

    fn new_session(&mut self, folder: &Path) -> String {
        std::fs::create_dir_all(folder.join("work")).unwrap();
        let (made, _) = self.call("session/new", &json!({ "cwd": folder.join("work"), "mcpServers": [] }));
        made["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> (Value, String) {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let (answer, told) = self.call("session/prompt", &params);
        let chunks = told.iter().filter(|told| told["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
        (answer, chunks.filter_map(|told| told["params"]["update"]["content"]["text"].as_str()).collect())
    }

    /// Closes the pipe and waits for the end of the process.
    fn leave(mut self) -> bool {
        drop(self.stdin.take());
        self.process.0.wait().unwrap().success()
    }
}

/// One HTTP request without a library.
fn http(address: &str, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         A2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, answer)
}

fn listening_address(process: &mut Process) -> String {
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().rsplit("http://").next().unwrap().to_owned()
}

fn token(data: &Path) -> String {
    token_of("echo", data)
}

fn token_of(name: &str, data: &Path) -> String {
    let output = start(name, &["token"], data).0.stdout.take().map(std::io::read_to_string);
    output.unwrap().unwrap().trim().to_owned()
}

#[test]
fn an_editor_talks_to_an_agent_over_its_pipes_and_bad_input_is_refused() {
    let data = TempDir::new().unwrap();
    let mut editor = Editor::open("echo", data.path());
    let session = editor.new_session(data.path());
    let (answer, said) = editor.prompt(&session, "hello");
    assert_eq!((answer["result"]["stopReason"].as_str(), said.as_str()), (Some("end_turn"), "You said: hello"));
    writeln!(editor.stdin.as_mut().unwrap(), "{{not json").unwrap();
    let (answer, told) = editor.call("no/such", &json!({}));
    assert_eq!(answer["error"]["code"], json!(-32601));
    assert!(told.iter().any(|told| told["error"]["code"] == json!(-32700)), "{told:?}");
    let (answer, _) = editor.call("session/prompt", &json!({ "sessionId": session, "prompt": 7 }));
    assert_eq!(answer["error"]["code"], json!(-32602));
    assert!(editor.leave(), "the agent ends well when the editor leaves");
}

#[test]
fn an_editor_and_http_clients_share_one_server_and_its_sessions() {
    let data = TempDir::new().unwrap();
    let mut server = start("echo", &["serve", "--listen", "127.0.0.1:0"], data.path());
    let address = listening_address(&mut server);
    let token = token(data.path());
    let mut editor = Editor::open("echo", data.path());
    let session = editor.new_session(data.path());
    assert_eq!(editor.prompt(&session, "from the editor").1, "You said: from the editor");
    let (status, shown) = http(&address, &token, "GET", &format!("/sessions/{session}"), "");
    assert_eq!(status, 200);
    assert!(shown.contains("from the editor"), "{shown}");
    assert_eq!(http(&address, "wrong", "GET", &format!("/sessions/{session}"), "").0, 401);
    let message = json!({ "message": { "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": "over A2A" }] } });
    let (status, answer) = http(&address, &token, "POST", "/a2a/echo/message:send", &message.to_string());
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("You said: over A2A"), "{answer}");
    assert_eq!(http(&address, &token, "POST", "/a2a/echo/message:send", "{").0, 400);
    assert!(editor.leave());
}

#[test]
fn a_session_survives_kill_9_and_a_second_server_listens_through_the_first() {
    let data = TempDir::new().unwrap();
    let mut editor = Editor::open("echo", data.path());
    let session = editor.new_session(data.path());
    editor.prompt(&session, "remember me");
    let mut second = start("echo", &["serve", "--listen", "127.0.0.1:0"], data.path());
    let address = listening_address(&mut second);
    assert!(http(&address, &token(data.path()), "GET", &format!("/sessions/{session}"), "").1.contains("remember me"));
    editor.process.0.kill().unwrap();
    editor.process.0.wait().unwrap();
    second.0.wait().unwrap();
    let mut editor = Editor::open("echo", data.path());
    let loaded = json!({ "sessionId": session, "cwd": data.path().join("work"), "mcpServers": [] });
    let (answer, told) = editor.call("session/load", &loaded);
    assert!(answer["error"].is_null(), "{answer}");
    assert!(told.iter().any(|told| told.to_string().contains("remember me")), "{told:?}");
}

/// A server of an example, spoken to over ACP-REST.
struct Served {
    process: Process,
    address: String,
    token: String,
}

impl Served {
    fn start(name: &str, data: &Path) -> Self {
        let mut process = start(name, &["serve", "--listen", "127.0.0.1:0"], data);
        let address = listening_address(&mut process);
        Self { process, address, token: token_of(name, data) }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = http(&self.address, &self.token, method, path, &body);
        assert!((200..300).contains(&status), "{path}: {answer}");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let json = body.find('{').zip(body.rfind('}')).map(|(first, last)| &body[first..=last]);
        serde_json::from_str(json.unwrap_or("null")).unwrap()
    }

    fn start_run(&self, agent: &str, text: &str) -> String {
        let input = json!([{ "role": "user", "parts": [{ "content": text }] }]);
        let run = self.call("POST", "/runs", &json!({ "agent_name": agent, "mode": "async", "input": input }));
        run["run_id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned()
    }

    /// The run, once it is in this state.
    fn wait_for_run(&self, run: &str, status: &str) -> Value {
        for _ in 0..3_000 {
            let shown = self.call("GET", &format!("/runs/{run}"), &Value::Null);
            if shown["status"] == status {
                return shown;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{run} never is {status}: {}", self.call("GET", &format!("/runs/{run}"), &Value::Null))
    }

    fn answer(&self, run: &str) {
        let message = json!({ "role": "user", "parts": [{ "content": "yes" }] });
        let resume = json!({ "mode": "async", "await_resume": { "type": "message", "message": message } });
        self.call("POST", &format!("/runs/{run}"), &resume);
    }

    fn kill(mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }
}

/// Prompts an example and kills its process while its question is open.
fn kill_while_asked(name: &str, text: &str, data: &Path) -> String {
    let served = Served::start(name, data);
    let run = served.start_run(name, text);
    served.wait_for_run(&run, "awaiting");
    served.kill();
    run
}

#[test]
fn killed_with_an_open_question_a_plain_handler_has_failed() {
    let data = TempDir::new().unwrap();
    let run = kill_while_asked("notes", "write todo milk", data.path());
    let served = Served::start("notes", data.path());
    let failed = served.wait_for_run(&run, "failed");
    assert!(failed["error"].to_string().contains("the server stopped while the agent was at work"), "{failed}");
    // Nobody is asked any more: an answer comes too late.
    let message = json!({ "role": "user", "parts": [{ "content": "yes" }] });
    let resume = json!({ "mode": "async", "await_resume": { "type": "message", "message": message } });
    assert_eq!(http(&served.address, &served.token, "POST", &format!("/runs/{run}"), &resume.to_string()).0, 403);
    let (_, events) = http(&served.address, &served.token, "GET", &format!("/runs/{run}/events"), "");
    assert_eq!(events.matches("run.failed").count(), 1, "{events}");
    // The session goes on, and the next question is a new one.
    let session = failed["session_id"].as_str().unwrap();
    let input = json!([{ "role": "user", "parts": [{ "content": "write todo milk" }] }]);
    let body = json!({ "agent_name": "notes", "mode": "async", "session_id": session, "input": input });
    let next = served.call("POST", "/runs", &body)["run_id"].as_str().unwrap().to_owned();
    served.wait_for_run(&next, "awaiting");
    served.answer(&next);
    assert!(served.wait_for_run(&next, "completed").to_string().contains("todo is written."));
}

#[test]
fn killed_with_an_open_question_a_durable_handler_goes_on_when_it_is_answered() {
    let data = TempDir::new().unwrap();
    let run = kill_while_asked("release", "one", data.path());
    for _ in 0..2 {
        let served = Served::start("release", data.path());
        let waiting = served.wait_for_run(&run, "awaiting");
        assert!(waiting["await_request"].to_string().contains("Release one"), "{waiting}");
        served.kill();
    }
    let served = Served::start("release", data.path());
    served.wait_for_run(&run, "awaiting");
    served.answer(&run);
    let done = served.wait_for_run(&run, "completed");
    assert_eq!(done.to_string().matches("Building. ").count(), 1, "{done}");
    assert!(done.to_string().contains("one is released."), "{done}");
    // The finished tool call was not done again.
    let noted = find_file(data.path(), "releases.txt").map(std::fs::read_to_string);
    assert_eq!(noted.unwrap().unwrap(), "built one\nreleased one\n");
}

/// The first file of this name below a folder: a session without a folder of its own works in one of the data directory.
fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    let found = entries.iter().find(|path| path.file_name().is_some_and(|file| file == name)).cloned();
    found.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|folder| find_file(folder, name)))
}

#[test]
fn a_wrong_command_line_is_explained() {
    let data = TempDir::new().unwrap();
    let mut command = Command::new(example("echo"));
    let output = command.args(["fly"]).env("HOME", data.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("no such command: fly") && said.contains("usage: echo acp"),
        "{said}"
    );
}
