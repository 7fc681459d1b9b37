//! The careless store forgets.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy::store::conformance::Forgetting;
use divvy::store::{Leases, Quarantine, QuarantineId, QuarantineReport, StoreError};
use divvy_core::store::LeaseTable;

use super::careless_leases::{CarelessLeases, Client, FOREVER, State};
use super::lease_defects::LeaseDefect as Defect;

#[async_trait]
impl Forgetting for CarelessLeases {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        Ok(self.client(cluster, false))
    }

    async fn restart(&self) {
        let mut state = self.server.state();
        if self.server.defect != Defect::RestartRepeatsTheQuarantine {
            state.quarantines += 1;
        }
        if self.server.defect != Defect::RestartIsNotNoticed {
            state.begin_quarantine();
        }
    }

    async fn empty(&self) {
        let mut state = self.server.state();
        state.table = LeaseTable::default();
        if self.server.defect != Defect::LossRepeatsTheQuarantine {
            state.quarantines += 1;
        }
        if self.server.defect != Defect::LossIsNotNoticed {
            state.begin_quarantine();
        }
    }
}

impl State {
    fn begin_quarantine(&mut self) {
        let id = QuarantineId::new(self.quarantines.to_string());
        self.table.begin_quarantine(id);
    }
}

impl Client {
    /// Takes in a report, with one mistake.
    pub(super) fn quarantine(&self, report: &QuarantineReport) -> Quarantine {
        let mut report = report.clone();
        match self.server.defect {
            Defect::QuarantineIsShort => {
                if let Some((_, waited)) = &mut report.waited {
                    *waited += Duration::from_secs(1);
                }
            }
            Defect::QuarantineByTheLeaseOfWhoAsks => {
                if let Some((_, waited)) = &mut report.waited
                    && *waited >= report.longest_lease
                {
                    *waited = FOREVER;
                }
            }
            _ => {}
        }
        self.server.state().table.report(&report)
    }
}
