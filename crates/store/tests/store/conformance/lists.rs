//! Lists of sessions: what a card shows, filters, search, pages.

use std::collections::HashSet;

use gander_domain::{
    Event, Policy, Principal, ResetReason, Seq, SessionId, SessionPolicy, SettingsPatch, Timestamp, Usage,
};
use gander_store::{PageKey, SessionQuery, SessionStatus, SessionSummary, Store, SummaryUsage, sessions_of};

use crate::conformance::Harness;
use crate::story::Story;

pub async fn cards_follow_the_log(harness: &impl Harness) {
    let store = harness.open().await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let mut expected = SessionSummary {
        session: story.session,
        owner: Principal::owner(),
        workspace: "/workspace".into(),
        agent: "native".into(),
        title: String::new(),
        created_at: story.entries[0].at,
        updated_at: story.entries[0].at,
        state: SessionStatus::Idle,
        archived: false,
        messages: 0,
        parent: None,
        usage: Some(SummaryUsage {
            policy: SessionPolicy { policy: Policy::Ask, chosen: false },
            input: 0,
            output: 0,
            cost: 0,
            last_call: None,
        }),
    };
    assert_eq!(store.session_summary(story.session).await.unwrap(), expected);
    story.run();
    let queued = story.queued();
    story.titled("First").opens().says("a").closes();
    (expected.title, expected.messages, expected.state) = ("First".into(), 1, SessionStatus::Running);
    check(&store, &mut story, &mut expected).await;
    let question = story.asks();
    expected.state = SessionStatus::Awaiting;
    check(&store, &mut story, &mut expected).await;
    story.answers(question);
    expected.state = SessionStatus::Running;
    check(&store, &mut story, &mut expected).await;
    assert!(store.run(queued).await.unwrap().is_some());
    // A message that begins to grow is no news for a list.
    story.opens().says("b").send(&store).await.unwrap();
    assert_eq!(store.session_summary(story.session).await.unwrap(), expected);
    story.closes();
    expected.messages = 2;
    check(&store, &mut story, &mut expected).await;
    story.ends().push(Event::ArchiveSet { archived: true });
    (expected.state, expected.archived) = (SessionStatus::Idle, true);
    check(&store, &mut story, &mut expected).await;
    let patch = SettingsPatch { agent: Some("codex".into()), ..Default::default() };
    story.push(Event::SettingsChanged { patch });
    expected.agent = "codex".into();
    check(&store, &mut story, &mut expected).await;
    check_usage(&store, &mut story, &mut expected).await;
    let store = harness.reopen(store).await;
    assert_eq!(store.session_summary(story.session).await.unwrap(), expected);
}

/// Usage is added up until the history begins anew; a sub-agent's is part of the sum and not the last call.
async fn check_usage(store: &impl Store, story: &mut Story, expected: &mut SessionSummary) {
    let usage = |input, output, child| Event::UsageAdded {
        usage: Usage { input, output, cost: Some(3), child, ..Usage::default() },
    };
    let session = story.session;
    let patch = SettingsPatch { policy: Some(Policy::Auto), ..Default::default() };
    story.push(Event::SettingsChanged { patch }).push(usage(5, 2, None)).push(usage(10, 1, Some(session)));
    expected.usage = Some(SummaryUsage {
        policy: SessionPolicy::chosen(Policy::Auto),
        input: 15,
        output: 3,
        cost: 6,
        last_call: Some((5, 2)),
    });
    check(store, story, expected).await;
    let reset = |reason| Event::HistoryReset { keep_to: Seq::ZERO, replacement: Vec::new(), reason };
    story.push(reset(ResetReason::Compacted));
    check(store, story, expected).await;
    story.push(usage(1, 1, None)).push(reset(ResetReason::Cleared)).push(usage(4, 4, None));
    expected.usage = Some(SummaryUsage {
        policy: SessionPolicy::chosen(Policy::Auto),
        input: 4,
        output: 4,
        cost: 3,
        last_call: Some((4, 4)),
    });
    check(store, story, expected).await;
    story.push(reset(ResetReason::Rewound));
    expected.usage = Some(SummaryUsage {
        policy: SessionPolicy::chosen(Policy::Auto),
        input: 0,
        output: 0,
        cost: 0,
        last_call: None,
    });
    check(store, story, expected).await;
}

