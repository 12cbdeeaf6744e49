//! Rebuilding what a session is from its log.

use gander_domain::{Context, Seq, SessionId, SessionView};
use gander_store::{DeltaForm, Limit, Store, StoreError};

/// The view after this place, or after the log's end: the nearest snapshot and what follows it.
pub(super) async fn rebuild_view(store: &dyn Store, session: SessionId, upto: Seq) -> Result<SessionView, StoreError> {
    let snapshot = store.snapshot(session, SessionView::VERSION, upto).await?;
    let mut view: Option<SessionView> = snapshot.and_then(|snapshot| serde_json::from_slice(&snapshot.body).ok());
    loop {
        let after = view.as_ref().map_or(Seq::ZERO, |view| view.head);
        let page = store.read(session, after, Limit::default(), DeltaForm::Exact).await?;
        let whole = page.is_empty();
        for entry in page.iter().filter(|entry| entry.seq <= upto) {
            match &mut view {
                Some(view) => view.apply(entry),
                None => view = SessionView::from_created(entry),
            }
        }
        if whole || page.last().is_some_and(|entry| entry.seq >= upto) {
            return view.ok_or(StoreError::NotFound(session));
        }
        if view.is_none() {
            return Err(StoreError::Corrupt(format!("log does not begin with its session: {session}")));
        }
    }
}

/// The conversation of a session in which nothing was said.
pub(super) fn empty_rebuilt_context(view: &SessionView) -> Context {
    let mut context = Context::empty(view.settings.clone(), view.workspace.clone(), view.folders.clone());
    context.provenance = view.provenance.clone();
    context
}

/// The conversation up to the view's head, folded from the last reset that kept nothing.
pub(super) async fn rebuild_context(
    store: &dyn Store,
    view: &SessionView,
    committed: Seq,
) -> Result<Context, StoreError> {
    let mut context = empty_rebuilt_context(view);
    context.has_title = view.title.is_some();
    context.head = Seq(view.context_from.0.saturating_sub(1));
    while context.head < committed {
        let page = store.read(view.session, context.head, Limit::default(), DeltaForm::Joined).await?;
        if page.is_empty() {
            break;
        }
        page.iter().filter(|entry| entry.seq <= committed).for_each(|entry| context.apply(entry));
        if page.last().is_some_and(|entry| entry.seq >= committed) {
            break;
        }
    }
    // What was read before the last reset may have left its mark, on a summary or on files.
    context.provenance = view.provenance.clone();
    Ok(context)
}
