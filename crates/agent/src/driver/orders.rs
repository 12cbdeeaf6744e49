//! A run's orders, some of which may have come before anybody was there to follow them.

use std::collections::VecDeque;

use gander_domain::Order;
use tokio::sync::mpsc;

/// A run's orders, in order.
pub struct Orders {
    early: VecDeque<Order>,
    later: mpsc::Receiver<Order>,
}

impl From<mpsc::Receiver<Order>> for Orders {
    fn from(later: mpsc::Receiver<Order>) -> Self {
        Self { early: VecDeque::new(), later }
    }
}

impl Orders {
    /// Until the run is cancelled. What else is ordered meanwhile is kept.
    pub async fn wait_for_cancel(&mut self) {
        while !self.early.contains(&Order::Cancel) {
            match self.later.recv().await {
                Some(order) => self.early.push_back(order),
                None => std::future::pending().await,
            }
        }
    }

    /// The next one. Nothing is lost if the caller stops waiting.
    pub(super) async fn next_order(&mut self) -> Option<Order> {
        match self.early.pop_front() {
            Some(order) => Some(order),
            None => self.later.recv().await,
        }
    }
}
