//! `/schedule/*` and `/recipes/schedule`.

use gander_domain::{Principal, Timestamp};
use gander_services::schedules::Schedule;
use serde_json::json;

use crate::goose_rest::test_server::TestServer;

#[tokio::test]
async fn a_schedule_from_its_making_to_its_end() {
    let server = TestServer::open().await;
    let recipe = json!({"title": "Tick", "description": "ticks", "prompt": "text"});
    let wish = json!({"id": "tick", "recipe": recipe, "cron": "0 3 1 1 *", "working_dir": server.work()});
    let job = server.ok("/schedule/create", wish.clone()).await;
    assert_eq!((&job["id"], &job["cron"], &job["paused"]), (&json!("tick"), &json!("0 3 1 1 *"), &json!(false)));
    assert_eq!(server.post("/schedule/create", wish.clone()).await.0, 409);
    for (field, bad) in [
        ("cron", json!("every day")),
        ("cron", json!("0 0 31 2 *")),
        ("zone", json!("Mars/Olympus")),
        ("recipe", json!({"title": "x"})),
        ("recipe", json!({"title": "x", "description": "d", "prompt": "a\u{e0041}"})),
        ("id", json!("../x")),
        ("working_dir", json!("/no/such/folder")),
    ] {
        let mut wish = wish.clone();
        wish["id"] = json!("other");
        wish[field] = bad;
        let (status, told) = server.post("/schedule/create", wish.clone()).await;
        assert_eq!(status, 400, "{wish}: {told}");
    }
    assert_eq!(server.get("/schedule/list").await.1["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(server.put("/schedule/tick", json!({"cron": "0 4 1 1 *"})).await.1["cron"], "0 4 1 1 *");
    assert_eq!(server.put("/schedule/tick", json!({"cron": "no"})).await.0, 400);

    let ran = server.ok("/schedule/tick/run_now", json!({})).await;
    let id = ran["session_id"].as_str().unwrap();
    let (_, session) = server.get(&format!("/sessions/{id}")).await;
    assert_eq!((&session["session_type"], &session["schedule_id"]), (&json!("scheduled"), &json!("tick")));
    let (_, listed) = server.get("/schedule/tick/sessions?limit=10").await;
    assert_eq!((&listed[0]["id"], &listed[0]["scheduleId"]), (&json!(id), &json!("tick")));
    assert_eq!(server.get("/schedule/tick/inspect").await.0, 200);
    assert!(server.ok("/schedule/tick/kill", json!({})).await["message"].is_string());

    assert_eq!(server.post("/schedule/tick/pause", json!({})).await.0, 204);
    assert_eq!(server.get("/schedule/list").await.1["jobs"][0]["paused"], json!(true));
    assert_eq!(server.post("/schedule/tick/unpause", json!({})).await.0, 204);
    assert_eq!(server.delete("/schedule/delete/tick").await.0, 204);
    assert_eq!(server.delete("/schedule/delete/tick").await.0, 404);
    for path in ["run_now", "pause", "unpause", "kill"] {
        assert_eq!(server.post(&format!("/schedule/tick/{path}"), json!({})).await.0, 404, "{path}");
    }
    assert_eq!(server.get("/schedule/tick/inspect").await.0, 404);
}

#[tokio::test]
async fn a_saved_recipe_gets_a_time_and_loses_it() {
    let server = TestServer::open().await;
    let recipe = json!({"title": "Tick", "description": "ticks", "prompt": "text"});
    server.ok("/recipes/save", json!({"recipe": recipe})).await;
    for cron in ["0 3 * * *", "0 4 * * *"] {
        server.post("/recipes/schedule", json!({"id": "tick", "cron_schedule": cron})).await;
        assert_eq!(server.get("/recipes/list").await.1["manifests"][0]["schedule_cron"], cron);
    }
    assert_eq!(server.post("/recipes/schedule", json!({"id": "none", "cron_schedule": "0 3 * * *"})).await.0, 404);
    server.post("/recipes/schedule", json!({"id": "tick", "cron_schedule": null})).await;
    assert_eq!(server.get("/schedule/list").await.1, json!({"jobs": []}));
}

#[tokio::test]
async fn recipes_in_yaml_and_hostile_ones() {
    let server = TestServer::open().await;
    let yaml = "title: Y\ndescription: d\nprompt: |\n  two\n  lines\n";
    let parsed = server.ok("/recipes/parse", json!({"content": yaml})).await;
    assert_eq!(parsed["recipe"]["prompt"], "two\nlines\n");
    let back = server.ok("/recipes/to-yaml", parsed.clone()).await;
    assert_eq!(server.ok("/recipes/parse", json!({"content": back["yaml"]})).await, parsed);
    let program = json!({"title": "P", "description": "d", "prompt": "p",
        "extensions": [{"type": "stdio", "name": "x", "cmd": "touch", "args": ["/tmp/evil"]}]});
    assert_eq!(server.ok("/recipes/scan", json!({"recipe": program})).await, json!({"has_security_warnings": true}));
    let (status, told) = server.post("/agent/start", json!({"working_dir": server.work(), "recipe": program})).await;
    assert!(status == 400 && told["message"].as_str().unwrap().contains("starts no program unasked"), "{told}");
    let hidden = json!({"title": "H", "description": "d", "prompt": "a\u{200b}b"});
    assert_eq!(server.ok("/recipes/scan", json!({"recipe": hidden})).await, json!({"has_security_warnings": true}));
    for path in ["/recipes/save", "/recipes/encode", "/recipes/to-yaml"] {
        let (status, told) = server.post(path, json!({"recipe": hidden})).await;
        assert!(status == 400 && told["message"].as_str().unwrap().contains("prompt: it holds"), "{path} {told}");
    }
    let plain = json!({"title": "S", "description": "d", "prompt": "p"});
    for id in ["../x", "a/b", ".hidden"] {
        assert_eq!(server.post("/recipes/save", json!({"recipe": plain, "id": id})).await.0, 400, "{id}");
    }
    server.ok("/recipes/save", json!({"recipe": plain})).await;
    for name in ["clear", "two words", "a/b"] {
        assert_eq!(server.post("/recipes/slash-command", json!({"id": "s", "slash_command": name})).await.0, 400);
    }
}

/// A schedule whose hours passed while no server ran, and one that is due every second: how often each ran, once the
/// second has.
async fn after_a_pause(missed: &str) -> usize {
    let server = TestServer::with(&[("GANDER_SCHEDULES_MISSED", missed)]).await;
    let schedules = &server.app.services().schedules;
    let hour = 3_600_000_000;
    let now = gander_store::clock::current_time().as_micros();
    let job = |id: &str, cron: &str, since: i64| Schedule {
        id: id.to_owned(),
        owner: Principal::owner(),
        cron: cron.to_owned(),
        zone: "UTC".to_owned(),
        recipe: json!({"title": "Tick", "description": "ticks", "prompt": "text"}),
        values: Default::default(),
        workspace: None,
        folder: None,
        source: "tick.json".to_owned(),
        paused: false,
        since: Timestamp::from_micros(since),
    };
    schedules.put(job("hourly", "0 * * * *", now - 5 * hour)).await.unwrap();
    schedules.put(job("second", "* * * * * *", now)).await.unwrap();
    let ran = |id: &str| schedules.get(&Principal::owner(), id).unwrap().runs.len();
    let patience = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while ran("second") == 0 {
        assert!(tokio::time::Instant::now() < patience, "nothing runs");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let next = schedules.get(&Principal::owner(), "hourly").unwrap().next_run().unwrap();
    assert!(next.as_micros() > now, "what was missed is done with, one way or the other");
    ran("hourly")
}

#[tokio::test]
async fn hours_that_were_missed_are_made_up_for_once_or_skipped_as_the_owner_says() {
    let (made_up, skipped) = tokio::join!(after_a_pause("run"), after_a_pause("skip"));
    assert_eq!((made_up, skipped), (1, 0));
}
