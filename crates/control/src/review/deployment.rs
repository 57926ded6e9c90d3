//! The answer for a MultiClusterDeployment.

use super::Unanswered;
use super::cluster::{as_it_is, bounded, brief, full, names_no_member, refusals, signed, too_few};
use super::manifest::{error, undecided};
use super::rollout::differences;
use super::trial::{Trial, Trials};
use crate::placement::Outlook;
use portolan_api::MultiClusterDeployment;
use portolan_api::Reason;
use portolan_api::placement::{PlacementState, PlacementStatus, ReplicasMode};
use portolan_api::placementreview::{ClusterReview, ObjectReview, ReviewError, ReviewResult};
use portolan_core::placement::Decision;
use portolan_runtime::foreign_text;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be said of a rolling update whose new pods wait for the room that its old ones hold.
const WAITS: &str = "its rolling update waits: pods of the former template hold the room that new ones need, and go only \
                     when new ones are ready. Allow spec.strategy.rollingUpdate.maxUnavailable of 1 or more, or make room \
                     for one more pod";

const PAUSED: &str = "It is paused: the last decision stands, whatever would be decided now.";
const CLOUD: &str = "A further cloud cluster would help: replicas that may go anywhere fit nowhere.";

/// Why it is where it is.
pub(super) fn explained(
    object: &MultiClusterDeployment,
    outlook: &Outlook,
) -> Result<ObjectReview, Unanswered> {
    let last = || object.status.iter().flat_map(|status| &status.placements);
    let recorded = |cluster: &str| last().find(|each| each.cluster == cluster);
    let mut review = ObjectReview { paused: outlook.paused, ..ObjectReview::default() };
    review.summary.extend(outlook.paused.then(|| PAUSED.to_owned()));
    // What members say of the last decision is told whether or not another one can be taken.
    let decision = match &outlook.decision {
        Ok(decision) => decision,
        Err(problem) => {
            review.errors.push(undecided(problem)?);
            review.result = ReviewResult::Pending;
            let known = |each: &PlacementStatus| {
                let verdict = "it stays as it is".to_owned();
                let stays = ClusterReview { after: each.replicas, verdict, ..ClusterReview::default() };
                noted(stays, Some(each), outlook)
            };
            review.clusters = last().map(known).collect();
            return Ok(review);
        }
    };
    let placed: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
    review.summary.push(format!("{placed} replicas placed, {} pending", decision.pending));
    review.summary.extend(stays(decision));
    review.summary.extend(awaits(outlook));
    review.summary.extend(decision.to_cloud.then(|| CLOUD.to_owned()));
    review.pending = signed(decision.pending);
    review.refusals = refusals(&decision.refusals, &outlook.accounts, &mut review.notes);
    review.summary.extend(lacks_clusters(object, decision, outlook));
    let mut clusters: Vec<ClusterReview> = Vec::new();
    for account in &outlook.accounts {
        let each = full(account, outlook.reserved.get(&account.cluster));
        clusters.push(noted(each, recorded(&account.cluster), outlook));
    }
    for each in &mut clusters {
        each.before = outlook.before.get(&each.cluster).map_or(0, |count| signed(*count));
        each.after = decision.placed.get(&each.cluster).map_or(0, |placed| signed(placed.replicas));
        if outlook.waiting_updates.contains(&each.cluster) {
            each.note.get_or_insert_with(|| WAITS.to_owned());
        }
    }
    review.errors.extend(missing(outlook));
    let refused = clusters.iter().any(|each| each.refused.is_some());
    if is_short(decision) || names_no_member(&outlook.accounts) || refused || !review.errors.is_empty() {
        review.result = ReviewResult::Pending;
    }
    review.clusters = bounded(clusters, &mut review.notes);
    Ok(review)
}

/// What is to be said of replicas that a rescheduler brings home.
fn awaits(outlook: &Outlook) -> Option<String> {
    let name = outlook.rescheduler.as_ref()?;
    Some(format!(
        "Replicas that stand in stay where they are until MultiClusterRescheduler {name} moves them: its status.staying \
         says why they stay."
    ))
}

