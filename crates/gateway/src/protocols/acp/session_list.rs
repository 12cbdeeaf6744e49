//! A client's sessions, page by page.

use gander_domain::{Event, Seq, ServiceError, SessionId};
use gander_services::Services;
use gander_services::sessions::SessionFilter;
use gander_store::{DeltaForm, Limit, PageKey, SessionPage, SessionSummary, Store};
use gander_wire::acp::{ArchiveFilter, ListFilter, ListedSession};

use crate::ClientPeer;

/// Sessions on one page.
const PAGE_SIZE: u32 = 50;

pub(super) async fn session_list_page(
    services: &Services,
    peer: &ClientPeer,
    cwd: Option<String>,
    cursor: Option<String>,
    filter: ListFilter,
) -> Result<(Vec<ListedSession>, Option<String>), ServiceError> {
    let after = cursor.map(|cursor| cursor.parse()).transpose().map_err(ServiceError::BadParams)?;
    let workspace = cwd.map(|cwd| services.workspaces.canonical_name(cwd));
    let list = |archived| {
        let filter = SessionFilter {
            workspace: workspace.clone(),
            archived,
            // What somebody put away is there to be found.
            non_empty: !filter.unprompted && !archived,
            after,
            limit: PAGE_SIZE,
            ..SessionFilter::default()
        };
        services.sessions.list(&peer.caller, filter)
    };
    let page = match filter.archived {
        ArchiveFilter::Exclude => list(false).await?,
        ArchiveFilter::Only => list(true).await?,
        ArchiveFilter::Include => {
            let (others, archived) = futures::try_join!(list(false), list(true))?;
            merge_session_list_pages(others, archived)
        }
    };
    let next = page.next.map(|next| next.to_string());
    let store = services.hub.store();
    let listed = page.sessions.into_iter().map(|summary| session_list_row(&**store, summary));
    Ok((futures::future::join_all(listed).await, next))
}

/// The first page of two lists together, last changed first.
fn merge_session_list_pages(one: SessionPage, other: SessionPage) -> SessionPage {
    let more = one.next.is_some() || other.next.is_some();
    let mut summaries: Vec<SessionSummary> = one.sessions.into_iter().chain(other.sessions).collect();
    summaries.sort_by_key(|summary| std::cmp::Reverse((summary.updated_at, summary.session)));
    let cut = summaries.len() > PAGE_SIZE as usize;
    summaries.truncate(PAGE_SIZE as usize);
    let last = summaries.last().filter(|_| more || cut);
    let next = last.map(|summary| PageKey { updated_at: summary.updated_at, session: summary.session });
    SessionPage { sessions: summaries, next }
}

async fn session_list_row(store: &dyn Store, summary: SessionSummary) -> ListedSession {
    let SessionSummary { session, workspace, title, created_at, updated_at, archived, .. } = summary;
    let title = Some(title).filter(|title| !title.is_empty());
    let folders = session_list_folders(store, session).await;
    ListedSession { session, workspace, folders, title, created_at, updated_at, archived }
}

/// The further folders of a session, which its first entry names. One that was just deleted has none.
async fn session_list_folders(store: &dyn Store, session: SessionId) -> Vec<String> {
    let first =
        store.read(session, Seq::ZERO, Limit { entries: 1, bytes: 1 }, DeltaForm::Joined).await.unwrap_or_default();
    match first.into_iter().next().map(|entry| entry.event) {
        Some(Event::SessionCreated { folders, .. }) => folders,
        Some(_) | None => Vec::new(),
    }
}
