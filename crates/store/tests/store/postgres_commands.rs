//! Commands between nodes in PostgreSQL: rows that nobody can read, and those whose sender is gone.

use std::time::Duration;

use gander_domain::{Seq, SessionId, Timestamp};
use gander_store::{
    Append, ClusterStore, CommandAnswer, CommandId, Durability, NodeId, NodeInfo, Ownership, PostgresOptions,
    PostgresStore, SessionCommand, Store,
};
use gander_testkit::postgres::new_schema;
use gander_testkit::skip::skipped;
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use uuid::Uuid;

use crate::story::Story;

const LEASE: Duration = Duration::from_secs(600);

/// A schema's URL and two nodes over it; none if no PostgreSQL is installed.
async fn two_nodes(test: &str) -> Option<(String, PostgresStore, PostgresStore)> {
    let Some(url) = new_schema(&crate::SERVER) else {
        skipped(&format!("store::postgres_commands::{test}"), "PostgreSQL is not installed");
        return None;
    };
    let (owner, sender) = (join(&url, 1).await, join(&url, 2).await);
    Some((url, owner, sender))
}

async fn join(url: &str, node: u128) -> PostgresStore {
    let node = Some(NodeId(Uuid::from_u128(node)));
    let store = PostgresStore::open(PostgresOptions { node, ..PostgresOptions::new(url.parse().unwrap()) });
    let store = store.await.unwrap();
    let info = NodeInfo { label: "here".to_owned(), role: "all".to_owned(), version: "1".to_owned(), draining: false };
    cluster(&store).renew_lease(&info, LEASE).await.unwrap();
    store
}

fn cluster(store: &PostgresStore) -> &dyn ClusterStore {
    store.cluster().unwrap()
}

fn command(number: u128, session: SessionId, origin: &PostgresStore) -> SessionCommand {
    let body = json!({ "number": number as u64 });
    SessionCommand { id: CommandId(Uuid::from_u128(number)), session, origin: cluster(origin).node(), body }
}

fn kept(story: &mut Story) -> Append {
    Append { ownership: Ownership::Keep, ..story.append(Durability::Barrier) }
}

/// A session of the first node, with three commands of the second.
async fn three_commands(owner: &PostgresStore, sender: &PostgresStore) -> (Story, Vec<SessionCommand>) {
    let mut story = Story::new(1);
    owner.create(kept(&mut story), vec![]).await.unwrap();
    let sent: Vec<_> = (1..=3).map(|number| command(number, story.session, sender)).collect();
    for command in sent.clone() {
        cluster(sender).send_command(command).await.unwrap();
    }
    (story, sent)
}

/// What another version wrote, or a hand: brackets that nest deeper than any reader goes.
async fn make_unreadable(url: &str, column: &str, command: CommandId) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("UPDATE command SET {column} = $1 WHERE id = $2"));
    let text = format!("{}{}", "[".repeat(500), "]".repeat(500));
    sqlx::query(sql).bind(text).bind(command.0).execute(&mut connection).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_command_does_not_hide_the_others() {
    let Some((url, owner, sender)) = two_nodes("an_unreadable_command_does_not_hide_the_others").await else { return };
    let (mut story, mut sent) = three_commands(&owner, &sender).await;
    make_unreadable(&url, "body", sent[0].id).await;
    sent[0].body = Value::Null;
    assert_eq!(cluster(&owner).pending_commands(9).await.unwrap(), sent, "its owner can refuse it");
    story.titled("done");
    let answer = |number: usize| CommandAnswer { command: sent[number].id, body: json!(number) };
    let append = Append { answers: (0..3).map(answer).collect(), ..kept(&mut story) };
    owner.append(append).await.unwrap();
    make_unreadable(&url, "answer", sent[1].id).await;
    let mut taken = cluster(&sender).take_answers().await.unwrap();
    taken.sort_by_key(|answer| answer.command);
    let unread = CommandAnswer { command: sent[1].id, body: Value::Null };
    assert_eq!(taken, [answer(0), unread, answer(2)], "each sender hears something");
}

#[tokio::test]
async fn commands_of_a_node_that_is_gone_are_forgotten() {
    let Some((url, owner, sender)) = two_nodes("commands_of_a_node_that_is_gone_are_forgotten").await else { return };
    let (mut story, _) = three_commands(&owner, &sender).await;
    let kept_one = command(9, story.session, &owner);
    cluster(&owner).send_command(kept_one.clone()).await.unwrap();
    owner.maintain(Timestamp::default()).await.unwrap();
    assert_eq!(cluster(&owner).pending_commands(9).await.unwrap().len(), 4, "both nodes are there");
    cluster(&sender).leave().await.unwrap();
    owner.maintain(Timestamp::default()).await.unwrap();
    assert_eq!(cluster(&owner).pending_commands(9).await.unwrap(), std::slice::from_ref(&kept_one));
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let row = sqlx::query("SELECT commands::bigint FROM session").fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 1, "and not counted as work");
    story.titled("done");
    let answers = vec![CommandAnswer { command: kept_one.id, body: json!("yes") }];
    let head = owner.append(Append { answers, ..kept(&mut story) }).await.unwrap().head;
    assert_eq!(head, Seq(2));
}
