//! How servers live and die, and that nothing of them is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use gander_domain::{Notice, Severity, ToolEnd};
use gander_mcp::{MemoryToolPinStore, ServerEvent, ServerState, Servers, ServersConfig, Spec, Transport};
use serde_json::json;
use tokio::sync::mpsc;

use crate::test_server::{TestServer, audience, circumstances, spec, text};

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Its other threads may outlive the first, and hold its streams open.
fn threads(pid: &str) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", pid.trim())).map_or(0, Iterator::count)
}

/// Waits until it is so; fails after a minute.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_starts_before_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Servers::new(
        vec![spec("script", "good")],
        circumstances(folder.path(), Arc::new(MemoryToolPinStore::default())),
    );
    assert_eq!(servers.server_statuses()[0].state, ServerState::Asleep);
    assert!(servers.are_asleep() && servers.listed_tools().is_empty());
    servers.wait_until_settled().await;
    assert_eq!(servers.server_statuses()[0].state, ServerState::Ready);
}

#[tokio::test]
async fn one_that_fails_is_named_and_the_others_work() {
    let mut server =
        TestServer::with(vec![spec("bad", "dies"), spec("garbage", "garbage"), spec("huge", "huge")]).await;
    let ServerEvent::Notice(notice) = server.said().await else { panic!("a notice is first") };
    let title = "bad is not running: it exited during startup: no such database".to_owned();
    assert_eq!(notice, Notice { severity: Severity::Warning, title, detail: None });
    assert_eq!(server.text("garbage__echo", json!({"text": "hi"})).await, "hi");
    assert_eq!(server.text("huge__echo", json!({"text": "hi"})).await, "hi");
}

/// A server that works only while this file is there.
fn frail(folder: &std::path::Path) -> (Spec, std::path::PathBuf) {
    let (good, file) = (spec("frail", "good"), folder.join("up"));
    let Transport::Stdio { command, args, env } = good.transport else { panic!("a program") };
    let line = format!("test -e '{}' && exec \"$0\" \"$@\"", file.display());
    let args = ["-c".to_owned(), line, command.display().to_string()].into_iter().chain(args).collect();
    (Spec::new("frail".to_owned(), Transport::Stdio { command: "/bin/sh".into(), args, env }), file)
}

#[tokio::test]
async fn one_that_is_down_costs_a_turn_nothing_and_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, file) = frail(folder.path());
    let servers = Servers::new(vec![spec], circumstances(folder.path(), Arc::new(MemoryToolPinStore::default())));
    servers.wait_until_tried().await;
    assert!(matches!(servers.server_statuses()[0].state, ServerState::Failed(_)), "the first try is waited for");
    let (tell, mut events) = mpsc::channel(64);
    for turn in 0..6 {
        assert!(servers.wait_until_tried().now_or_never().is_some(), "turn {turn} does not wait");
        let _attendance = servers.listen_for_run(audience(tell.clone()));
        // The next try of the server ends within a turn or between two: neither is told again.
        tokio::task::yield_now().await;
    }
    let _attendance = servers.listen_for_run(audience(tell));
    let titles = |events: &mut mpsc::Receiver<ServerEvent>| {
        let mut titles = Vec::new();
        while let Ok(heard) = events.try_recv() {
            titles.extend(if let ServerEvent::Notice(notice) = heard { Some(notice.title) } else { None });
        }
        titles
    };
    let told = titles(&mut events);
    assert!(told.len() == 1 && told[0].starts_with("frail is not running: "), "{told:?}");
    // It comes back by itself, and the run under way hears of its tools.
    std::fs::write(&file, "").unwrap();
    servers.start_all();
    until("it is back", || servers.server_statuses()[0].state == ServerState::Ready).await;
    while !matches!(events.recv().await.expect("the servers live"), ServerEvent::Tools) {}
    assert_eq!(servers.listed_tools().len(), 22);
}

#[tokio::test]
async fn one_that_does_not_greet_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let hasty = ServersConfig {
        start: Duration::from_millis(500),
        ..circumstances(folder.path(), Arc::new(MemoryToolPinStore::default()))
    };
    let servers = Servers::new(vec![spec("mute", "mute"), spec("wrong", "wrong_id")], hasty);
    servers.wait_until_settled().await;
    let conditions: Vec<ServerState> = servers.server_statuses().into_iter().map(|standing| standing.state).collect();
    assert_eq!(conditions[0], ServerState::Failed("it did not start in 0 s".to_owned()));
    assert!(
        matches!(&conditions[1], ServerState::Failed(reason) if reason.contains("it did not")),
        "{:?}",
        conditions[1]
    );
}

