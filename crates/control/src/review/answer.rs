//! The answer to one review.

use super::manifest::{Checked, check, error};
use super::{Reviews, Unanswered, deployment, job, service};
use crate::capacity::{Book, Owner};
use crate::driver::Declared;
use crate::fleet::Fleet;
use crate::placement::{Outlook, Trial, Workload};
use crate::recovery::Identity;
use kube::api::ObjectMeta;
use portolan_api::Reason;
use portolan_api::placementreview::{
    MAX_MANIFESTS, ObjectReview, PlacementReviewSpec, ReviewError, ReviewResult, ReviewTarget, ReviewedKind,
};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_runtime::Key;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// In so many clusters a copy is tried; of more, the rest is taken to say the same.
const TRIED: usize = 32;

/// How long a review tries copies in all. What a member has not answered by then is told as not known.
const TRIED_WITHIN: Duration = Duration::from_secs(15);

/// What members say to copies, by workload and cluster.
type Trials = BTreeMap<Key, BTreeMap<String, Trial>>;

/// A deployment as it would settle.
struct Settled {
    workload: Workload,
    outlook: Outlook,
}

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

    async fn plan(
        &self,
        namespace: &str,
        spec: &PlacementReviewSpec,
    ) -> Result<Vec<ObjectReview>, Unanswered> {
        if !self.known() {
            return Err(Unanswered::NotYet);
        }
        let mut checked = Vec::new();
        for manifest in spec.plan.iter().take(MAX_MANIFESTS) {
            checked.push(check(&self.hub.client, namespace, &manifest.0).await?);
        }
        // A service goes where the deployments that are planned with it go.
        checked.sort_by_key(|each| each.kind == ReviewedKind::MultiClusterService);
        let until = Instant::now() + TRIED_WITHIN;
        let mut trials = Trials::new();
        let mut invalid = BTreeSet::new();
        loop {
            let planned = self.decide(&checked, &invalid)?;
            let mut news = false;
            for each in &checked {
                let Some(settled) = planned.deployments.get(&each.key).filter(|_| each.is_deployment())
                else {
                    continue;
                };
                if invalid.contains(&each.key) || trials.contains_key(&each.key) {
                    continue;
                }
                let tried = self.try_copies(&each.key, settled, until).await;
                if deployment::is_invalid(&tried) {
                    // What others may take is decided without it.
                    news |= invalid.insert(each.key.clone());
                }
                trials.insert(each.key.clone(), tried);
            }
            if !news {
                return self.told(&checked, &planned, &trials, &invalid);
            }
        }
    }

    /// Decides about all manifests, one after the other, each on what the ones before it would bring. It is done in a fork:
    /// whoever places meanwhile does not wait.
    fn decide(&self, checked: &[Checked], invalid: &BTreeSet<Key>) -> Result<Planned, Unanswered> {
        let mut book = self.fleet.ledger.transact(|book| book.fork());
        let mut planned = Planned::default();
        for each in checked {
            let Ok(object) = &each.object else { continue };
            match each.kind {
                ReviewedKind::MultiClusterDeployment if !invalid.contains(&each.key) => {
                    let existing = self.placement.get(&each.key);
                    let mut object: MultiClusterDeployment = typed(object)?;
                    let (uid, status) = existing
                        .map(|known| (known.object.metadata.uid.clone(), known.object.status.clone()))
                        .unzip();
                    object.status = status.flatten();
                    self.same(&book, each, &object.metadata, uid.flatten())?;
                    let (workload, outlook) = self.placement.settle(&mut book, object);
                    planned.deployments.insert(each.key.clone(), Settled { workload, outlook });
                }
                ReviewedKind::MultiClusterJob => {
                    let existing = self.jobs.get(&each.key);
                    let mut object: MultiClusterJob = typed(object)?;
                    let (uid, status) = existing.map(|known| (known.metadata.uid, known.status)).unzip();
                    object.status = status.flatten();
                    self.same(&book, each, &object.metadata, uid.flatten())?;
                    let outlook = self.jobs.settle(&mut book, object);
                    planned.jobs.insert(each.key.clone(), outlook);
                }
                _ => {}
            }
        }
        Ok(planned)
    }

    /// Whether the index knows the same object as the hub; if not, it soon will.
    fn same(
        &self,
        book: &Book,
        each: &Checked,
        meta: &ObjectMeta,
        known: Option<String>,
    ) -> Result<(), Unanswered> {
        let (owner, identity) = (Owner::new(each.kind.as_str(), &each.key), Identity::of(meta));
        self.fleet.identities.resolve(&owner, &identity);
        let namesake = book.has_namesake(&owner, identity.get());
        let indexed = each.live.is_none() || known == meta.uid;
        if namesake || !indexed { Err(Unanswered::NotYet) } else { Ok(()) }
    }

    /// Tries the copies of a deployment in the members where they would change.
    async fn try_copies(&self, key: &Key, settled: &Settled, until: Instant) -> BTreeMap<String, Trial> {
        let Ok(decision) = &settled.outlook.decision else { return BTreeMap::new() };
        if settled.outlook.paused {
            return BTreeMap::new();
        }
        let placed = decision.placed.iter().take(TRIED);
        let tries = placed.map(|(cluster, placed)| async {
            let (workload, replicas) = (&settled.workload, placed.replicas);
            let trial = self.placement.try_copy(key, workload, cluster, replicas, until).await;
            (cluster.clone(), trial)
        });
        futures::future::join_all(tries).await.into_iter().collect()
    }

    fn told(
        &self,
        checked: &[Checked],
        planned: &Planned,
        trials: &Trials,
        invalid: &BTreeSet<Key>,
    ) -> Result<Vec<ObjectReview>, Unanswered> {
        let nothing = BTreeMap::new();
        let workloads: BTreeMap<Key, Workload> = planned
            .deployments
            .iter()
            .map(|(key, settled)| (key.clone(), Workload::of(settled.workload.object.clone())))
            .collect();
        let mut objects = Vec::new();
        for each in checked {
            let object = match &each.object {
                Err(errors) => {
                    objects.push(refused(each.kind, &each.key, errors.clone()));
                    continue;
                }
                Ok(object) => object,
            };
            let review = match each.kind {
                ReviewedKind::MultiClusterDeployment => {
                    let tried = trials.get(&each.key).unwrap_or(&nothing);
                    let live = self.placement.get(&each.key);
                    let live = live.as_ref().map(|known| &known.object);
                    match planned.deployments.get(&each.key) {
                        Some(settled) => {
                            deployment::planned(&settled.workload.object, live, &settled.outlook, tried)?
                        }
                        None if invalid.contains(&each.key) => deployment::invalid(live, tried),
                        None => return Err(Unanswered::NotYet),
                    }
                }
                ReviewedKind::MultiClusterJob => match planned.jobs.get(&each.key) {
                    Some(outlook) => job::planned(outlook)?,
                    None => return Err(Unanswered::NotYet),
                },
                ReviewedKind::MultiClusterService => {
                    let mut object: MultiClusterService = typed(object)?;
                    if let Some(known) = self.services.get(&each.key) {
                        object.status = known.status.clone();
                    }
                    service::planned(&self.services.outlook(&each.key, &object, &workloads))?
                }
            };
            let mut review = ObjectReview {
                kind: each.kind,
                name: each.key.name.clone(),
                exists: each.live.is_some(),
                ..review
            };
            review.notes.extend(each.note.clone());
            objects.push(review);
        }
        Ok(objects)
    }

    /// Whether all is known that a decision needs.
    fn known(&self) -> bool {
        let listed = |fleet: &Fleet| fleet.ledger.transact(|book| book.is_complete());
        self.fleet.clusters.synced() && listed(&self.fleet)
    }
}

#[derive(Default)]
struct Planned {
    deployments: BTreeMap<Key, Settled>,
    jobs: BTreeMap<Key, crate::jobs::JobOutlook>,
}

impl Checked {
    fn is_deployment(&self) -> bool {
        self.kind == ReviewedKind::MultiClusterDeployment
    }
}

/// What the hub answered as its type; it was checked against the schema that the type gives.
fn typed<K: DeserializeOwned>(object: &serde_json::Value) -> Result<K, Unanswered> {
    K::deserialize(object).map_err(|_| Unanswered::NotYet)
}

fn refused(kind: ReviewedKind, key: &Key, errors: Vec<ReviewError>) -> ObjectReview {
    ObjectReview {
        kind,
        name: key.name.clone(),
        result: ReviewResult::Invalid,
        errors,
        ..ObjectReview::default()
    }
}