/// Adds what the status says of a cluster.
fn noted(mut each: ClusterReview, last: Option<&PlacementStatus>, outlook: &Outlook) -> ClusterReview {
    let Some(last) = last else { return each };
    each.cluster.clone_from(&last.cluster);
    each.before = last.replicas;
    each.ready = outlook.ready.get(&last.cluster).map(|ready| signed(*ready)).or(Some(last.ready_replicas));
    let message = last.message.as_deref().map(foreign_text).unwrap_or_default();
    match (last.state, &last.reason) {
        (PlacementState::Failed, reason) => {
            let reason = reason.clone().unwrap_or_else(|| Reason::Failed.into());
            each.refused = Some(ReviewError { cluster: Some(last.cluster.clone()), reason, message });
        }
        (_, Some(reason)) => each.note = Some(format!("{reason}: {message}")),
        (_, None) => {}
    }
    each
}

/// What would come of applying it.
pub(super) fn planned(
    object: &MultiClusterDeployment,
    live: Option<&MultiClusterDeployment>,
    outlook: &Outlook,
    trials: &Trials,
) -> Result<ObjectReview, Unanswered> {
    let mut review = ObjectReview { paused: outlook.paused, ..ObjectReview::default() };
    review.notes.extend(outlook.paused.then(|| PAUSED.to_owned()));
    review.notes.extend(awaits(outlook));
    let decision = match &outlook.decision {
        Ok(decision) => decision,
        Err(problem) => {
            review.errors.push(undecided(problem)?);
            let unreadable = review
                .errors
                .iter()
                .any(|error| Reason::parse(&error.reason) == Some(Reason::InvalidTemplate));
            review.result = if unreadable { ReviewResult::Invalid } else { ReviewResult::Pending };
            review.clusters = as_it_is(&outlook.before);
            return Ok(review);
        }
    };
    let refusing = trials.refusing();
    let held = [&outlook.before, &outlook.unrecorded, &outlook.being_removed];
    let names = held.into_iter().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = names.chain(decision.placed.keys()).chain(refusing.keys()).collect();
    let mut clusters = Vec::new();
    for name in names {
        let before = held.into_iter().find_map(|each| each.get(name)).map_or(0, |count| signed(*count));
        let mut after = decision.placed.get(name).map_or(0, |placed| signed(placed.replicas));
        if outlook.paused && outlook.being_removed.contains_key(name) {
            after = before;
        }
        let account = outlook.accounts.iter().find(|account| account.cluster == *name);
        let mut each = account.map(brief).unwrap_or_else(|| ClusterReview {
            cluster: name.clone(),
            verdict: "it is no longer a member".to_owned(),
            ..ClusterReview::default()
        });
        each.before = before;
        each.after = after;
        each.ready = outlook.ready.get(name).map(|ready| signed(*ready));
        match trials.get(name) {
            // A template without room leaves the pods of the former one alone, as does one that is paused.
            Some(Trial::Accepted { replaces: true }) if outlook.paused || keeps_former(decision, name) => {}
            // A rollout replaces the pods that stay.
            Some(Trial::Accepted { replaces: true }) => each.replaced_pods = Some(before.min(after)),
            Some(Trial::Unknown(message)) => each.note = Some(format!("it was not asked: {message}")),
            Some(trial) => each.refused = trial.error(name, Reason::InvalidTemplate),
            None => {}
        }
        if each.refused.is_some() {
            // What a member refuses is not there, whatever is recorded: what runs there stays.
            let running = outlook.running.get(name).map_or(0, |count| signed(*count));
            (each.before, each.after) = (running, running);
            each.verdict = match running {
                0 => "nothing: it refuses the workload as it would be".to_owned(),
                1 => "1 replica stays as it is: the cluster refuses the workload as it would be".to_owned(),
                count => {
                    format!(
                        "{count} replicas stay as they are: the cluster refuses the workload as it would be"
                    )
                }
            };
        }
        // What replaces no pods waits for none.
        if outlook.waiting_updates.contains(name) && each.replaced_pods.is_some_and(|pods| pods > 0) {
            each.note.get_or_insert_with(|| WAITS.to_owned());
        }
        clusters.push(each);
    }
    review.errors.extend(missing(outlook));
    let replaced: i32 = clusters.iter().filter_map(|each| each.replaced_pods).sum();
    if let Some(live) = live.filter(|_| replaced > 0) {
        let mut rollout = differences(&live.spec.template.0, &object.spec.template.0);
        rollout.pods = replaced;
        let strategy = object.spec.strategy.as_ref().map(|strategy| &strategy.0);
        rollout.recreate = strategy.is_some_and(|strategy| strategy["type"] == "Recreate");
        review.rollout = Some(rollout);
    }
    let left: i32 = clusters.iter().map(|each| each.after).sum();
    review.removed_running_replicas = (running(outlook) - left).max(0);
    review.pending = signed(decision.pending);
    review.notes.extend(stays(decision));
    review.notes.extend(decision.to_cloud.then(|| CLOUD.to_owned()));
    review.refusals = refusals(&decision.refusals, &outlook.accounts, &mut review.notes);
    review.refusals.retain(|each| !refusing.contains_key(&each.cluster));
    review.notes.extend(lacks_clusters(object, decision, outlook));
    let refused = clusters.iter().any(|each| each.refused.is_some()) || !review.errors.is_empty();
    review.result = if review.removed_running_replicas > 0 {
        ReviewResult::Removes
    } else if is_short(decision) || names_no_member(&outlook.accounts) || refused {
        ReviewResult::Pending
    } else if clusters.iter().any(ClusterReview::changes) {
        ReviewResult::Changes
    } else {
        ReviewResult::Unchanged
    };
    review.clusters = bounded(clusters, &mut review.notes);
    Ok(review)
}

