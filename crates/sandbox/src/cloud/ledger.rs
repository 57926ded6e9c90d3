//! Which machines there were, from when to when, and what they cost.

use jiff::Timestamp;

/// A machine that the cloud has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRecord {
    /// The cluster that it belongs to, as namespace/name.
    pub cluster: String,
    /// Its name.
    pub name: String,
    /// Its type; `control-plane` for the control plane.
    pub machine_type: String,
    /// What it costs per hour, in millionths.
    pub price: u64,
    /// When it was made.
    pub created: Timestamp,
    /// When it was removed.
    pub removed: Option<Timestamp>,
}

impl MachineRecord {
    /// For how many seconds it has existed by `now`.
    #[must_use]
    pub fn seconds(&self, now: Timestamp) -> u64 {
        let until = self.removed.unwrap_or(now);
        u64::try_from(until.duration_since(self.created).as_secs()).unwrap_or(0)
    }
}

/// All machines that the cloud has made, in the order of their making.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Vec<MachineRecord>);

impl Ledger {
    pub(super) fn begin(&mut self, record: MachineRecord) {
        self.0.push(record);
    }

    pub(super) fn end(&mut self, cluster: &str, name: &str, now: Timestamp) {
        let mut open = self.0.iter_mut().filter(|record| record.removed.is_none());
        if let Some(record) = open.find(|record| record.cluster == cluster && record.name == name) {
            record.removed = Some(now);
        }
    }

    pub(super) fn records(&self) -> &[MachineRecord] {
        &self.0
    }

    /// What all machines have cost by `now`, in millionths.
    pub(super) fn cost(&self, now: Timestamp) -> u64 {
        let spent: u128 =
            self.0.iter().map(|record| u128::from(record.seconds(now)) * u128::from(record.price)).sum();
        u64::try_from(spent / 3600).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_costs_from_its_making_to_its_removal() {
        let at = |minute: i64| Timestamp::from_second(60 * minute).unwrap();
        let record = |name: &str, price: u64| MachineRecord {
            cluster: "capi/burst".into(),
            name: name.into(),
            machine_type: "small".into(),
            price,
            created: at(0),
            removed: None,
        };
        let mut ledger = Ledger::default();
        ledger.begin(record("a", 40_000));
        ledger.begin(record("b", 100_000));
        ledger.end("capi/other", "a", at(10));
        ledger.end("capi/burst", "a", at(30));
        ledger.end("capi/burst", "a", at(50));
        assert_eq!(
            ledger.records()[0].removed,
            Some(at(30)),
            "the first end counts, and only of that cluster"
        );
        assert_eq!(ledger.cost(at(60)), 20_000 + 100_000);
    }
}
