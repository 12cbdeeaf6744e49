//! A session's history that a client brings along as addresses: our own are looked up, others are fetched.

use std::time::Duration;

use gander_domain::SessionView;
use gander_store::clock;
use gander_tools::download_page;
use gander_wire::acp_rest::{AcpRestMessage, AcpRestRefusal, HistoryMessage, requests};

use super::AcpRest;
use super::sessions::MessageReference;

/// Addresses in one history.
const MAX_HISTORY_URLS: usize = 1_000;

/// Bytes behind one address.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Time for all of them.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(20);

impl AcpRest {
    /// What is said at these addresses. `None` if the session holds just that, or nothing was named.
    pub(super) async fn import_history(
        &self,
        session: Option<&SessionView>,
        addresses: &[String],
    ) -> Result<Option<Vec<HistoryMessage>>, AcpRestRefusal> {
        if addresses.is_empty() {
            return Ok(None);
        }
        if addresses.len() > MAX_HISTORY_URLS {
            return Err(AcpRestRefusal::unreadable(format!(
                "history is longer than {MAX_HISTORY_URLS}: {}",
                addresses.len()
            )));
        }
        let references: Vec<Option<MessageReference>> =
            addresses.iter().map(|address| self.own_reference(address)).collect();
        if let Some(view) = session {
            let places: Vec<_> =
                self.completed_messages(view.session).await?.into_iter().map(|kept| (kept.seq, kept.index)).collect();
            let same = |reference: &Option<MessageReference>, reference_position: &(_, u32)| {
                reference.is_some_and(|own| own.session == view.session && (own.seq, own.index) == *reference_position)
            };
            if places.len() == references.len()
                && references.iter().zip(&places).all(|(own, reference_position)| same(own, reference_position))
            {
                return Ok(None);
            }
        }
        let all = async {
            let mut lines = Vec::new();
            for (address, reference) in addresses.iter().zip(references) {
                lines.push(self.fetch_message(address, reference).await?);
            }
            Ok(Some(lines))
        };
        let late = |_| AcpRestRefusal::unreadable("history could not be fetched in time");
        tokio::time::timeout(IMPORT_TIMEOUT, all).await.map_err(late)?
    }

    async fn fetch_message(
        &self,
        address: &str,
        reference: Option<MessageReference>,
    ) -> Result<HistoryMessage, AcpRestRefusal> {
        let gone = || AcpRestRefusal::unreadable(format!("history is gone: {address}"));
        if let Some(reference) = reference {
            let kept = self.load_message(reference).await.ok_or_else(gone)?;
            return Ok(HistoryMessage { role: kept.message.role, parts: kept.message.parts });
        }
        let fetched = download_page(&self.guard, address, MAX_MESSAGE_BYTES).await;
        let bytes =
            fetched.map_err(|error| AcpRestRefusal::unreadable(format!("history cannot be fetched: {error}")))?;
        let message: AcpRestMessage = serde_json::from_slice(&bytes)
            .map_err(|error| AcpRestRefusal::unreadable(format!("history is no message, {error}: {address}")))?;
        requests::read_acp_rest_history_message(&message)
    }

    /// The proof in an address is ours or it is not: whatever its host.
    fn own_reference(&self, address: &str) -> Option<MessageReference> {
        let (_, id) = address.rsplit_once("/resources/")?;
        self.resources.verify_resource_id(id, clock::current_time())
    }
}
