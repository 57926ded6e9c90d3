//! Refusals of many clusters in few words: some in full, the others counted.

use crate::placement::Refusal;
use portolan_api::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Refusals that are told in full, and how many more there are for which reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary<'a> {
    /// The clusters that are told in full, in order.
    pub told: BTreeMap<&'a str, &'a Refusal>,
    /// How many others there are, by reason.
    pub others: BTreeMap<Reason, usize>,
}

/// Sums up refusals: tells at most so many clusters in full. The clusters that the user named go first, then one for each
/// reason, so that every reason is explained, then the others by name.
#[must_use]
pub fn summarise<'a>(refusals: &'a BTreeMap<String, Refusal>, named: &[String], most: usize) -> Summary<'a> {
    let mut reasons = BTreeSet::new();
    let (mut first, mut examples, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for (cluster, refusal) in refusals {
        let group = if named.contains(cluster) {
            &mut first
        } else if reasons.insert(refusal.reason) {
            &mut examples
        } else {
            &mut rest
        };
        group.push((cluster.as_str(), refusal));
    }
    let mut all = first.into_iter().chain(examples).chain(rest);
    let told = all.by_ref().take(most).collect();
    let mut others = BTreeMap::new();
    for (_, refusal) in all {
        *others.entry(refusal.reason).or_default() += 1;
    }
    Summary { told, others }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<_> =
            self.told.iter().map(|(cluster, why)| format!("{cluster}: {}", why.message)).collect();
        write!(f, "{}", told.join("; "))?;
        let count: usize = self.others.values().sum();
        if count > 0 {
            // The most frequent reason first.
            let mut others: Vec<_> = self.others.iter().collect();
            others.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let others: Vec<_> = others.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            write!(f, "; and {count} more: {}", others.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(count: usize) -> BTreeMap<String, Refusal> {
        let refusal = |index: usize| {
            let reason = if index.is_multiple_of(25) { Reason::NamespaceNotFound } else { Reason::NoRoom };
            (format!("c{index:04}"), Refusal { reason, message: format!("because of {reason}") })
        };
        (0..count).map(refusal).collect()
    }

    #[test]
    fn few_are_told_as_they_are() {
        let few = refusals(2);
        let told = "c0000: because of NamespaceNotFound; c0001: because of NoRoom";
        assert_eq!(summarise(&few, &[], 8).to_string(), told);
        assert_eq!(summarise(&BTreeMap::new(), &[], 8).to_string(), "");
    }

    #[test]
    fn of_many_the_named_and_every_reason_are_told_and_the_others_counted() {
        let many = refusals(1000);
        let named = ["c0999".to_owned(), "c0500".to_owned()];
        let summary = summarise(&many, &named, 4);
        assert_eq!(summary.told.keys().copied().collect::<Vec<_>>(), ["c0000", "c0001", "c0500", "c0999"]);
        assert!(
            summary.to_string().ends_with("; and 996 more: 958 NoRoom, 38 NamespaceNotFound"),
            "{summary}"
        );
        assert!(summarise(&many, &[], 8).to_string().len() < 1000);
    }
}