#[tokio::test]
async fn after_a_crash_it_is_started_again() {
    let mut server = TestServer::good().await;
    let (result, _) = server.call("script__crash", json!({})).await;
    assert_eq!(result.end, ToolEnd::Interrupted, "{}", text(&result));
    let ServerEvent::Notice(notice) = server.said().await else { panic!("people are told") };
    assert_eq!(notice.title, "script is not running: it stopped: out of memory");
    assert_eq!(server.tools().len(), 22, "its tools stay on offer");
    assert_eq!(server.text("script__echo", json!({"text": "back"})).await, "back");
}

#[tokio::test]
async fn a_call_that_it_died_of_is_made_again_only_where_that_is_harmless() {
    let server = TestServer::good().await;
    let file = |name: &str| json!({"file": server.folder.path().join(name)});
    for tool in ["frail_read", "frail_again"] {
        let (result, _) = server.call(&format!("script__{tool}"), file(tool)).await;
        assert_eq!((result.end, text(&result).as_str()), (ToolEnd::Completed, "called\ncalled\n"), "{tool}");
    }
    let (result, _) = server.call("script__frail", file("frail")).await;
    assert_eq!(result.end, ToolEnd::Interrupted);
    assert_eq!(text(&result), "the server stopped while the call ran: it may or may not have taken effect");
    assert_eq!(server.text("script__echo", json!({"text": "back"})).await, "back");
    let marks = std::fs::read_to_string(server.folder.path().join("frail")).unwrap();
    assert_eq!(marks, "called\n", "it was not made again");
}

#[tokio::test]
async fn a_call_that_asked_for_more_is_not_made_again() {
    let server = TestServer::good().await;
    let file = server.folder.path().join("rounds");
    let (result, _) = server.call("script__rounds", json!({"file": file})).await;
    assert_eq!(result.end, ToolEnd::Interrupted, "{}", text(&result));
    assert_eq!(server.text("script__echo", json!({"text": "back"})).await, "back");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "called\n", "it was not made again");
}

#[tokio::test]
async fn a_tool_that_is_not_what_it_was_is_not_called_again() {
    let server = TestServer::with(vec![spec("script", "fickle")]).await;
    let file = server.folder.path().join("frail");
    let (result, _) = server.call("script__frail_again", json!({"file": file})).await;
    assert_eq!(result.end, ToolEnd::Failed, "{}", text(&result));
    assert!(text(&result).contains("its tool frail_again is not what it was"), "{}", text(&result));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "called\n", "it was not made again");
}

#[tokio::test]
async fn a_call_that_never_reached_the_dead_is_made_by_the_next() {
    let server = TestServer::good().await;
    for round in 0..3 {
        let pid = server.text("script__pid", json!({})).await;
        let number = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(number, rustix::process::Signal::KILL).unwrap();
        while alive(&pid) || threads(&pid) > 1 {
            std::hint::spin_loop();
        }
        assert_eq!(server.text("script__echo", json!({"text": "hi"})).await, "hi", "round {round}");
    }
}

#[tokio::test]
async fn what_it_started_ends_with_it() {
    let server = TestServer::good().await;
    let grandchild = server.text("script__spawn", json!({})).await;
    assert!(alive(&grandchild));
    let TestServer { servers, .. } = server;
    drop(servers);
    until("the grandchild is ended", || !alive(&grandchild)).await;
}

#[tokio::test]
async fn one_that_nobody_needs_goes_to_sleep() {
    let folder = tempfile::tempdir().unwrap();
    let short = ServersConfig {
        idle: Duration::from_millis(50),
        ..circumstances(folder.path(), Arc::new(MemoryToolPinStore::default()))
    };
    let servers = Servers::new(vec![spec("script", "good")], short);
    servers.wait_until_settled().await;
    until("it sleeps", || servers.are_asleep()).await;
    assert_eq!(servers.listed_tools().len(), 22, "its tools stay on offer");
    servers.wait_until_settled().await;
    assert_eq!(servers.server_statuses()[0].state, ServerState::Ready);
}

#[tokio::test]
async fn the_same_server_goes_on_when_the_set_changes() {
    let server = TestServer::good().await;
    let grandchild = server.text("script__spawn", json!({})).await;
    server.servers.set_specs(vec![spec("other", "good"), spec("script", "good")]);
    assert!(alive(&grandchild));
    server.servers.set_specs(vec![spec("other", "good")]);
    until("it is ended", || !alive(&grandchild)).await;
}
