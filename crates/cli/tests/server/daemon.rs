//! The one server of a data directory: how it is started, found, joined, replaced and ended.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use gander_services::paths::{DirectoryLock, Paths};
use serde_json::{Value, json};

use crate::binary::{Running, TestDirectory, eventually};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// The address that a `gander serve` says it listens on.
fn address(serve: &mut Running) -> SocketAddr {
    let line = serve.wait_for("listening on http://");
    line.trim().rsplit_once("http://").unwrap().1.parse().unwrap()
}

fn get(address: SocketAddr, path: &str, header: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn is_healthy(address: SocketAddr) -> bool {
    get(address, "/health", "")
        .is_some_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"status\":\"ok\"}"))
}

/// Sends a request and reads lines until its answer.
fn ask(acp: &mut Running, request: &Value) -> Value {
    acp.write(&format!("{request}\n"));
    let id = format!("\"id\":{}", request["id"]);
    loop {
        let line = acp.wait_for("{");
        if line.contains(&id) {
            return serde_json::from_str(&line).unwrap();
        }
    }
}

/// Initializes, makes a session, and begins a prompt without waiting for its end.
fn begin(acp: &mut Running, folder: &str, prompt: &str) -> String {
    acp.write(&format!("{INITIALIZE}\n"));
    acp.wait_for("\"protocolVersion\":1");
    let params = json!({ "cwd": folder, "mcpServers": [] });
    let opened = ask(acp, &json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params }));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": prompt }] });
    acp.write(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params })));
    session
}

#[test]
fn an_editor_with_a_terminal_is_offered_the_setup_and_can_start_it() {
    for arguments in [&["acp"][..], &["acp", "--standalone"]] {
        let test_directory = TestDirectory::new();
        let mut acp = test_directory.start(arguments);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": { "auth": { "terminal": true } } });
        let answer = ask(&mut acp, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
        let offered = &answer["result"]["authMethods"][0];
        assert_eq!(offered["type"], "terminal", "{answer}");
        let started = &offered["_meta"]["terminal-auth"];
        assert_eq!(started["command"], json!(std::fs::canonicalize(env!("CARGO_BIN_EXE_gander")).unwrap()));
        // Clients add the argument to those that they started the agent with, or put it in their place.
        for before in [arguments, &[]] {
            let added = offered["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
            let line: Vec<&str> = before.iter().copied().chain(added).collect();
            let ended = test_directory.run(&line);
            assert_eq!(ended.code, 2, "{line:?} {ended:?}");
            assert!(ended.err.contains("setup asks questions: run it in a terminal"), "{line:?} {ended:?}");
        }
    }
}

#[test]
fn a_server_says_where_it_is_and_ends_in_good_order() {
    for end in [Running::terminate, Running::interrupt] {
        let test_directory = TestDirectory::new();
        let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
        let address = address(&mut serve);
        assert!(is_healthy(address));
        let token = test_directory.ok(&["token"]);
        let status = get(address, "/gander/status", &format!("Authorization: Bearer {}\r\n", token.trim())).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        let socket = test_directory.data().join("gander.sock");
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        end(&serve);
        let ended = serve.wait();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.out.contains(token.trim()) && !ended.err.contains(token.trim()), "the token was printed");
        assert!(!socket.exists());
    }
}

#[test]
fn no_secret_is_logged_even_when_everything_is() {
    let mut test_directory =
        TestDirectory::new().with("GANDER_LOG", "trace").with("OPENAI_API_KEY", "sk-planted-in-the-server");
    let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
    let address = address(&mut serve);
    let token = test_directory.ok(&["token"]).trim().to_owned();
    get(address, "/gander/status", &format!("Authorization: Bearer {token}\r\n")).unwrap();
    get(address, &format!("/gander/status?token={token}"), "X-Secret-Key: wrong-but-secret\r\n").unwrap();
    test_directory.variables.push(("ANTHROPIC_API_KEY", "sk-planted-in-the-client".to_owned()));
    let run = test_directory.run(&["run", "text"]);
    assert_eq!(run.code, 0, "{run:?}");
    serve.terminate();
    let ended = serve.wait();
    assert!(ended.err.contains("path=\"/gander/status\" status=401"), "nothing was logged: {}", ended.err);
    for secret in ["planted", "wrong-but-secret", &token[7..]] {
        for (who, text) in [("server", &ended.err), ("client", &run.err), ("server's stdout", &ended.out)] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} in the log of the {who}");
        }
    }
}

