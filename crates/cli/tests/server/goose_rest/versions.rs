//! Which routes of which version of goosed are served, as `docs/goose-routes.md` shows it.
//!
//! `UPDATE=1 cargo test --workspace --test server goose_rest::versions` writes the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use gander_gateway::server::ROUTES;
use gander_http::Verb;
use reqwest::Method;

use crate::goose_rest::test_server::TestServer;

const TABLE: &str = include_str!("goosed-routes.tsv");

/// The last version that is known route by route. goosed ended with 1.39.
const LAST: u32 = 35;

/// The versions that the table was read from.
const VERSIONS: [u32; 23] =
    [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, LAST];

struct OldRoute {
    path: &'static str,
    method: &'static str,
    first: u32,
    last: Option<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Served,
    Refused,
    Absent,
}

#[tokio::test]
async fn the_page_about_versions_says_what_the_server_does() {
    let server = TestServer::open().await;
    let mut answers = Vec::new();
    for route in old_routes() {
        answers.push((answer(&server, &route).await, route));
    }
    let page = page(&answers);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/goose-routes.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/goose-routes.md is not what the server does: write it with UPDATE=1");
}

fn old_routes() -> Vec<OldRoute> {
    let minor = |text: &str| text.strip_prefix("1.").and_then(|minor| minor.parse().ok());
    let row = |line: &'static str| {
        let [path, method, first, last] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        OldRoute { path, method, first: minor(first).unwrap(), last: minor(last) }
    };
    TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

impl OldRoute {
    fn is_in(&self, version: u32) -> bool {
        self.first <= version && self.last.is_none_or(|last| version <= last)
    }
}

async fn answer(server: &TestServer, route: &OldRoute) -> Answer {
    let known = ROUTES.iter().any(|ours| method(ours.verb) == route.method && shape(ours.path) == route.path);
    if !known {
        return Answer::Absent;
    }
    let method: Method = route.method.parse().unwrap();
    let request = server.request(method.clone(), &route.path.replace("{}", "x"));
    let request = if method == Method::GET { request } else { request.json(&serde_json::json!({})) };
    match request.send().await.unwrap().status().as_u16() {
        501 => Answer::Refused,
        _ => Answer::Served,
    }
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
        Verb::Put => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
    }
}

/// The path with every parameter as `{}`.
fn shape(path: &str) -> String {
    let segment = |segment: &str| if segment.starts_with('{') { "{}".to_owned() } else { segment.to_owned() };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn count(answers: &[(Answer, OldRoute)], version: u32) -> (usize, usize, usize) {
    let of =
        |wanted: Answer| answers.iter().filter(|(answer, route)| *answer == wanted && route.is_in(version)).count();
    (of(Answer::Served), of(Answer::Refused), of(Answer::Absent))
}

fn page(answers: &[(Answer, OldRoute)]) -> String {
    let mut page = "# Routes of goosed, version by version\n\n\
        This page is generated: `UPDATE=1 cargo test --workspace --test server goose_rest::versions`. It compares the routes of\n\
        goosed's releases with what this server answers. Requests and answers are described in [goose.md](goose.md).\n\n\
        - **served**: the route works here.\n\
        - **refused**: it is known, and answers 501 with a reason.\n\
        - **absent**: 404. These are downloads of local models, dictation, pairing with messengers, set-up of providers\n  \
        in a browser and other things that this server does not do.\n\n\
        | goosed | served | refused | absent |\n|---|---|---|---|\n"
        .to_owned();
    for version in VERSIONS {
        let (served, refused, absent) = count(answers, version);
        writeln!(page, "| 1.{version} | {served} | {refused} | {absent} |").unwrap();
    }
    page.push_str(
        "\n1.30 to 1.34 and 1.36 to 1.39 have the routes of their neighbours. goose 1.40 and later have no REST.\n",
    );
    let names = [(Answer::Served, "Served"), (Answer::Refused, "Refused"), (Answer::Absent, "Absent")];
    for (wanted, title) in names {
        write!(page, "\n## {title}\n\n| route | in goosed |\n|---|---|\n").unwrap();
        let mut rows: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for (answer, route) in answers {
            if *answer == wanted {
                rows.insert((route.path, route.method), versions(route));
            }
        }
        for ((path, method), versions) in rows {
            writeln!(page, "| `{method} {path}` | {versions} |").unwrap();
        }
    }
    page
}

fn versions(route: &OldRoute) -> String {
    let first = if route.first <= 8 { String::new() } else { format!("from 1.{}", route.first) };
    match (route.last, first.is_empty()) {
        (Some(last), true) => format!("until 1.{last}"),
        (Some(last), false) => format!("{first} to 1.{last}"),
        (None, true) => "all".to_owned(),
        (None, false) => first,
    }
}
