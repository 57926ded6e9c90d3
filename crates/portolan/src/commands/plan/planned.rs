//! What would change, in the same terms for all kinds.

use crate::failure::Failure;
use crate::kind::Kind;
use portolan_control::{JobOutlook, Outlook, ServiceOutlook};
use portolan_core::jobs::{End, Part};
use portolan_core::placement::{Account, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// What would become of one object.
pub(super) struct Planned {
    pub(super) kind: Kind,
    /// Namespace and name.
    pub(super) key: String,
    pub(super) rows: Vec<Row>,
    /// What is counted.
    pub(super) unit: &'static str,
    pub(super) pending: u32,
    /// For what is pending: cluster, reason and message.
    pub(super) refusals: Vec<(String, &'static str, String)>,
    /// Whether nothing is done about it for now.
    pub(super) paused: bool,
    /// What else is to be known.
    pub(super) notes: Vec<String>,
}

/// A cluster that has something before or after.
pub(super) struct Row {
    pub(super) cluster: String,
    pub(super) before: u32,
    pub(super) after: u32,
    /// For a job: how many pods may run at the same time, before and after.
    pub(super) parallelism: Option<(u32, u32)>,
    pub(super) why: String,
}

impl Row {
    pub(super) fn changes(&self) -> bool {
        self.before != self.after || self.parallelism.is_some_and(|(before, after)| before != after)
    }
}

impl Planned {
    pub(super) fn of_deployment(key: String, outlook: &Outlook) -> Result<Self, Failure> {
        let decision =
            outlook.decision.as_ref().map_err(|problem| undecided(Kind::Deployment, &key, problem))?;
        let names: BTreeSet<&String> = outlook.before.keys().chain(decision.placed.keys()).collect();
        let row = |name: &String| Row {
            cluster: name.clone(),
            before: outlook.before.get(name).copied().unwrap_or(0),
            after: decision.placed.get(name).map_or(0, |placed| placed.replicas),
            parallelism: None,
            why: why(&outlook.accounts, name),
        };
        Ok(Self {
            kind: Kind::Deployment,
            key,
            rows: names.into_iter().map(row).collect(),
            unit: "replicas",
            pending: decision.pending,
            refusals: told(&decision.refusals),
            paused: outlook.paused,
            notes: Vec::from_iter(
                outlook.paused.then(|| "It is paused: the last decision stands.".to_owned()),
            ),
        })
    }

    pub(super) fn of_job(key: String, outlook: &JobOutlook) -> Result<Self, Failure> {
        let plan = outlook.plan.as_ref().map_err(|problem| undecided(Kind::Job, &key, problem))?;
        let (before, after) = (&outlook.before.parts, &plan.record.parts);
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let completions = |part: Option<&Part>| part.map_or(0, |part| part.completions);
        let pods = |part: Option<&Part>| part.map_or(0, Part::in_use);
        let row = |name: &String| {
            let (before, after) = (before.get(name), after.get(name));
            let (had, has) = (completions(before), completions(after));
            (had > 0 || has > 0).then(|| Row {
                cluster: name.clone(),
                before: had,
                after: has,
                parallelism: Some((pods(before), pods(after))),
                why: why(&outlook.accounts, name),
            })
        };
        let ended = match &plan.record.end {
            Some(End::Complete) => Some("It is complete: nothing of it is run again.".to_owned()),
            Some(End::Failed { message, .. }) => Some(format!("It has failed: {message}")),
            None => None,
        };
        let held = "It is suspended: no pod runs, and nothing is given to clusters.".to_owned();
        let cloud = "A further cloud cluster would help.".to_owned();
        Ok(Self {
            kind: Kind::Job,
            key,
            rows: names.into_iter().filter_map(row).collect(),
            unit: "completions",
            pending: if plan.record.end.is_some() || outlook.suspended { 0 } else { plan.pending },
            refusals: told(&plan.refusals),
            paused: outlook.suspended,
            notes: ended
                .into_iter()
                .chain(outlook.suspended.then_some(held))
                .chain((plan.to_cloud && plan.pending > 0).then_some(cloud))
                .collect(),
        })
    }

    pub(super) fn of_service(key: String, outlook: &ServiceOutlook) -> Result<Self, Failure> {
        let unknown = || undecided(Kind::Service, &key, "a cluster is not known well enough yet");
        let parts = outlook.parts.as_ref().ok_or_else(unknown)?;
        let shown = parts.iter().filter(|part| part.there || part.belongs);
        let rows = shown.map(|part| Row {
            cluster: part.cluster.clone(),
            before: u32::from(part.there),
            after: u32::from(part.belongs),
            parallelism: None,
            why: part.verdict.clone(),
        });
        let refusals: Vec<_> = parts
            .iter()
            .filter_map(|part| part.refused.clone().map(|(reason, why)| (part.cluster.clone(), reason, why)))
            .collect();
        let note = match outlook.follows.as_slice() {
            [] => "It follows nothing: no MultiClusterDeployment of its namespace has pods that it selects."
                .to_owned(),
            names => format!("It follows {}.", names.join(", ")),
        };
        Ok(Self {
            kind: Kind::Service,
            rows: rows.collect(),
            unit: "Services",
            pending: u32::try_from(refusals.len()).unwrap_or(u32::MAX),
            key,
            refusals,
            paused: false,
            notes: vec![note],
        })
    }
}

fn undecided(kind: Kind, key: &str, problem: &str) -> Failure {
    Failure::other(format!("{} {key}: nothing can be decided: {problem}", kind.name()))
}

fn why(accounts: &[Account], cluster: &str) -> String {
    match accounts.iter().find(|account| account.cluster == cluster) {
        Some(account) => account.verdict.clone(),
        None => "it is no longer a member".to_owned(),
    }
}

fn told(refusals: &BTreeMap<String, Refusal>) -> Vec<(String, &'static str, String)> {
    refusals.iter().map(|(cluster, why)| (cluster.clone(), why.reason, why.message.clone())).collect()
}