#[test]
fn a_second_signal_does_not_wait() {
    let test_directory = TestDirectory::new();
    let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
    address(&mut serve);
    let mut run = test_directory.start(&["run", "--json", "long"]);
    run.wait_for("\"text\"");
    serve.terminate();
    eventually("the socket goes", || !test_directory.data().join("gander.sock").exists());
    let second = Instant::now();
    serve.terminate();
    serve.wait();
    assert!(second.elapsed() < Duration::from_secs(20), "it waited {:?}", second.elapsed());
    run.kill();
}

#[test]
fn only_loopback_without_tls() {
    let test_directory = TestDirectory::new();
    let refused = test_directory.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--insecure-plain"), "{refused:?}");
    let mut serve = test_directory.start(&["serve", "--listen", "0.0.0.0:0", "--insecure-plain"]);
    address(&mut serve);
    serve.terminate();
    assert!(serve.wait().err.contains("not encrypted"));
}

#[test]
fn plain_http_beyond_this_machine_is_refused_however_it_is_asked_for() {
    let test_directory = TestDirectory::new().with("PROXY_API_KEY", "knock-knock");
    let open = ["--listen", "0.0.0.0:0"];
    let proxied = [&["proxy", "adk", "--goose", "http://127.0.0.1:9"][..], &open].concat();
    let set = TestDirectory::new().with("GANDER_SERVER_LISTEN", "0.0.0.0:0");
    let hello = test_directory.ok(&["run", "hi"]); // a server runs in the background from now on
    assert!(!hello.is_empty());
    for ended in
        [test_directory.run(&proxied), set.run(&["serve"]), test_directory.run(&[&["serve"][..], &open].concat())]
    {
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.err.contains("without TLS") && ended.err.contains("--insecure-plain"), "{ended:?}");
    }
    let mut acp = test_directory.start(&["acp"]);
    acp.write(&format!("{INITIALIZE}\n"));
    acp.wait_for("\"protocolVersion\":1");
    let listen =
        |id: u32, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "_gander/listen", "params": params });
    let refused = ask(&mut acp, &listen(1, json!({ "listen": "0.0.0.0:0" })));
    assert!(refused["error"]["message"].as_str().unwrap().contains("without TLS"), "{refused}");
    let opened = ask(&mut acp, &listen(2, json!({ "listen": "127.0.0.1:0", "security": "tls" })));
    assert_eq!(opened["result"]["fingerprint"].as_str().map(str::len), Some(95), "{opened}");
    acp.kill();
    test_directory.stop_server();
}

#[test]
fn a_server_that_is_joined_opens_tls_if_it_was_asked_for() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "hi"]);
    let mut serve = test_directory.start(&["serve", "--tls-self-signed", "--listen", "127.0.0.1:0"]);
    let fingerprint = serve.wait_for("GOOSED_CERT_FINGERPRINT=");
    let line = serve.wait_for("listening on https://");
    let address: SocketAddr = line.trim().rsplit_once("https://").unwrap().1.parse().unwrap();
    assert!(!is_healthy(address), "it speaks plain HTTP");
    let certificate = std::fs::read(test_directory.data().join("tls.cert.der")).unwrap();
    assert_eq!(
        fingerprint.trim().rsplit_once('=').unwrap().1,
        gander_client::CertificatePin::of_certificate(&certificate).to_string()
    );
    serve.terminate();
    let ended = serve.wait();
    assert!(ended.err.contains("added this address to the running server"), "{ended:?}");
    test_directory.stop_server();
}

