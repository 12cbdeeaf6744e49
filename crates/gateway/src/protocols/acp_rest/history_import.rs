//! A session's history that a client brings along as addresses: our own are looked up, others are fetched.

use std::time::Duration;

use gander_domain::SessionView;
use gander_store::clock;
use gander_tools::download;
use gander_wire::acp_rest::{Line, Message, Refusal, input};

use super::AcpRest;
use super::sessions::Reference;

/// Addresses in one history.
const MOST: usize = 1_000;

/// Bytes behind one address.
const LARGEST: usize = 4 << 20;

/// Time for all of them.
const TIME: Duration = Duration::from_secs(20);

impl AcpRest {
    /// What is said at these addresses. `None` if the session holds just that, or nothing was named.
    pub(super) async fn history(
        &self,
        session: Option<&SessionView>,
        addresses: &[String],
    ) -> Result<Option<Vec<Line>>, Refusal> {
        if addresses.is_empty() {
            return Ok(None);
        }
        if addresses.len() > MOST {
            return Err(Refusal::unreadable(format!("history is longer than {MOST}: {}", addresses.len())));
        }
        let references: Vec<Option<Reference>> = addresses.iter().map(|address| self.own(address)).collect();
        if let Some(view) = session {
            let places: Vec<_> =
                self.kept(view.session).await?.into_iter().map(|kept| (kept.seq, kept.index)).collect();
            let same = |reference: &Option<Reference>, place: &(_, u32)| {
                reference.is_some_and(|own| own.session == view.session && (own.seq, own.index) == *place)
            };
            if places.len() == references.len() && references.iter().zip(&places).all(|(own, place)| same(own, place)) {
                return Ok(None);
            }
        }
        let all = async {
            let mut lines = Vec::new();
            for (address, reference) in addresses.iter().zip(references) {
                lines.push(self.line(address, reference).await?);
            }
            Ok(Some(lines))
        };
        let late = |_| Refusal::unreadable("history could not be fetched in time");
        tokio::time::timeout(TIME, all).await.map_err(late)?
    }

    async fn line(&self, address: &str, reference: Option<Reference>) -> Result<Line, Refusal> {
        let gone = || Refusal::unreadable(format!("history is gone: {address}"));
        if let Some(reference) = reference {
            let kept = self.message(reference).await.ok_or_else(gone)?;
            return Ok(Line { role: kept.message.role, parts: kept.message.parts });
        }
        let fetched = download(&self.guard, address, LARGEST).await;
        let bytes = fetched.map_err(|error| Refusal::unreadable(format!("history cannot be fetched: {error}")))?;
        let message: Message = serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::unreadable(format!("history is no message, {error}: {address}")))?;
        input::line(&message)
    }

    /// The proof in an address is ours or it is not: whatever its host.
    fn own(&self, address: &str) -> Option<Reference> {
        let (_, id) = address.rsplit_once("/resources/")?;
        self.resources.reference(id, clock::now())
    }
}
