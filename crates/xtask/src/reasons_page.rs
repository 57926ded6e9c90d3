//! The reference of reasons, from the enum.

use portolan_api::Reason;
use portolan_api::reasons::Place;
use std::fmt::Write;

/// The page: every reason with where it is seen, what it means and what helps.
pub(crate) fn page() -> String {
    let mut text = String::from(
        "# Reasons\n\n\
         This page is written by `cargo xtask generate` from the types. `portolan status` and `portolan explain` print \
         reasons with their message, which has the names and the numbers.\n\n\
         Where a reason is seen:\n\n\
         - **condition**: `status.conditions[]` of a workload, a ForeignCluster or a PlacementReview;\n\
         - **pending**: `status.pending[]`, why a cluster takes no replicas or completions, and `portolan explain`;\n\
         - **placement**: `status.placements[]`, the part of a workload in one cluster;\n\
         - **cloud provisioner**: `status.leftOut[]` and `status.cluster.deprovisioning` of a CloudProvisioner;\n\
         - **event**: `kubectl get events`, `portolan events`;\n\
         - **staying**: `status.staying[]` of a MultiClusterRescheduler, why a workload does not come home;\n\
         - **review**: the output of `portolan plan` and `portolan explain`.\n\n\
         | reason | meaning | what helps | seen in |\n|---|---|---|---|\n",
    );
    for reason in Reason::all() {
        let (meaning, help) = (reason.meaning(), reason.help());
        let places = places(reason.places());
        let _ = writeln!(text, "| `{reason}` | {meaning} | {help} | {places} |");
    }
    text
}

/// The places in words; the conditions among them share the word "condition".
fn places(places: &[Place]) -> String {
    let types = places.iter().filter_map(|place| match place {
        Place::Condition(type_) => Some(format!("`{type_}`")),
        Place::Pending
        | Place::Placement
        | Place::Provisioner
        | Place::Event
        | Place::Staying
        | Place::Review => None,
    });
    let types = types.collect::<Vec<_>>().join(", ");
    let conditions = (!types.is_empty()).then(|| format!("condition {types}"));
    let others = places.iter().filter(|place| !matches!(place, Place::Condition(_))).map(Place::to_string);
    conditions.into_iter().chain(others).collect::<Vec<_>>().join("; ")
}
