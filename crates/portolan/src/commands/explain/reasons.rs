//! Why something is where it is, in the same terms for all kinds.

use portolan_control::{JobOutlook, Outlook, ServiceOutlook, ServicePart};
use portolan_core::jobs::{End, Part};
use portolan_core::placement::Account;
use std::collections::BTreeMap;

/// Why one object is where it is.
pub(super) struct Reasons<'a> {
    /// Why nothing is done about it for now.
    pub(super) held_up: Option<String>,
    /// The whole of it, line by line.
    pub(super) summary: Vec<String>,
    pub(super) places: Vec<Place<'a>>,
}

/// One cluster.
#[derive(Default)]
pub(super) struct Place<'a> {
    pub(super) cluster: &'a str,
    pub(super) verdict: &'a str,
    pub(super) account: Option<&'a Account>,
    /// What only this kind tells.
    pub(super) facts: Vec<String>,
    /// The same as numbers.
    pub(super) numbers: Vec<(&'static str, i64)>,
    pub(super) reserved: Option<&'a BTreeMap<String, u32>>,
    pub(super) note: Option<String>,
}

impl<'a> Place<'a> {
    /// A cluster by its part in a decision, with what is told beside it.
    fn of(
        account: &'a Account,
        reserved: &'a BTreeMap<String, BTreeMap<String, u32>>,
        notes: &BTreeMap<String, String>,
    ) -> Self {
        Self {
            cluster: &account.cluster,
            verdict: &account.verdict,
            account: Some(account),
            reserved: reserved.get(&account.cluster),
            note: notes.get(&account.cluster).cloned(),
            ..Self::default()
        }
    }
}

impl<'a> Reasons<'a> {
    pub(super) fn of_deployment(outlook: &'a Outlook) -> Result<Self, String> {
        let decision = outlook.decision.as_ref().map_err(|problem| undecided(problem))?;
        let placed: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
        let cloud = "A further cloud cluster would help: replicas that may go anywhere fit nowhere.";
        let mut summary = vec![format!("{placed} replicas placed, {} pending", decision.pending)];
        summary.extend(decision.to_cloud.then(|| cloud.to_owned()));
        let place = |account: &'a Account| Place::of(account, &outlook.reserved, &outlook.notes);
        let unknown = decision.refusals.iter().map(|(cluster, why)| (cluster, &why.message));
        let paused = "It is paused: the last decision stands, whatever would be decided now.";
        Ok(Self {
            held_up: outlook.paused.then(|| paused.to_owned()),
            summary,
            places: all(&outlook.accounts, place, unknown),
        })
    }

    pub(super) fn of_job(outlook: &'a JobOutlook) -> Result<Self, String> {
        let plan = outlook.plan.as_ref().map_err(|problem| undecided(problem))?;
        let parts = || plan.record.parts.values();
        let finished: u32 = parts().map(|part| part.succeeded).sum();
        let open: u32 = parts().map(Part::open).sum();
        let failed: u32 = parts().map(|part| part.failed).sum();
        let mut summary = vec![format!("{finished} of {} completions finished", outlook.total)];
        match &plan.record.end {
            Some(End::Complete) => summary.push("It is complete: nothing of it is run again.".to_owned()),
            Some(End::Failed { message, .. }) => summary.push(format!("It has failed: {message}")),
            None => summary.push(format!("{open} placed and open, {} pending", plan.pending)),
        }
        if failed > 0 || plan.record.retries > 0 {
            let retries = plan.record.retries;
            let (pods, times) = (counted(failed, "pod"), counted(retries, "time"));
            summary.push(format!("{pods} failed; retried in another cluster {times}"));
        }
        if plan.to_cloud && plan.pending > 0 {
            let cloud = "A further cloud cluster would help: completions that may go anywhere fit nowhere.";
            summary.push(cloud.to_owned());
        }
        let place = |account: &'a Account| {
            let part = plan.record.parts.get(&account.cluster);
            Place {
                facts: part.map(progress).unwrap_or_default(),
                numbers: part.map(numbers).unwrap_or_default(),
                ..Place::of(account, &outlook.reserved, &outlook.notes)
            }
        };
        let unknown = plan.refusals.iter().map(|(cluster, why)| (cluster, &why.message));
        let suspended = "It is suspended: no pod runs, and nothing is given to clusters.";
        Ok(Self {
            held_up: outlook.suspended.then(|| suspended.to_owned()),
            summary,
            places: all(&outlook.accounts, place, unknown),
        })
    }

    pub(super) fn of_service(outlook: &'a ServiceOutlook) -> Result<Self, String> {
        let unknown = || undecided("a cluster is not known well enough yet");
        let parts = outlook.parts.as_ref().ok_or_else(unknown)?;
        let ready: i32 = parts.iter().map(|part| part.ready).sum();
        let follows = match outlook.follows.as_slice() {
            [] => "follows nothing: no MultiClusterDeployment of its namespace has pods that it selects"
                .to_owned(),
            names => format!("follows {}", names.join(", ")),
        };
        let place = |part: &'a ServicePart| {
            let mut facts = Vec::new();
            if part.there {
                let total = part.ready.saturating_add(part.not_ready);
                facts.push(format!("{} of {total} endpoints ready", part.ready));
            }
            if !part.answers {
                facts.push("it does not answer: this is as last seen".to_owned());
            }
            let numbers = vec![
                ("readyEndpoints", i64::from(part.ready)),
                ("notReadyEndpoints", i64::from(part.not_ready)),
            ];
            let (cluster, verdict) = (part.cluster.as_str(), part.verdict.as_str());
            let note = part.note.clone().filter(|_| part.belongs);
            Place { cluster, verdict, facts, numbers, note, ..Place::default() }
        };
        Ok(Self {
            held_up: None,
            summary: vec![format!("{follows}; {ready} endpoints ready")],
            places: parts.iter().map(place).collect(),
        })
    }
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn undecided(problem: &str) -> String {
    format!("nothing can be decided: {problem}")
}

/// The clusters of the fleet, and after them those that are only named.
fn all<'a>(
    accounts: &'a [Account],
    place: impl Fn(&'a Account) -> Place<'a>,
    refusals: impl Iterator<Item = (&'a String, &'a String)>,
) -> Vec<Place<'a>> {
    let named =
        |(cluster, _): &(&String, &String)| !accounts.iter().any(|account| account.cluster == **cluster);
    let only_named =
        refusals.filter(named).map(|(cluster, verdict)| Place { cluster, verdict, ..Place::default() });
    accounts.iter().map(place).chain(only_named).collect()
}

/// How far a part is.
fn progress(part: &Part) -> Vec<String> {
    let mut facts = vec![format!("{} of {} finished", part.succeeded, part.completions)];
    if part.failed > 0 {
        facts.push(format!("{} failed", counted(part.failed, "pod")));
    }
    if part.attempt > 0 {
        facts.push(format!("Job number {} for its part", part.attempt.saturating_add(1)));
    }
    facts
}

fn numbers(part: &Part) -> Vec<(&'static str, i64)> {
    vec![
        ("completions", i64::from(part.completions)),
        ("parallelism", i64::from(part.parallelism)),
        ("succeeded", i64::from(part.succeeded)),
        ("failed", i64::from(part.failed)),
        ("attempt", i64::from(part.attempt)),
    ]
}
