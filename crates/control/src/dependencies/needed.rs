//! Who needs a ConfigMap or Secret in a member, as the object there says.

use std::collections::BTreeSet;

/// How many workloads are named at most. With more the object says only that there are many: it need not be written for
/// each of them, and the hub knows who they are.
const NAMED_AT_MOST: usize = 32;

/// What stands for workloads that are not named.
const MANY: &str = "*";

/// The workloads that need an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NeededBy {
    /// These, by uid.
    Workloads(BTreeSet<String>),
    /// More than are named.
    Many,
}

impl Default for NeededBy {
    fn default() -> Self {
        Self::Workloads(BTreeSet::new())
    }
}

impl NeededBy {
    /// Reads what stands on an object. More than we would write was not written by us; it is not read on.
    pub(super) fn read(text: &str) -> Self {
        let mut named = BTreeSet::new();
        for uid in text.split(',').filter(|uid| !uid.is_empty()) {
            if uid == MANY || named.len() == NAMED_AT_MOST {
                return Self::Many;
            }
            named.insert(uid.to_owned());
        }
        Self::Workloads(named)
    }

    /// As it is written on an object.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Workloads(named) => named.iter().cloned().collect::<Vec<_>>().join(","),
            Self::Many => MANY.to_owned(),
        }
    }

    /// Whether the workload is among them; of many, every one may be.
    pub(super) fn includes(&self, workload: &str) -> bool {
        match self {
            Self::Workloads(named) => named.contains(workload),
            Self::Many => true,
        }
    }

    /// Whether the workload is named.
    pub(super) fn names(&self, workload: &str) -> bool {
        matches!(self, Self::Workloads(named) if named.contains(workload))
    }

    /// With one more.
    pub(super) fn and(&self, workload: &str) -> Self {
        match self {
            Self::Workloads(named) if named.contains(workload) => self.clone(),
            Self::Workloads(named) if named.len() < NAMED_AT_MOST => {
                Self::Workloads(named.iter().cloned().chain([workload.to_owned()]).collect())
            }
            _ => Self::Many,
        }
    }

    /// Those that are named.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        let named = match self {
            Self::Workloads(named) => Some(named),
            Self::Many => None,
        };
        named.into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_thousand_workloads_are_not_named_one_by_one() {
        let mut needed = NeededBy::default();
        let mut written = BTreeSet::new();
        for index in 0..7000 {
            needed = needed.and(&format!("00000000-0000-4000-8000-{index:012}"));
            written.insert(needed.text());
        }
        assert_eq!(needed, NeededBy::Many);
        assert_eq!(written.len(), NAMED_AT_MOST + 1, "it is written no more often");
        assert!(written.iter().all(|text| text.len() < 2000));
        assert!(needed.includes("anybody") && !needed.names("anybody"));
        assert_eq!(NeededBy::read(&needed.text()), needed);
    }

    #[test]
    fn more_than_we_write_is_not_read() {
        let uids: Vec<String> = (0..3000).map(|index| format!("u{index}")).collect();
        assert_eq!(NeededBy::read(&uids.join(",")), NeededBy::Many);
        let few = NeededBy::read("a,b");
        assert!(few.names("a") && !few.includes("c"));
        assert_eq!((few.text(), few.and("a")), ("a,b".to_owned(), few.clone()));
    }
}
