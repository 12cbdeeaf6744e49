//! Orders to a back-end, for those that heed no other than to stop.

use gander_domain::Order;
use tokio::sync::mpsc;

/// Waits for the order to stop. A session that is gone gives none: its token says so.
pub(super) async fn wait_for_cancel_order(orders: &mut mpsc::Receiver<Order>) {
    loop {
        match orders.recv().await {
            Some(Order::Cancel) => return,
            Some(
                Order::Begin { .. }
                | Order::Resume { .. }
                | Order::RunTool { .. }
                | Order::Answered { .. }
                | Order::Steer { .. }
                | Order::Configured { .. },
            ) => {}
            None => return std::future::pending().await,
        }
    }
}
