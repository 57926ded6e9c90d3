//! What the workload's status says: pure, from the decision and what was seen.

use super::Workload;
use super::availability;
use super::notes::Notes;
use super::observe::ClusterSnapshot;
use super::replace::is_replaced;
use crate::copies::Failure;
use crate::dependencies::{finding, needs_recorded};
use crate::driver::Declared;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::placement::{PendingPlacement, PlacementState, PlacementStatus, ReplicasMode};
use portolan_api::{MultiClusterDeploymentSpec, MultiClusterDeploymentStatus, selector};
use portolan_core::placement::{Decision, Kept, KeptBecause, Order, Placed, unknown_origin_message};
use portolan_core::summary::summarise;
use std::collections::BTreeMap;

/// How many clusters are told in full in `status.pending`, and in a condition.
const PENDING_AT_MOST: usize = 32;
const TOLD_AT_MOST: usize = 8;

/// The new status. Numbers of a silent cluster stay as last reported.
pub(super) fn status(
    workload: &Workload,
    decision: &Decision,
    seen: &BTreeMap<String, ClusterSnapshot>,
    notes: &Notes,
    now: &Time,
) -> MultiClusterDeploymentStatus {
    let object = &workload.object;
    let before = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    let mut placements: Vec<PlacementStatus> = decision
        .placed
        .iter()
        .map(|(cluster, placed)| {
            let last = before.placements.iter().find(|each| each.cluster == *cluster).cloned();
            let mut placement = PlacementStatus {
                cluster: cluster.clone(),
                replicas: signed(placed.replicas),
                staying_replicas: signed(placed.staying()),
                cause: Some(placed.cause),
                substitute_for: Some(placed.stands_in_for.join(",")).filter(|names| !names.is_empty()),
                ..last.unwrap_or_default()
            };
            observed(&mut placement, seen.get(cluster), notes.failures.get(cluster), now);
            noted(&mut placement, placed, notes);
            placement
        })
        .collect();
    let needs = |sight: &ClusterSnapshot| {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let on_record = before.placements.iter().any(|each| each.cluster == sight.candidate.name());
        let asked = sight.is_known && on_record && workload.has_dependencies();
        let member = sight.member.as_ref().filter(|_| asked);
        member.is_some_and(|member| needs_recorded(member, namespace, workload.uid()))
    };
    // A copy that is no longer wanted stays on record until it is gone, and all that was carried for it.
    for (cluster, sight) in seen.iter().filter(|(cluster, _)| !decision.placed.contains_key(*cluster)) {
        let last = before.placements.iter().find(|each| each.cluster == *cluster).cloned();
        let left = last.is_some() && (!sight.is_known || needs(sight));
        let still_there = sight.copy.is_some() || left;
        if still_there {
            let mut placement = PlacementStatus { cluster: cluster.clone(), ..last.unwrap_or_default() };
            observed(&mut placement, Some(sight), notes.failures.get(cluster), now);
            (placement.replicas, placement.staying_replicas) = (0, 0);
            placement.state = if sight.is_known { PlacementState::Removing } else { PlacementState::Unknown };
            if let (Some(copy), Some(order)) = (&sight.copy, notes.orders.get(cluster)) {
                // That it is being deleted is not told for itself: in a moment it is gone.
                surges_first(
                    &mut placement,
                    match order {
                        Order::Scale { replicas } | Order::Apply { replicas } => signed(*replicas),
                        Order::Keep | Order::Delete => copy.replicas,
                    },
                );
            }
            placements.push(placement);
        }
    }
    placements.sort_by(|one, other| one.cluster.cmp(&other.cluster));

    let sum = |count: fn(&PlacementStatus) -> i32| placements.iter().map(count).sum::<i32>();
    let replicas = sum(|each| each.replicas);
    // Copies that are being removed still run, but they are not what was asked for.
    let capped = |count: i32, of: i32| count.min(of);
    let ready = placements.iter().map(|each| capped(each.ready_replicas, each.replicas)).sum::<i32>();
    let pending = signed(decision.pending);
    let asked = replicas + pending;
    let holding: Vec<_> = placements.iter().filter(|each| each.replicas > 0).collect();
    let summary =
        holding.iter().map(|each| format!("{}={}", each.cluster, each.replicas)).collect::<Vec<_>>();
    let mut status = MultiClusterDeploymentStatus {
        observed_generation: generation,
        replicas,
        scale_replicas: match object.spec.replicas_mode {
            ReplicasMode::PerLocation => holding.iter().map(|each| each.replicas).max().unwrap_or(0),
            ReplicasMode::Total => replicas,
        },
        ready_replicas: ready,
        updated_replicas: placements.iter().map(|each| capped(each.updated_replicas, each.replicas)).sum(),
        available_replicas: placements
            .iter()
            .map(|each| capped(each.available_replicas, each.replicas))
            .sum(),
        pending_replicas: pending,
        ready_summary: Some(format!("{ready}/{asked}")),
        locations: holding.iter().map(|each| each.cluster.clone()).collect(),
        locations_summary: (!summary.is_empty()).then(|| summary.join(",")),
        pending: summarise(&decision.refusals, &object.spec.placement.locations, PENDING_AT_MOST)
            .told
            .iter()
            .map(|(cluster, why)| refusal(cluster, why))
            .collect(),
        selector: Some(selector::to_text(&object.spec.selector)),
        resource_requests: workload
            .shape
            .as_ref()
            .map(|shape| shape.requests.quantities())
            .unwrap_or_default(),
        images: images(workload),
        placements: Vec::new(),
        ..before.clone()
    };
    status.resource_requests.remove(portolan_core::capacity::PODS);
    let drifted = drifted(&notes.drifts);
    let strategy = object.spec.strategy.as_ref().map(|strategy| &strategy.0);
    let progress = availability::findings(&placements, pending, object.spec.paused, strategy);
    let candidates = seen.values().map(|each| &each.candidate);
    let unknown_origin = unknown_origin_message(&object.spec.placement, candidates);
    let mut summed_up = findings(&placements, pending, ready, asked, decision, &object.spec);
    if let (Some(problem), Some(placed)) =
        (unknown_origin, summed_up.iter_mut().find(|each| each.type_ == ConditionType::Placed))
    {
        placed.message = format!("{}. {problem}", placed.message);
    }
    let unreachable = unreachable(&placements, notes.doubt.as_deref());
    for finding in summed_up.into_iter().chain([unreachable]).chain(progress).chain([drifted]) {
        conditions::set(&mut status.conditions, finding, generation, now.0);
    }
    // Of a silent cluster on record nobody knows what is left there.
    let unknown = |each: &PlacementStatus| !seen.get(&each.cluster).is_some_and(|sight| sight.is_known);
    let left = workload.has_dependencies() && (seen.values().any(needs) || placements.iter().any(unknown));
    if workload.references.is_empty() && !left {
        conditions::remove(&mut status.conditions, ConditionType::DependenciesReady);
    } else {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let finding = finding(namespace, &workload.references, notes.missing.as_ref());
        conditions::set(&mut status.conditions, finding, generation, now.0);
    }
    status.placements = placements;
    status
}

