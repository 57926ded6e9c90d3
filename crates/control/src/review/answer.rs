//! The answer to one review.

use super::manifest::error;
use super::{Reviews, Unanswered, deployment, job, service};
use crate::fleet::Fleet;
use portolan_api::Reason;
use portolan_api::placementreview::{
    ObjectReview, PlacementReviewSpec, ReviewError, ReviewResult, ReviewTarget, ReviewedKind,
};
use portolan_runtime::Key;
use std::collections::BTreeMap;

impl Reviews {
    pub(super) async fn answer(
        &self,
        namespace: &str,
        spec: &PlacementReviewSpec,
    ) -> Result<Vec<ObjectReview>, Unanswered> {
        match &spec.explain {
            Some(target) => Ok(vec![self.explain(namespace, target)?]),
            None => self.plan(namespace, spec).await,
        }
    }

    fn explain(&self, namespace: &str, target: &ReviewTarget) -> Result<ObjectReview, Unanswered> {
        let key = Key::new(namespace, &target.name);
        let found = match target.kind {
            ReviewedKind::MultiClusterDeployment => self.placement.get(&key).map(|workload| {
                let outlook =
                    self.fleet.ledger.transact(|book| self.placement.explain(book, &key, &workload));
                deployment::explained(&workload.object, &outlook)
            }),
            ReviewedKind::MultiClusterJob => self
                .fleet
                .ledger
                .transact(|book| self.jobs.explain(book, &key))
                .map(|outlook| job::explained(&outlook)),
            ReviewedKind::MultiClusterService => self
                .services
                .get(&key)
                .map(|found| service::explained(&self.services.outlook(&key, &found, &BTreeMap::new()))),
        };
        match found {
            Some(review) => {
                Ok(ObjectReview { kind: target.kind, name: target.name.clone(), exists: true, ..review? })
            }
            None if !self.known() => Err(Unanswered::NotYet),
            None => {
                let message = format!("{} {key} does not exist", target.kind.as_str());
                Ok(refused(target.kind, &key, vec![error(Reason::NotFound, message)]))
            }
        }
    }

    /// Whether all is known that a decision needs.
    pub(super) fn known(&self) -> bool {
        let listed = |fleet: &Fleet| fleet.ledger.transact(|book| book.is_complete());
        self.fleet.clusters.synced() && listed(&self.fleet)
    }
}

pub(super) fn refused(kind: ReviewedKind, key: &Key, errors: Vec<ReviewError>) -> ObjectReview {
    ObjectReview {
        kind,
        name: key.name.clone(),
        result: ReviewResult::Invalid,
        errors,
        ..ObjectReview::default()
    }
}
