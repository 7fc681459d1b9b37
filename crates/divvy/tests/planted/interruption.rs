//! How clients of careless stores learn that their store is away.

use divvy::store::ConnectionReport;
use tokio::sync::watch;

/// Reports a connection as lost while the store is `away`, and as regained when it is back.
pub(crate) fn report(away: &watch::Sender<bool>, connection: &ConnectionReport) {
    let (mut away, connection) = (away.subscribe(), connection.clone());
    tokio::spawn(async move {
        while away.changed().await.is_ok() {
            match *away.borrow() {
                true => connection.lost("interrupted"),
                false => connection.regained(),
            }
        }
    });
}