async fn check(store: &impl Store, story: &mut Story, expected: &mut SessionSummary) {
    story.send(store).await.unwrap();
    expected.updated_at = story.entries.last().unwrap().at;
    assert_eq!(store.session_summary(story.session).await.unwrap(), *expected);
}

pub async fn filters_and_search_find_what_they_should(harness: &impl Harness) {
    let store = harness.open().await;
    let titles = ["Fix the GÄNSE", "fix 100% of_it", "Write the docs", "ganze Sätze", ""];
    for (number, title) in (1..).zip(titles) {
        let mut story = Story::owned(number, Principal::owner(), if number % 2 == 0 { "/even" } else { "/odd" });
        story.titled(title).create(&store).await;
        if number == 3 {
            story.push(Event::ArchiveSet { archived: true }).send(&store).await.unwrap();
        }
        if number == 4 {
            story.run();
            story.send(&store).await.unwrap();
        }
    }
    Story::owned(9, Principal::named("eve"), "/odd").titled("fix").create(&store).await;
    let all = sessions_of(Principal::owner());
    let text = |text: &str| SessionQuery { text: Some(text.to_owned()), ..all.clone() };
    assert_eq!(numbers(&store, all.clone()).await, [5, 4, 2, 1]);
    assert_eq!(numbers(&store, SessionQuery { non_empty: true, ..all.clone() }).await, [4, 2, 1]);
    assert_eq!(numbers(&store, SessionQuery { archived: true, ..all.clone() }).await, [3]);
    assert_eq!(numbers(&store, SessionQuery { workspace: Some("/odd".into()), ..all.clone() }).await, [5, 1]);
    assert_eq!(numbers(&store, SessionQuery { state: Some(SessionStatus::Running), ..all.clone() }).await, [4]);
    assert_eq!(numbers(&store, sessions_of(Principal::named("eve"))).await, [9]);
    assert_eq!(numbers(&store, sessions_of(Principal::named("nobody"))).await, [0; 0]);
    assert_eq!(numbers(&store, text("FIX")).await, [2, 1]);
    assert_eq!(numbers(&store, text("gänse the")).await, [1]);
    assert_eq!(numbers(&store, text("0% of_")).await, [2]);
    assert_eq!(numbers(&store, text("%")).await, [2], "nothing is a wildcard");
    assert_eq!(numbers(&store, text("'; DROP TABLE session")).await, [0; 0]);
    assert_eq!(numbers(&store, text("  ")).await, [5, 4, 2, 1]);
}

pub async fn paging_gives_each_once_while_others_change(harness: &impl Harness) {
    let store = harness.open().await;
    let mut stories: Vec<Story> = (1..=25).map(Story::new).collect();
    for story in &mut stories {
        // Many at the same time: the id decides.
        story.at(1_000_000).titled("same").create(&store).await;
    }
    let all = SessionQuery { limit: 4, ..sessions_of(Principal::owner()) };
    let mut seen: Vec<SessionId> = Vec::new();
    let mut after: Option<PageKey> = None;
    let mut late = Story::new(100);
    late.create(&store).await;
    loop {
        let page = store.sessions(SessionQuery { after, ..all.clone() }).await.unwrap();
        assert!(page.sessions.len() <= 4);
        seen.extend(page.sessions.iter().map(|card| card.session));
        // Those already seen change, and new ones come: neither may shift what follows.
        let told = stories.iter_mut().find(|story| seen.last() == Some(&story.session)).unwrap();
        told.at(900_000_000).titled("changed").send(&store).await.unwrap();
        let Some(next) = page.next else { break };
        let text = next.to_string();
        after = Some(text.parse().unwrap());
        assert_eq!(after, Some(next));
    }
    let distinct: HashSet<_> = seen.iter().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "none twice");
    assert_eq!(seen.len(), 26);
    assert!("x.y".parse::<PageKey>().is_err());
    assert_eq!(store.session_summary(late.session).await.unwrap().updated_at, Timestamp::from_micros(100_001_000));
}

/// The numbers of the sessions of a list.
async fn numbers(store: &impl Store, query: SessionQuery) -> Vec<u128> {
    let page = store.sessions(query).await.unwrap();
    assert_eq!(page.next, None);
    page.sessions.iter().map(|card| card.session.uuid().as_u128() >> 64).collect()
}