/// The status of a workload about which nothing can be decided: what is placed stays, the reason is told.
pub(super) fn undecided(
    workload: &Workload,
    reason: Reason,
    message: &str,
    now: &Time,
) -> MultiClusterDeploymentStatus {
    let generation = workload.object.metadata.generation;
    let mut status = workload.object.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    for type_ in [ConditionType::Ready, ConditionType::Placed] {
        conditions::set(
            &mut status.conditions,
            Finding::new(type_, false, reason, message),
            generation,
            now.0,
        );
    }
    status
}

fn observed(
    placement: &mut PlacementStatus,
    seen: Option<&ClusterSnapshot>,
    failure: Option<&Failure>,
    now: &Time,
) {
    placement.reason = None;
    placement.message = None;
    let Some(seen) = seen.filter(|seen| seen.is_known) else {
        placement.state = PlacementState::Unknown;
        let closed = seen.and_then(|seen| seen.candidate.closed.clone());
        placement.reason = Some(closed.as_ref().map_or(Reason::Unknown, |closed| closed.reason).into());
        placement.message = closed.map(|closed| closed.message);
        return;
    };
    let Some(copy) = &seen.copy else {
        placement.ready_replicas = 0;
        placement.updated_replicas = 0;
        placement.available_replicas = 0;
        placement.state = PlacementState::Reserved;
        failed(placement, failure);
        return;
    };
    let numbers = (copy.ready, copy.updated, copy.available, &copy.images);
    let last = (
        placement.ready_replicas,
        placement.updated_replicas,
        placement.available_replicas,
        &placement.images,
    );
    // The time moves with the numbers only, so that a status without news is the same bytes.
    if numbers != last || placement.observed_at.is_none() {
        placement.observed_at = Some(now.clone());
    }
    placement.ready_replicas = copy.ready;
    placement.updated_replicas = copy.updated;
    placement.available_replicas = copy.available;
    placement.images = copy.images.clone();
    let rolled_out = copy.rolled_out(placement.replicas);
    let as_asked = copy.replicas == placement.replicas;
    placement.state = if rolled_out && as_asked { PlacementState::Ready } else { PlacementState::Applied };
    failed(placement, failure);
    if let Some(why) = copy.failure.as_ref().filter(|_| placement.reason.is_none()) {
        placement.reason = Some(Reason::PodsNotCreated.into());
        placement.message = Some(format!("its pods cannot be created: {why}"));
    }
}

