//! How a manager reaches a store that it opens itself.

use divvy_core::leader::LeaderSettings;

use crate::store::StoreSettings;

/// The settings that a store is opened with: nothing in it takes longer than the
/// manager waits for.
pub(super) fn reach(settings: &StoreSettings, leader: &LeaderSettings) -> StoreSettings {
    // It says why before the time is over.
    let opening = leader.startup_timeout * 3 / 4;
    StoreSettings {
        connect_timeout: settings.connect_timeout.min(opening),
        operation_timeout: settings.operation_timeout.min(leader.operation_timeout),
        ..settings.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_store_waits_no_longer_for_an_operation_than_its_manager() {
        let store = StoreSettings::default();
        let mut leader = LeaderSettings::default();
        assert_eq!(reach(&store, &leader), store);
        leader.operation_timeout = Duration::from_millis(300);
        leader.startup_timeout = Duration::from_secs(4);
        let reach = reach(&store, &leader);
        assert_eq!(reach.operation_timeout, Duration::from_millis(300));
        assert_eq!(reach.connect_timeout, Duration::from_secs(3));
    }
}
