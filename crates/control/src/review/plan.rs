//! What would come of manifests.
//!
//! They are decided about one after the other, and the copies that come of it are tried in the members. Where a member does
//! not take its copy, the controller would decide again without counting on that member; so does the plan.

use super::answer::refused;
use super::manifest::{Checked, check};
use super::trial::{Trials, try_copies};
use super::{Reviews, Unanswered, deployment, job, service};
use crate::capacity::{Book, Owner};
use crate::driver::{Declared, PreparedCopy};
use crate::jobs::{DeclaredJob, JobOutlook};
use crate::placement::{Outlook, Workload};
use crate::recovery::Identity;
use crate::services::ServiceOutlook;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use kube::api::ObjectMeta;
use portolan_api::Reason;
use portolan_api::placementreview::{MAX_MANIFESTS, ObjectReview, PlacementReviewSpec, ReviewedKind};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_core::placement::Refusal;
use portolan_runtime::Key;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// In so many clusters a copy is tried; of more, the rest is taken to say the same.
const TRIED: usize = 32;

/// How long a review tries copies in all. What a member has not answered by then is told as not known.
const TRIED_WITHIN: Duration = Duration::from_secs(15);

/// An object as it would settle.
enum Settled {
    Deployment {
        workload: Box<Workload>,
        outlook: Box<Outlook>,
    },
    Job {
        job: Box<DeclaredJob>,
        outlook: Box<JobOutlook>,
    },
    Service {
        object: Box<MultiClusterService>,
        outlook: Box<ServiceOutlook>,
    },
    /// What others may take is decided without it.
    Invalid,
}

/// What was found out about the manifests in members, by their place in the review.
#[derive(Default)]
struct Findings {
    trials: BTreeMap<usize, Trials>,
    /// The manifests that no member takes.
    invalid: BTreeSet<usize>,
}

impl Reviews {
    pub(super) async fn plan(
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
        let mut findings = Findings::default();
        loop {
            let planned = self.decide(&checked, &findings)?;
            let mut refused = false;
            for (place, each) in checked.iter().enumerate() {
                let Some(settled) = planned.get(&place) else { continue };
                let trials = findings.trials.entry(place).or_default();
                refused |= self.try_untried(&each.key, settled, trials, until).await;
            }
            let invalid = |place: &usize| {
                let trials = findings.trials.get(place);
                trials.is_some_and(|trials| trials.is_convincing() || (!refused && trials.is_invalid()))
            };
            let invalid: BTreeSet<usize> = (0..checked.len()).filter(invalid).collect();
            if !refused && invalid.is_subset(&findings.invalid) {
                return self.told(&checked, &planned, &findings);
            }
            findings.invalid.extend(invalid);
        }
    }

    /// Decides about all manifests, one after the other, each on what the ones before it would bring. It is done in a fork:
    /// whoever places meanwhile does not wait.
    fn decide(
        &self,
        checked: &[Checked],
        findings: &Findings,
    ) -> Result<BTreeMap<usize, Settled>, Unanswered> {
        let mut book = self.fleet.ledger.transact(|book| book.fork());
        let mut planned = BTreeMap::new();
        let mut workloads = BTreeMap::new();
        for (place, each) in checked.iter().enumerate() {
            let Ok(object) = &each.object else { continue };
            let refusing = findings.trials.get(&place).map(Trials::refusing).unwrap_or_default();
            let settled = match each.kind {
                _ if findings.invalid.contains(&place) => Settled::Invalid,
                ReviewedKind::MultiClusterDeployment => self.settle(&mut book, each, object, &refusing)?,
                ReviewedKind::MultiClusterJob => {
                    let existing = self.jobs.get(&each.key);
                    let mut object: MultiClusterJob = typed(object)?;
                    let (uid, status) = existing.map(|known| (known.metadata.uid, known.status)).unzip();
                    object.status = status.flatten();
                    self.same(&book, each, &object.metadata, uid.flatten())?;
                    let (job, outlook) = self.jobs.settle(&mut book, object, &refusing);
                    Settled::Job { job: Box::new(job), outlook: Box::new(outlook) }
                }
                ReviewedKind::MultiClusterService => {
                    let mut object: MultiClusterService = typed(object)?;
                    object.status = self.services.get(&each.key).and_then(|known| known.status.clone());
                    let outlook = self.services.outlook(&each.key, &object, &workloads);
                    Settled::Service { object: Box::new(object), outlook: Box::new(outlook) }
                }
            };
            if let Settled::Deployment { workload, .. } = &settled {
                workloads.insert(each.key.clone(), Workload::of(workload.object.clone()));
            }
            planned.insert(place, settled);
        }
        Ok(planned)
    }