/// Adds what is to be said of a copy that is neither refused nor out of reach.
fn noted(placement: &mut PlacementStatus, placed: &Placed, notes: &Notes) {
    let outdated = notes.outdated.contains(&placement.cluster);
    if outdated {
        // What its Deployment calls updated is of the template that it has.
        placement.updated_replicas = 0;
        if placement.state == PlacementState::Ready {
            placement.state = PlacementState::Applied;
        }
    }
    if placement.reason.is_some() {
        return;
    }
    if let Some(differences) = notes.drifts.get(&placement.cluster) {
        placement.reason = Some(Reason::Drifted.into());
        placement.message = Some(differences.join("; "));
    } else if let Some(kept) = &placed.kept {
        placement.reason = Some(kept_reason(kept.because).into());
        placement.message = Some(kept_message(kept, outdated));
    } else if let Some(Order::Apply { replicas }) = notes.orders.get(&placement.cluster)
        && signed(*replicas) > placement.replicas
    {
        surges_first(placement, signed(*replicas));
    }
}

/// The first cluster that does not create the pods of its copy.
fn denied(placements: &[PlacementStatus]) -> Option<&PlacementStatus> {
    let reason = |each: &&PlacementStatus| each.reason.as_deref().and_then(Reason::parse);
    placements.iter().find(|each| reason(each) == Some(Reason::PodsNotCreated))
}

fn surges_first(placement: &mut PlacementStatus, kept: i32) {
    if placement.reason.is_none() {
        placement.reason = Some(Reason::ScaleDownDeferred.into());
        let more = kept - placement.replicas;
        placement.message =
            Some(format!("{kept} replicas are kept there until {more} more are ready elsewhere"));
    }
}

fn kept_reason(because: KeptBecause) -> Reason {
    match because {
        KeptBecause::Evicted => Reason::Evicted,
        KeptBecause::NotWanted => Reason::NoAlternative,
        KeptBecause::NoRoom => Reason::NoRoom,
        KeptBecause::Refused => Reason::Refused,
    }
}

fn kept_message(kept: &Kept, outdated: bool) -> String {
    let why = match kept.because {
        KeptBecause::Evicted => {
            "the cluster is to be left, and no other cluster that the workload may use takes them"
        }
        KeptBecause::NotWanted => {
            "the workload does not ask for this cluster any more, and no cluster that it asks for takes them"
        }
        KeptBecause::NoRoom => {
            "there is no room for them as spec.template is now, neither here nor elsewhere"
        }
        KeptBecause::Refused => "the cluster refuses them as spec.template is now",
    };
    let template = if outdated { " with their former template" } else { "" };
    format!("{} replicas stay{template}: {why}", kept.replicas)
}

/// Whether copies are as they were placed; those that are set back at once are.
fn drifted(drifts: &BTreeMap<String, Vec<String>>) -> Finding {
    if drifts.is_empty() {
        return Finding::new(
            ConditionType::Drifted,
            false,
            Reason::InSync,
            "no copy differs from what was placed",
        );
    }
    let each = drifts.iter().map(|(cluster, differences)| format!("{cluster}: {}", differences.join("; ")));
    let message = format!(
        "{}. driftPolicy Report leaves it so: undo it there, or set driftPolicy: Correct",
        each.collect::<Vec<_>>().join(". ")
    );
    Finding::new(ConditionType::Drifted, true, Reason::Drifted, message)
}

