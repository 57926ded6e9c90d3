//! The answer for a MultiClusterService.

use super::Unanswered;
use super::cluster::bounded;
use super::trial::{Trial, Trials};
use crate::services::{ServiceOutlook, ServicePart};
use portolan_api::Reason;
use portolan_api::placementreview::{
    ClusterReview, EndpointCounts, ObjectReview, ReviewError, ReviewRefusal, ReviewResult,
};
use portolan_runtime::foreign_text;

/// Why it is where it is.
pub(super) fn explained(outlook: &ServiceOutlook) -> Result<ObjectReview, Unanswered> {
    let parts = outlook.parts.as_ref().ok_or(Unanswered::NotYet)?;
    let mut review = refused(parts);
    let ready: i32 = parts.iter().map(|part| part.ready).sum();
    let follows = match outlook.follows.as_slice() {
        [] => {
            "follows nothing: no MultiClusterDeployment of its namespace has pods that it selects".to_owned()
        }
        names => format!("follows {}", names.join(", ")),
    };
    review.summary = vec![format!("{follows}; {ready} endpoints ready")];
    review.summary.extend(selects_nothing(outlook));
    let mut pending = review.pending > 0 || !outlook.followed.is_empty();
    let cluster = |part: &ServicePart| {
        let mut each = row(part);
        if part.there || !part.is_known {
            each.endpoints =
                Some(EndpointCounts { ready: part.ready, not_ready: part.not_ready, answers: part.is_known });
        }
        match part.note.as_ref().filter(|_| part.belongs) {
            Some((Some(reason), message)) => {
                let (reason, message) = (reason.clone(), foreign_text(message));
                each.refused = Some(ReviewError { cluster: Some(part.cluster.clone()), reason, message });
            }
            Some((None, message)) => each.note = Some(foreign_text(message)),
            None => {}
        }
        each
    };
    let clusters: Vec<ClusterReview> = parts.iter().map(cluster).collect();
    pending |= clusters.iter().any(|each| each.refused.is_some());
    review.result = if pending { ReviewResult::Pending } else { ReviewResult::Unchanged };
    review.clusters = bounded(clusters, &mut review.notes);
    Ok(review)
}

/// What would come of applying it.
pub(super) fn planned(outlook: &ServiceOutlook, trials: &Trials) -> Result<ObjectReview, Unanswered> {
    let parts = outlook.parts.as_ref().ok_or(Unanswered::NotYet)?;
    let mut review = refused(parts);
    review.notes.push(match outlook.follows.as_slice() {
        [] => "It follows nothing: no MultiClusterDeployment of its namespace has pods that it selects."
            .to_owned(),
        names => format!("It follows {}.", names.join(", ")),
    });
    review.notes.extend(selects_nothing(outlook));
    let shown = parts.iter().filter(|part| part.there || part.belongs);
    let cluster = |part: &ServicePart| {
        let mut each = row(part);
        match trials.get(&part.cluster) {
            Some(Trial::Unknown(message)) => each.note = Some(format!("it was not asked: {message}")),
            Some(trial) => each.refused = trial.error(&part.cluster, Reason::Invalid),
            None => each.refused = part.immutable.as_ref().map(|message| immutable(part, message)),
        }
        if each.refused.is_some() {
            each.after = each.before;
            each.verdict = match each.before {
                0 => "not there: the cluster refuses the Service as it would be".to_owned(),
                _ => "there as it was: the cluster refuses the Service as it would be".to_owned(),
            };
        }
        each
    };
    let clusters: Vec<ClusterReview> = shown.map(cluster).collect();
    let refused = clusters.iter().any(|each| each.refused.is_some());
    review.result = if review.pending > 0 || refused || !outlook.followed.is_empty() {
        ReviewResult::Pending
    } else if clusters.iter().any(ClusterReview::changes) {
        ReviewResult::Changes
    } else {
        ReviewResult::Unchanged
    };
    review.clusters = bounded(clusters, &mut review.notes);
    Ok(review)
}

/// What is said of a service whose selector selects no pods any more.
fn selects_nothing(outlook: &ServiceOutlook) -> Option<String> {
    let told = format!(
        "Its selector selects no pods any more, and it followed {}: correct spec.selector, or the labels of the pods.",
        outlook.followed.join(", ")
    );
    (!outlook.followed.is_empty()).then_some(told)
}

/// What the controller reports of a Service that would have to be another one.
fn immutable(part: &ServicePart, message: &str) -> ReviewError {
    let (cluster, message) = (Some(part.cluster.clone()), foreign_text(message));
    ReviewError { cluster, reason: Reason::Immutable.into(), message }
}

fn row(part: &ServicePart) -> ClusterReview {
    ClusterReview {
        cluster: part.cluster.clone(),
        before: i32::from(part.there),
        after: i32::from(part.belongs),
        verdict: foreign_text(&part.verdict),
        ..ClusterReview::default()
    }
}

fn refused(parts: &[ServicePart]) -> ObjectReview {
    let refusal = |part: &ServicePart| {
        let (reason, message) = part.refused.clone()?;
        let message = foreign_text(&message);
        Some(ReviewRefusal { cluster: part.cluster.clone(), reason: reason.into(), message })
    };
    let refusals: Vec<ReviewRefusal> = parts.iter().filter_map(refusal).collect();
    let pending = i32::try_from(refusals.len()).unwrap_or(i32::MAX);
    ObjectReview { pending, refusals, ..ObjectReview::default() }
}
