//! What happens in a world of tenancies: administrators of all clusters act, one at a time, and things break.

mod breaks;
mod hands;
mod inviting;
mod lines;
mod offers;
mod parting;
mod refusals;

use super::commands::Use;
use super::judge::Judge;
use super::left::{all_of, objects};
use super::stage::Stage;
use crate::simulation::tally::{Drawn, Tally};
use kube::api::{DynamicObject, ListParams};
use portolan_control::peering::identity;
use portolan_control::tenancy::TenancyError;
use portolan_core::tenancy::InvitationLine;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;

/// Everything that happens, in groups, with how often each group has its turn.
const GROUPS: [(u32, &[Drawn]); 6] = [
    (34, lines::ACTS),
    (21, hands::ACTS),
    (15, offers::ACTS),
    (10, parting::ACTS),
    (12, breaks::ACTS),
    (8, refusals::ACTS),
];

/// How many acts each world must see, so that every act is seen in few worlds: in those that CI runs.
const ON_AGENDA: usize = 6;

/// One world and what goes on in it.
pub(super) struct Story {
    pub(super) stage: Stage,
    pub(super) rng: ChaCha8Rng,
    pub(super) tally: Tally,
    judge: Judge,
    /// Who each cluster is.
    pub(super) identities: Vec<String>,
    /// Consumers and providers that have peered, as far as nobody has ended that.
    pub(super) peered: BTreeSet<(usize, usize)>,
    /// How often somebody has ended something between two clusters, or has put its beginning into doubt.
    ended: BTreeMap<(usize, usize), u32>,
    lines: Vec<Line>,
    /// Commands that are under way.
    uses: JoinSet<Finished>,
    /// Acts that are still to come.
    agenda: Vec<Drawn>,
    broken: breaks::Broken,
    /// How many things were named so far.
    named: u32,
    /// What an act has found that must not be.
    wrong: Vec<String>,
}

/// An invitation that was made.
struct Line {
    provider: usize,
    line: InvitationLine,
    by_hand: bool,
    deleted: bool,
    used: bool,
}

/// A command that has ended.
struct Finished {
    pair: (usize, usize),
    /// How often the pair was disturbed when it began.
    ended: u32,
    /// Nothing if it was interrupted.
    result: Option<Result<(), TenancyError>>,
}

impl Story {
    pub(super) fn new(stage: Stage, rng: ChaCha8Rng, tally: Tally, judge: Judge, number: u64) -> Self {
        let mut all: Vec<Drawn> = GROUPS.iter().flat_map(|(_, acts)| acts.iter().copied()).collect();
        // Those that are frequent are listed several times.
        all.dedup();
        let number = usize::try_from(number).unwrap_or(0);
        let agenda = (0..ON_AGENDA).map(|place| all[(number * ON_AGENDA + place) % all.len()]).collect();
        Self {
            stage,
            rng,
            tally,
            judge,
            identities: Vec::new(),
            peered: BTreeSet::new(),
            ended: BTreeMap::new(),
            lines: Vec::new(),
            uses: JoinSet::new(),
            agenda,
            broken: breaks::Broken::default(),
            named: 0,
            wrong: Vec::new(),
        }
    }