fn failed(placement: &mut PlacementStatus, failure: Option<&Failure>) {
    if let Some(failure) = failure {
        placement.state = PlacementState::Failed;
        placement.reason = Some(failure.reason.into());
        placement.message = Some(failure.message.clone());
    }
}

fn findings(
    placements: &[PlacementStatus],
    pending: i32,
    ready: i32,
    asked: i32,
    decision: &Decision,
    spec: &MultiClusterDeploymentSpec,
) -> Vec<Finding> {
    let named = &spec.placement.locations;
    let placed = if pending == 0 && decision.staying == 0 {
        match decision.fallback {
            None => Finding::new(ConditionType::Placed, true, Reason::Placed, "every replica has a cluster"),
            Some(why) => Finding::new(
                ConditionType::Placed,
                true,
                Reason::PolicyFallback,
                format!("every replica has a cluster; {why}"),
            ),
        }
    } else if pending == 0 {
        let why = summarise(&decision.refusals, named, TOLD_AT_MOST);
        let message = format!(
            "{} of {asked} replicas stay where they run, since they find no place as the workload is now. {why}",
            decision.staying,
        );
        Finding::new(ConditionType::Placed, false, Reason::ReplicasKept, message)
    } else {
        Finding::new(
            ConditionType::Placed,
            false,
            Reason::Pending,
            why_pending(pending, asked, decision, spec),
        )
    };
    let (silent, _) = silent_and_lost(placements);
    let failed: Vec<_> = placements.iter().filter(|each| each.state == PlacementState::Failed).collect();
    let ready = if !silent.is_empty() {
        let message = format!(
            "{} cannot be asked: {ready} of {asked} replicas were last known ready",
            silent.join(", ")
        );
        Finding::new(ConditionType::Ready, ConditionStatus::Unknown, Reason::Unreachable, message)
    } else if let Some(first) = failed.first() {
        let why = first.message.as_deref().unwrap_or_default();
        Finding::new(ConditionType::Ready, false, Reason::Failed, format!("{}: {why}", first.cluster))
    } else if pending > 0 {
        Finding::new(
            ConditionType::Ready,
            false,
            Reason::Pending,
            format!("{pending} of {asked} replicas have no cluster"),
        )
    } else if let Some(kept) = unsatisfied(decision) {
        let message = format!(
            "{ready} of {asked} replicas are ready; {kept} of them stay where they run, since they find no place as the \
             workload is now: see condition Placed"
        );
        Finding::new(ConditionType::Ready, false, Reason::ReplicasKept, message)
    } else if placements.iter().all(|each| each.state == PlacementState::Ready || is_replaced(each)) {
        let message = match asked {
            0 => "no replicas are asked for".to_owned(),
            _ => format!("{ready} of {asked} replicas are ready"),
        };
        Finding::new(ConditionType::Ready, true, Reason::Ready, message)
    } else if let Some(denied) = denied(placements) {
        let why = denied.message.as_deref().unwrap_or_default();
        let message = format!("{ready} of {asked} replicas are ready. {}: {why}", denied.cluster);
        Finding::new(ConditionType::Ready, false, Reason::PodsNotCreated, message)
    } else {
        Finding::new(
            ConditionType::Ready,
            false,
            Reason::Progressing,
            format!("{ready} of {asked} replicas are ready"),
        )
    };
    let to_cloud = if decision.to_cloud {
        let unplaced = i64::from(pending) + i64::from(decision.staying);
        let message =
            format!("{unplaced} replicas fit in no cluster of the fleet: a cloud cluster is needed");
        Finding::new(ConditionType::ToCloud, true, Reason::NoRoomAnywhere, message)
    } else {
        Finding::new(ConditionType::ToCloud, false, Reason::NotNeeded, "no cloud cluster is needed")
    };
    vec![ready, placed, to_cloud]
}

