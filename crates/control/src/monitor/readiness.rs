//! Whether the controllers of a leader are ready.

use super::Running;

/// One thing that must hold before the controllers of a leader are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is about: a kind of the hub, or a step that comes before the first decision.
    pub name: &'static str,
    /// Why it does not hold, if it does not.
    pub problem: Option<&'static str>,
    /// Whether the API server of the hub answers in what this rests on.
    pub hub_answers: bool,
}

/// Every kind is listed and its watch works, and all objects belong to this leader.
pub(super) fn checks(running: &Running) -> Vec<Check> {
    let kinds = running.kinds.iter().map(|each| {
        let failing = each.health.failure().is_some();
        let problem = match (each.health.is_listed(), failing) {
            _ if each.is_left_out() => None,
            (false, false) => Some("is being listed"),
            (false, true) => Some("cannot be listed"),
            (true, true) => Some("cannot be watched"),
            (true, false) => None,
        };
        Check { name: each.kind, problem, hub_answers: each.health.is_listed() && !failing }
    });
    let unclaimed = Some("objects are being taken over from the leader before");
    let fence = Check {
        name: "fence",
        problem: unclaimed.filter(|_| !running.fence.is_closed()),
        hub_answers: false,
    };
    kinds.chain([fence]).collect()
}