    fn settle(
        &self,
        book: &mut Book,
        each: &Checked,
        object: &serde_json::Value,
        refusing: &BTreeMap<String, Refusal>,
    ) -> Result<Settled, Unanswered> {
        let existing = self.placement.get(&each.key);
        let mut object: MultiClusterDeployment = typed(object)?;
        let (uid, status) =
            existing.map(|known| (known.object.metadata.uid.clone(), known.object.status.clone())).unzip();
        object.status = status.flatten();
        self.same(book, each, &object.metadata, uid.flatten())?;
        let (workload, outlook) = self.placement.settle(book, object, refusing);
        Ok(Settled::Deployment { workload: Box::new(workload), outlook: Box::new(outlook) })
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

    /// Tries the copies of an object in members where they would change and were not tried; answers whether one of them does
    /// not take its copy.
    async fn try_untried(&self, key: &Key, settled: &Settled, trials: &mut Trials, until: Instant) -> bool {
        let untried = |copies: BTreeMap<String, PreparedCopy>| -> Vec<(String, PreparedCopy)> {
            let untried = copies.into_iter().filter(|(cluster, _)| trials.get(cluster).is_none());
            untried.take(TRIED.saturating_sub(trials.len())).collect()
        };
        let answers = match settled {
            Settled::Deployment { workload, outlook } => {
                let copies = untried(self.placement.copies(key, workload, outlook));
                try_copies::<Deployment>(key, copies, until).await
            }
            Settled::Job { job, outlook } => {
                let copies = untried(self.jobs.copies(key, job, outlook));
                try_copies::<Job>(key, copies, until).await
            }
            Settled::Service { object, outlook } => {
                let copies = untried(self.services.copies(key, object, outlook));
                try_copies::<Service>(key, copies, until).await
            }
            Settled::Invalid => return false,
        };
        trials.extend(answers)
    }

    /// What each cluster holds of an object, by what is recorded.
    fn held(&self, each: &Checked) -> BTreeMap<String, u32> {
        let count = |cluster: &String, count: i32| Some((cluster.clone(), u32::try_from(count).ok()?));
        let held: BTreeMap<String, u32> = match each.kind {
            ReviewedKind::MultiClusterDeployment => {
                let known = self.placement.get(&each.key);
                let status = known.as_ref().and_then(|known| known.object.status.as_ref());
                let placements = status.into_iter().flat_map(|status| &status.placements);
                placements.filter_map(|placed| count(&placed.cluster, placed.replicas)).collect()
            }
            ReviewedKind::MultiClusterJob => {
                let status = self.jobs.get(&each.key).and_then(|known| known.status);
                let placements = status.iter().flat_map(|status| &status.placements);
                placements.filter_map(|placed| count(&placed.cluster, placed.completions)).collect()
            }
            ReviewedKind::MultiClusterService => {
                let known = self.services.get(&each.key);
                let status = known.as_ref().and_then(|known| known.status.as_ref());
                let clusters = status.into_iter().flat_map(|status| &status.clusters);
                clusters.filter_map(|placed| count(&placed.cluster, 1)).collect()
            }
        };
        held.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    fn told(
        &self,
        checked: &[Checked],
        planned: &BTreeMap<usize, Settled>,
        findings: &Findings,
    ) -> Result<Vec<ObjectReview>, Unanswered> {
        let untried = Trials::default();
        let mut objects = Vec::new();
        for (place, each) in checked.iter().enumerate() {
            if let Err(errors) = &each.object {
                objects.push(refused(each.kind, &each.key, errors.clone()));
                continue;
            }
            let trials = findings.trials.get(&place).unwrap_or(&untried);
            let live = self.placement.get(&each.key);
            let live = live.as_ref().map(|known| &known.object);
            let review = match planned.get(&place).ok_or(Unanswered::NotYet)? {
                Settled::Deployment { workload, outlook } => {
                    deployment::planned(&workload.object, live, outlook, trials)?
                }
                Settled::Job { outlook, .. } => job::planned(outlook, trials)?,
                Settled::Service { outlook, .. } => service::planned(outlook, trials)?,
                Settled::Invalid => trials.invalid(invalid(each.kind), &self.held(each)),
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
}

/// The word for an object that no member takes.
fn invalid(kind: ReviewedKind) -> Reason {
    match kind {
        ReviewedKind::MultiClusterService => Reason::Invalid,
        ReviewedKind::MultiClusterDeployment | ReviewedKind::MultiClusterJob => Reason::InvalidTemplate,
    }
}

/// What the hub answered as its type; it was checked against the schema that the type gives.
fn typed<K: DeserializeOwned>(object: &serde_json::Value) -> Result<K, Unanswered> {
    K::deserialize(object).map_err(|_| Unanswered::NotYet)
}