    /// What must not have been since the last look.
    pub(super) fn look(&mut self, is_calm: bool) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.wrong);
        problems.extend(self.judge.look(is_calm));
        problems
    }

    /// One thing happens; so many acts are left with this one.
    pub(super) async fn act(&mut self, left: usize) {
        if self.identities.is_empty() {
            for site in 0..self.stage.sites.len() {
                let id = identity(&self.stage.admin(site), "the cluster").await;
                self.identities.push(id.unwrap_or_default());
            }
        }
        self.collect();
        self.repair();
        if self.lines.len() < 2 {
            Box::pin(self.happens(Drawn::LineUsed)).await;
            return;
        }
        let is_due = left <= self.agenda.len();
        if !self.agenda.is_empty() && (is_due || self.rng.random_bool(0.5)) {
            let next = self.agenda.remove(0);
            if !Box::pin(self.happens(next)).await {
                self.agenda.push(next);
            }
            return;
        }
        let mut number = self.rng.random_range(0..100);
        for (weight, acts) in GROUPS {
            if number < weight {
                let drawn = acts[self.rng.random_range(0..acts.len())];
                Box::pin(self.happens(drawn)).await;
                return;
            }
            number -= weight;
        }
    }

    /// Lets this happen, if it can; it is counted then.
    async fn happens(&mut self, drawn: Drawn) -> bool {
        let note = format!("act: {}", drawn.name());
        self.stage.world.log().note(self.stage.world.clock().now(), &note);
        let done = if lines::ACTS.contains(&drawn) {
            self.line(drawn).await
        } else if hands::ACTS.contains(&drawn) {
            self.by_hand(drawn).await
        } else if offers::ACTS.contains(&drawn) {
            self.offer(drawn).await
        } else if parting::ACTS.contains(&drawn) {
            self.parting(drawn).await
        } else if refusals::ACTS.contains(&drawn) {
            self.refusal(drawn).await
        } else {
            self.breaks(drawn).await
        };
        if done {
            self.tally.add(drawn);
        }
        done
    }

    /// Takes notice of commands that have ended.
    fn collect(&mut self) {
        while let Some(finished) = self.uses.try_join_next() {
            if let Ok(finished) = finished {
                self.finish(&finished);
            }
        }
    }

    fn finish(&mut self, finished: &Finished) {
        let Finished { pair, ended, result } = finished;
        let told = match result {
            None => "was interrupted".to_owned(),
            Some(Ok(())) => "is done".to_owned(),
            Some(Err(error)) => format!("failed: {error}"),
        };
        let (from, to) = (self.stage.name(pair.0), self.stage.name(pair.1));
        self.note(&format!("command of {from} to peer with {to} {told}"));
        if matches!(result, Some(Ok(()))) && self.ended.get(pair).copied().unwrap_or(0) == *ended {
            if self.ended.contains_key(pair) {
                self.tally.add(Drawn::PeeredAgain);
            }
            self.peered.insert(*pair);
        }
    }

    fn note(&self, text: &str) {
        self.stage.world.log().note(self.stage.world.clock().now(), text);
    }

    /// Somebody ends what two clusters are to each other.
    fn end(&mut self, one: usize, other: usize) {
        for pair in [(one, other), (other, one)] {
            self.peered.remove(&pair);
            self.doubt(pair);
        }
    }

    /// What is under way between two clusters may come to nothing.
    fn doubt(&mut self, pair: (usize, usize)) {
        *self.ended.entry(pair).or_default() += 1;
    }

    /// A cluster, and another one.
    fn two(&mut self) -> (usize, usize) {
        let count = self.stage.sites.len();
        let one = self.rng.random_range(0..count);
        (one, (one + self.rng.random_range(1..count)) % count)
    }

    fn site(&mut self) -> usize {
        self.rng.random_range(0..self.stage.sites.len())
    }

    /// One of the objects of a kind in any cluster that are wanted.
    async fn one_of(
        &mut self,
        kind: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Option<(usize, DynamicObject)> {
        let mut found = Vec::new();
        for site in 0..self.stage.sites.len() {
            let all = all_of(&self.stage, site, kind).await;
            found.extend(all.into_iter().filter(&wanted).map(|object| (site, object)));
        }
        let count = found.len();
        (count > 0).then(|| found.swap_remove(self.rng.random_range(0..count)))
    }

    /// Which cluster a ForeignCluster stands for.
    fn stands_for(&self, cluster: &DynamicObject) -> Option<usize> {
        let id = cluster.data["spec"]["clusterIdentity"]["clusterID"].as_str()?;
        self.identities.iter().position(|each| each == id)
    }

    /// All that was broken is whole again, and what is under way comes to its end.
    pub(super) async fn mend(&mut self) {
        self.heal();
        self.stage.world.stop_faults();
        for site in 0..self.stage.sites.len() {
            self.stage.start(site);
        }
        while let Some(finished) = self.uses.join_next().await {
            if let Ok(finished) = finished {
                self.finish(&finished);
            }
        }
    }

    /// All end their workloads, their peerings and their invitations.
    pub(super) async fn part(&mut self) -> Vec<String> {
        for site in 0..self.stage.sites.len() {
            self.stage.end_own_work(site).await;
            for kind in ["MultiClusterDeployment", "Invitation", "SharingClass"] {
                for object in all_of(&self.stage, site, kind).await {
                    let name = object.metadata.name.clone().unwrap_or_default();
                    let api = objects(&self.stage, site, kind, object.metadata.namespace.as_deref());
                    let _ = api.delete(&name, &Default::default()).await;
                }
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let mut problems = Vec::new();
        for site in 0..self.stage.sites.len() {
            let clusters = objects(&self.stage, site, "ForeignCluster", None);
            for cluster in
                clusters.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
            {
                let name = cluster.metadata.name.unwrap_or_default();
                if let Err(problem) = Box::pin(self.stage.unpeer(site, &name)).await {
                    problems.push(format!("{} cannot unpeer {name}: {problem}", self.stage.name(site)));
                }
            }
        }
        problems
    }
}
