//! Clusters that workloads are moved away from.

use super::decide::Field;
use super::{Placed, Standing};
use portolan_api::placement::PlacementCause;
use std::collections::BTreeMap;

/// Leaves in clusters that are to be left what found no other place: a move never loses replicas.
pub(super) fn stay(field: &Field<'_>, pending: u32, placed: &mut BTreeMap<String, Placed>) {
    let mut pending = pending;
    for (candidate, standing) in field.iter() {
        if !matches!(standing, Standing::Leaving(_)) {
            continue;
        }
        let replicas = pending.min(candidate.keeps());
        if replicas > 0 {
            let cause = PlacementCause::Staying;
            placed.insert(candidate.name().to_owned(), Placed { replicas, cause, stands_in_for: Vec::new() });
            pending -= replicas;
        }
    }
}
