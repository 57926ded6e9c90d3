//! What users see of a record.

use super::{Outcome, Record, Step};
use portolan_api::livemigration::{MigrationOrder, MigrationPhase};

impl Record {
    /// The phase of the LiveMigration. It is over only when nothing is left of the migration on any node.
    #[must_use]
    pub fn phase(&self) -> MigrationPhase {
        let delete_first = self.terms.order == MigrationOrder::DeleteFirst;
        match self.step {
            Step::Reserve => MigrationPhase::Preflight,
            Step::Prepare => MigrationPhase::Peering,
            Step::Freeze | Step::Checkpoint => MigrationPhase::Checkpointing,
            Step::Transfer => MigrationPhase::Transferring,
            Step::Commit | Step::DeleteSource if delete_first => MigrationPhase::Deleting,
            Step::Restore => MigrationPhase::Restoring,
            Step::Verify => MigrationPhase::Verifying,
            Step::Commit | Step::DeleteSource => MigrationPhase::Committing,
            Step::Clean if self.outcome == Some(Outcome::Succeeded) => MigrationPhase::Committing,
            Step::ThawSource | Step::DiscardDestination | Step::Clean => MigrationPhase::RollingBack,
            Step::Done => match self.outcome {
                Some(Outcome::Succeeded) => MigrationPhase::Succeeded,
                Some(Outcome::Aborted) => MigrationPhase::Aborted,
                Some(Outcome::Failed | Outcome::Lost) | None => MigrationPhase::Failed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::Terms;
    use jiff::Timestamp;
    use portolan_api::Duration;

    #[test]
    fn users_see_each_phase_in_its_order() {
        use MigrationPhase::{
            Checkpointing, Committing, Deleting, Peering, Preflight, Restoring, Succeeded, Transferring,
            Verifying,
        };
        let middle = [Transferring, Restoring, Verifying];
        for (order, expected) in [
            (
                MigrationOrder::Transactional,
                [&[Preflight, Peering, Checkpointing][..], &middle, &[Committing, Succeeded]].concat(),
            ),
            (
                MigrationOrder::DeleteFirst,
                [&[Preflight, Peering, Checkpointing, Deleting][..], &middle, &[Committing, Succeeded]]
                    .concat(),
            ),
        ] {
            let second = Duration::from_secs(1);
            let terms = Terms { order, timeout: second, max_downtime: second };
            let mut record = Record::new("m".to_owned(), terms, 1, Timestamp::UNIX_EPOCH);
            record.outcome = Some(Outcome::Succeeded);
            let mut phases: Vec<MigrationPhase> = Vec::new();
            for step in Step::sequence(order) {
                record.step = *step;
                phases.push(record.phase());
            }
            phases.dedup();
            assert_eq!(phases, expected);
        }
    }
}