/// Why replicas have no cluster, and what helps.
fn why_pending(pending: i32, asked: i32, decision: &Decision, spec: &MultiClusterDeploymentSpec) -> String {
    let told = format!("{pending} of {asked} replicas have no cluster");
    if spec.paused {
        // Nobody has looked for a cluster: whatever else might stand in the way is not known.
        return format!(
            "{told}: spec.paused is true, and nothing is placed meanwhile; set it to false to place them"
        );
    }
    let why = summarise(&decision.refusals, &spec.placement.locations, TOLD_AT_MOST).to_string();
    if why.is_empty() {
        let locations = spec.placement.effective_locations();
        return format!(
            "{told}: {locations} locations are asked for, and the fleet has fewer clusters; peer another one"
        );
    }
    format!("{told}. {why}")
}

/// How many replicas stay because what the workload asks for cannot be had. That a cluster is to be left is not the
/// workload's own wish.
fn unsatisfied(decision: &Decision) -> Option<u32> {
    let kept = decision.placed.values().filter_map(|placed| placed.kept);
    let kept = kept.filter(|kept| kept.because != KeptBecause::Evicted).map(|kept| kept.replicas).sum();
    Some(kept).filter(|kept| *kept > 0)
}

/// The clusters that do not answer: those whose replicas are waited for, and those that were replaced and so hold nothing
/// that is asked for.
fn silent_and_lost(placements: &[PlacementStatus]) -> (Vec<&str>, Vec<&str>) {
    let silent = placements.iter().filter(|each| each.state == PlacementState::Unknown);
    let (lost, silent): (Vec<_>, Vec<_>) =
        silent.map(|each| (is_replaced(each), each.cluster.as_str())).partition(|(replaced, _)| *replaced);
    let names = |all: Vec<(bool, _)>| all.into_iter().map(|(_, name)| name).collect();
    (names(silent), names(lost))
}

fn unreachable(placements: &[PlacementStatus], doubt: Option<&str>) -> Finding {
    let (silent, lost) = silent_and_lost(placements);
    let kept = format!("{} does not answer: what it holds is kept on record", silent.join(", "));
    let replaced = format!(
        "{} does not answer and was replaced: its replicas are placed elsewhere; the copy there is on record, and \
         goes when the cluster is back and the rest is healthy",
        lost.join(", ")
    );
    let found = |reason, message| Finding::new(ConditionType::Unreachable, true, reason, message);
    if let (Some(doubt), false) = (doubt, silent.is_empty()) {
        let replaced = if lost.is_empty() { String::new() } else { format!(". {replaced}") };
        return found(Reason::SilenceDoubted, format!("{kept}. {doubt}{replaced}"));
    }
    match (silent.as_slice(), lost.as_slice()) {
        ([], []) => {
            let message = "every cluster that holds replicas answers";
            Finding::new(ConditionType::Unreachable, false, Reason::AllClustersReachable, message)
        }
        (_, []) => found(Reason::Unreachable, kept),
        ([], _) => found(Reason::Replaced, replaced),
        _ => found(Reason::Replaced, format!("{replaced}. {kept}")),
    }
}

fn refusal(cluster: &str, why: &portolan_core::placement::Refusal) -> PendingPlacement {
    PendingPlacement {
        cluster: cluster.to_owned(),
        reason: why.reason.into(),
        message: Some(why.message.clone()),
    }
}

fn images(workload: &Workload) -> Vec<String> {
    let containers =
        workload.object.spec.template.0.pointer("/spec/containers").and_then(|all| all.as_array());
    let images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
    let mut images: Vec<String> = images.map(str::to_owned).collect();
    images.sort();
    images.dedup();
    images
}

fn signed(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replicas_that_are_pending_while_paused_wait_for_nothing_else() {
        let spec = |paused: bool| -> MultiClusterDeploymentSpec {
            let spec = json!({
                "replicas": 5,
                "paused": paused,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": []}},
            });
            serde_json::from_value(spec).unwrap()
        };
        let decision = Decision { pending: 4, ..Decision::default() };
        let told = |paused| {
            let findings = findings(&[], 4, 1, 5, &decision, &spec(paused));
            let placed = findings.into_iter().find(|each| each.type_ == ConditionType::Placed);
            placed.unwrap().message
        };
        assert!(told(false).contains("peer another one"), "{}", told(false));
        let paused = told(true);
        assert!(paused.starts_with("4 of 5 replicas have no cluster: spec.paused is true"), "{paused}");
        assert!(paused.contains("set it to false") && !paused.contains("peer"), "{paused}");
    }
}