/// How many replicas run and are not to go by the last decision already.
fn running(outlook: &Outlook) -> i32 {
    let sum = |counts: &BTreeMap<String, u32>| counts.values().map(|count| signed(*count)).sum::<i32>();
    sum(&outlook.ready).min(sum(&outlook.before) + sum(&outlook.unrecorded))
}

fn missing(outlook: &Outlook) -> Vec<ReviewError> {
    let told = |name: &String| {
        error(
            Reason::DependencyNotFound,
            format!("{name} does not exist in the hub: new pods wait in each cluster until it does"),
        )
    };
    outlook.missing.iter().map(told).collect()
}

/// Whether not all that is asked for has a place as the workload asks for it.
fn is_short(decision: &Decision) -> bool {
    decision.pending > 0 || decision.staying > 0
}

/// What is said of replicas that find no place as the workload asks for them, and stay.
fn stays(decision: &Decision) -> Option<String> {
    let placed: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
    let asked = placed.saturating_add(decision.pending);
    let told = format!(
        "{} of {asked} replicas stay where they run, since they find no place as the workload asks for them.",
        decision.staying
    );
    (decision.staying > 0).then_some(told)
}

/// What is said of replicas that are pending because there are not as many clusters as locations are to be found.
fn lacks_clusters(object: &MultiClusterDeployment, decision: &Decision, outlook: &Outlook) -> Option<String> {
    let spec = &object.spec;
    let counts = spec.replicas_mode == ReplicasMode::PerLocation && spec.placement.locations.is_empty();
    if counts && decision.pending > 0 && !outlook.paused {
        return too_few(spec.placement.effective_locations(), &outlook.accounts);
    }
    None
}

/// Whether a cluster keeps its copy as it is, since the present template has no room there.
fn keeps_former(decision: &Decision, cluster: &str) -> bool {
    decision.placed.get(cluster).and_then(|placed| placed.kept).is_some_and(|kept| kept.as_they_are)
}
