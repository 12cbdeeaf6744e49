//! Bad input of HTTP/2, frame by frame (row H18 of `interop/data/bad-inputs.tsv`): a farewell, an end, and no memory.
#![allow(clippy::unwrap_used)]

use gander_testkit::harness::{Launch, PATIENCE, Server, binary};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, RESET, SETTINGS, frame,
    literal, next_frame,
};

const ROWS: &str = include_str!("../../../../interop/data/bad-inputs.tsv");

/// What a flood may cost at the most.
const MEMORY: u64 = 16 << 20;

struct TestServer {
    server: Server,
    token: String,
    _root: tempfile::TempDir,
}

impl TestServer {
    async fn open() -> Self {
        let root = tempfile::tempdir().unwrap();
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), root.path());
        let server = launch.serve().await.unwrap();
        let token = launch.stdout(&["token"]).await.unwrap().trim().to_owned();
        Self { server, token, _root: root }
    }

    /// Sends these frames as fast as they are taken, hears everything meanwhile, and gives the frames that came.
    async fn flood(&self, frames: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Vec<(u8, Vec<u8>)> {
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let sending = tokio::spawn(async move {
            let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
            for piece in std::iter::once(begin).chain(frames) {
                if writer.write_all(&piece).await.is_err() {
                    return writer; // it reads no more
                }
            }
            writer
        });
        let heard = tokio::time::timeout(PATIENCE, all_frames(&mut reader)).await.expect("it is left open");
        drop(sending.await.unwrap());
        heard
    }

    /// A request that is as it should be, and how many connections there are beside it.
    async fn others(&self) -> u64 {
        let head = format!(
            "GET /gander/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["connections"].as_u64().unwrap() - 1
    }

    /// The header of a request whose body follows.
    fn post(&self, path: &str) -> Vec<u8> {
        let authorization = format!("Bearer {}", self.token);
        [&[0x83, 0x86][..], &literal(4, path), &literal(1, "localhost"), &literal(23, &authorization)].concat()
    }
}

/// `GET /ping`.
fn get() -> Vec<u8> {
    [&[0x82, 0x86][..], &literal(4, "/ping"), &literal(1, "localhost")].concat()
}

async fn all_frames(reader: &mut OwnedReadHalf) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(frame) = next_frame(reader).await {
        frames.push(frame);
    }
    frames
}

/// Stream ids of a client.
fn ids(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| 2 * index + 1)
}

#[test]
fn the_table_has_the_row_and_no_other_of_its_class() {
    let rows: Vec<&str> = ROWS.lines().filter(|row| row.split('\t').nth(1) == Some("http2")).collect();
    assert!(rows.len() == 1 && rows[0].starts_with("H18\t"), "{rows:?}");
}

#[tokio::test]
async fn h18_floods_end_with_a_farewell_and_cost_no_memory() {
    type Frames = Box<dyn Iterator<Item = Vec<u8>> + Send>;
    let test_server = TestServer::open().await;
    assert_eq!(test_server.others().await, 0);
    let (open, body) = (frame(HEADERS, END_HEADERS, 1, &test_server.post("/runs")), frame(DATA, 0, 1, &[]));
    let endless = frame(HEADERS, END_STREAM, 1, &get());
    let resets = || {
        ids(10_000).map(|id| {
            let get = frame(HEADERS, END_STREAM | END_HEADERS, id, &get());
            [get, frame(RESET, 0, id, &8_u32.to_be_bytes())].concat()
        })
    };
    let many = |kind, payload: &[u8]| {
        let frames = frame(kind, 0, u32::from(kind == PRIORITY), payload).repeat(100);
        Box::new(std::iter::repeat_n(frames, 1_000))
    };
    let floods: [(&str, Frames); 7] = [
        ("rapid reset at once", Box::new(std::iter::once(resets().flatten().collect()))),
        ("rapid reset", Box::new(resets())),
        (
            "CONTINUATION",
            Box::new(
                std::iter::once(endless).chain(std::iter::repeat_n(frame(CONTINUATION, 0, 1, &[0x40; 16_000]), 4_000)),
            ),
        ),
        ("SETTINGS", many(SETTINGS, &[])),
        ("PING", many(PING, &[0; 8])),
        ("PRIORITY", many(PRIORITY, &[0, 0, 0, 3, 1])),
        ("empty DATA", Box::new(std::iter::once(open).chain(std::iter::repeat_n(body.repeat(100), 1_000)))),
    ];
    for (name, frames) in floods {
        let before = test_server.server.process().memory();
        let heard = test_server.flood(frames).await;
        let farewell = heard.iter().filter(|(kind, _)| *kind == GOAWAY).count();
        assert!(farewell > 0, "{name}: no GOAWAY in {} frames", heard.len());
        let grown = test_server.server.process().peak_memory().saturating_sub(before);
        assert!(grown < MEMORY, "{name}: cost {} MiB", grown >> 20);
        // What is gone costs no more processor either.
        gander_testkit::harness::eventually(name, || async { test_server.others().await == 0 }).await.unwrap();
    }
}

/// A thousand requests with a ping each are no flood.
#[tokio::test]
async fn a_busy_client_is_served_to_the_end() {
    let test_server = TestServer::open().await;
    let mut stream = TcpStream::connect(test_server.server.address).await.unwrap();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
    let (mut answers, mut pongs) = (0, 0);
    let ids: Vec<u32> = ids(1_000).collect();
    for round in ids.chunks(100) {
        let request = |id: &u32| frame(HEADERS, END_STREAM | END_HEADERS, *id, &get());
        let requests = round.iter().flat_map(|id| [request(id), frame(PING, 0, 0, &[0; 8])].concat());
        stream.write_all(&requests.collect::<Vec<u8>>()).await.unwrap();
        let wanted = answers + round.len();
        while answers < wanted || pongs < wanted {
            let (kind, _) = tokio::time::timeout(PATIENCE, next_frame(&mut stream)).await.unwrap().expect("hung up");
            answers += usize::from(kind == HEADERS);
            pongs += usize::from(kind == PING);
        }
    }
    assert_eq!((answers, pongs), (1_000, 1_000));
}