#[test]
fn a_key_on_the_command_line_is_refused() {
    let test_directory = TestDirectory::new();
    for (flag, variable) in [("--secret-key", "GOOSE_SECRET_KEY"), ("--api-key", "PROXY_API_KEY")] {
        let ended = test_directory.run(&["proxy", "adk", flag, "hush-hush"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.err.contains(variable) && ended.err.contains(&format!("{flag}-file")), "{ended:?}");
        assert!(!ended.err.contains("hush-hush"), "{ended:?}");
    }
    let add = |more: &[&str]| test_directory.run(&[&["extensions", "add", "x"], more].concat());
    let url = ["--url", "https://example.org/mcp"];
    let header = add(&[&url[..], &["--header", "Authorization: Bearer hush-hush"]].concat());
    assert!(header.code != 0 && header.err.contains("--header-env Authorization=VARIABLE"), "{header:?}");
    let variable = add(&["--env", "API_KEY=hush-hush", "--", "true"]);
    assert!(variable.code != 0 && variable.err.contains("--env API_KEY"), "{variable:?}");
    assert!(!header.err.contains("hush-hush") && !variable.err.contains("hush-hush"));
    test_directory.stop_server();
}

#[test]
fn an_address_that_is_taken_is_told_before_anything_is_touched() {
    let test_directory = TestDirectory::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let failed = test_directory.run(&["serve", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("cannot listen"), "{failed:?}");
    assert!(!test_directory.data().join("log.db").exists());
}

#[test]
fn many_starters_make_one_server() {
    let test_directory = TestDirectory::new();
    let starters: Vec<Running> = (0..6).map(|_| test_directory.start(&["run", "text"])).collect();
    for starter in starters {
        let ended = starter.wait();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    test_directory.server_pid();
    assert_eq!(test_directory.json_lines(&["sessions", "list", "--json"]).len(), 6);
}

#[test]
fn a_dead_server_is_started_again_and_remembers() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    let pid = test_directory.server_pid();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    eventually("it is gone", || test_directory.no_server());
    assert!(test_directory.data().join("gander.sock").exists());
    assert_eq!(test_directory.json_lines(&["sessions", "list", "--json"]).len(), 1);
    assert_ne!(test_directory.server_pid(), pid);
}

#[test]
fn an_idle_server_ends_itself_but_not_under_a_client() {
    let test_directory = TestDirectory::new().with("GANDER_DAEMON_IDLE", "200ms");
    let mut acp = test_directory.start(&["acp"]);
    acp.write(&format!("{INITIALIZE}\n"));
    acp.wait_for("\"protocolVersion\":1");
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(600) {
        assert!(!test_directory.no_server());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(acp.wait().code, 0);
    eventually("it ends", || test_directory.no_server());
    assert!(!test_directory.data().join("gander.sock").exists());
    test_directory.ok(&["sessions", "list"]);
}

#[test]
fn serve_joins_a_background_server_for_as_long_as_it_stays() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    let background = test_directory.server_pid();
    for leave in [Running::interrupt, Running::kill] {
        let mut serve = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
        let address = address(&mut serve);
        assert!(is_healthy(address));
        assert_eq!(test_directory.listening_ports(background), 1);
        leave(&serve);
        serve.wait();
        eventually("the address closes", || !is_healthy(address));
    }
    assert_eq!(test_directory.server_pid(), background);
    assert_eq!(test_directory.listening_ports(background), 0);
}

#[test]
fn an_editor_that_leaves_does_not_end_its_turn() {
    let test_directory = TestDirectory::new();
    let mut acp = test_directory.start(&["acp"]);
    let session = begin(&mut acp, &test_directory.folder("work"), "long");
    acp.wait_for("agent_message_chunk");
    let left = Instant::now();
    let ended = acp.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(left.elapsed() < Duration::from_secs(20), "it stayed for {:?}", left.elapsed());
    for line in ended.out.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "stdout holds something else: {line}");
    }
    eventually("the turn ends", || {
        let log = test_directory.ok(&["sessions", "export", &session]);
        log.contains(r#""kind":"run_ended","outcome":{"type":"completed""#)
    });
}

#[test]
fn standalone_opens_no_socket_and_keeps_what_was_said() {
    let test_directory = TestDirectory::new();
    let mut acp = test_directory.start(&["acp", "--standalone"]);
    let session = begin(&mut acp, &test_directory.folder("work"), "text");
    acp.wait_for("\"stopReason\":\"end_turn\"");
    assert!(!test_directory.data().join("gander.sock").exists());
    let pid = acp.child.id();
    let unix = std::fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap_or_default();
    assert!(!unix.contains(test_directory.data().to_str().unwrap()));
    assert_eq!(test_directory.listening_ports(pid), 0);
    let refused = test_directory.run(&["run", "--standalone", "text"]);
    assert!(refused.code == 1 && refused.err.contains("data directory for itself"), "{refused:?}");
    assert_eq!(acp.wait().code, 0);
    assert!(test_directory.run(&["sessions", "show", &session]).out.starts_with("› text\n"));
}

#[test]
fn another_build_is_asked_to_end_and_replaced() {
    let test_directory = TestDirectory::new();
    let paths = Paths::new(test_directory.data(), None);
    paths.create_folders().unwrap();
    let old = std::thread::spawn({
        let lock = DirectoryLock::try_take(&paths.server_lock()).unwrap().unwrap();
        let listener = UnixListener::bind(paths.socket_to_bind()).unwrap();
        move || {
            let mut wishes = Vec::new();
            while wishes.last() != Some(&json!("drain")) {
                let (stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                wishes.push(serde_json::from_str::<Value>(&line).unwrap()["want"].clone());
                let welcome = json!({ "gander": 1, "version": "0.0.1", "pid": 1, "background": true });
                writeln!(&stream, "{welcome}").unwrap();
            }
            drop(listener);
            drop(lock);
            wishes
        }
    });
    let run = test_directory.run(&["run", "text"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(old.join().unwrap(), [json!("acp"), json!("drain")]);
    test_directory.server_pid();
}

#[test]
fn a_server_that_cannot_start_shows_the_end_of_its_log() {
    let test_directory = TestDirectory::new();
    std::fs::create_dir_all(test_directory.data().join("log.db")).unwrap();
    let failed = test_directory.run(&["run", "text"]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("did not start") && failed.err.contains("server.log"), "{failed:?}");
    assert!(failed.err.lines().count() > 1, "{failed:?}");
}

#[test]
fn a_data_directory_with_a_long_name_works() {
    const LONG: &str =
        "a-name-of-forty-letters-and-some-more/and-another-one-of-more-than-fifty-letters-below-the-first";
    let mut test_directory = TestDirectory::named(LONG);
    let runtime = test_directory.folder("runtime");
    test_directory.variables.push(("XDG_RUNTIME_DIR", runtime.clone()));
    test_directory.ok(&["run", "text"]);
    let socket = std::fs::read_to_string(test_directory.data().join("socket")).unwrap();
    assert!(socket.starts_with(&runtime) && socket.trim().len() <= 100, "{socket}");
    // Another session of the same user may have another runtime directory, or none.
    test_directory.variables.pop();
    test_directory.ok(&["run", "--continue", "text"]);
    test_directory.server_pid();
}

#[test]
fn what_is_no_hello_is_hung_up_on() {
    let test_directory = TestDirectory::new();
    test_directory.ok(&["run", "text"]);
    for noise in ["GET / HTTP/1.1\r\n\r\n", "{}\n", "{\"gander\":99,\"version\":\"9\"}\n"] {
        let mut stream = UnixStream::connect(test_directory.data().join("gander.sock")).unwrap();
        stream.write_all(noise.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok();
        assert_eq!(answer, "", "{noise}");
    }
    test_directory.ok(&["run", "text"]);
}
