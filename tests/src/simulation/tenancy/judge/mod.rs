//! What must hold at every write in a world of tenancies. The judge follows the log of the world.
//!
//! One consumer has one identity in a provider; a certificate is signed for the key that is on record and for no other one;
//! only a tenant has a tenant's rights, and only where they were given; and quotas never admit more than is shared.

mod certificates;
mod quotas;
mod rights;

use certificates::Certificates;
use jiff::Timestamp;
use portolan_sandbox::{Change, LogEntry, World};
use quotas::Quotas;
use rights::Rights;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cluster, namespace and name.
type Place = (String, String, String);

/// Follows a world.
#[derive(Clone, Default)]
pub(super) struct Judge(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Who acts in which cluster now.
    acting: Option<(String, String)>,
    live: Live,
    rights: Rights,
    certificates: Certificates,
    quotas: Quotas,
    problems: Vec<String>,
}

/// The objects that there are, of the kinds that matter, by kind.
#[derive(Default)]
struct Live(BTreeMap<&'static str, BTreeMap<Place, Arc<Value>>>);

/// The kinds that matter.
const KINDS: [&str; 8] = [
    "/namespaces",
    "/resourcequotas",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "certificates.k8s.io/certificatesigningrequests",
    "portolan.dev/foreignclusters",
    "portolan.dev/invitations",
    "portolan.dev/sharingclasses",
];

impl Live {
    fn all<'a>(&'a self, kind: &str, cluster: &'a str) -> impl Iterator<Item = (&'a Place, &'a Value)> {
        let objects = self.0.get(kind).into_iter().flatten();
        objects.filter(move |((place, _, _), _)| place == cluster).map(|(place, object)| (place, &**object))
    }

    fn find(&self, kind: &str, cluster: &str, namespace: &str, name: &str) -> Option<&Value> {
        let place = (cluster.to_owned(), namespace.to_owned(), name.to_owned());
        self.0.get(kind)?.get(&place).map(|object| &**object)
    }
}

impl Judge {
    /// Follows a world from now on, whose clusters have so many thousandths of a CPU.
    pub(super) fn follow(&self, world: &World, cpus: BTreeMap<String, i64>) {
        self.state().quotas.whole = cpus;
        let state = self.clone();
        world.log().listen(Some(Box::new(move |entry| state.state().take(entry))));
    }

    /// What must not have been since the last look; and what must not be, when all has been well for a while.
    pub(super) fn look(&self, is_calm: bool) -> Vec<String> {
        let mut state = self.state();
        let mut problems = std::mem::take(&mut state.problems);
        if is_calm {
            problems.extend(rights::orphaned(&state.live));
        }
        problems
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, entry: &LogEntry<'_>) {
        match entry {
            LogEntry::Begins { cluster, party } => {
                self.acting = Some(((*cluster).to_owned(), (*party).to_owned()));
            }
            LogEntry::Ends { .. } => self.acting = None,
            LogEntry::Change(change) => {
                if let Some(kind) = KINDS.into_iter().find(|kind| *kind == change.table) {
                    self.change(kind, change);
                }
            }
        }
    }

    fn change(&mut self, kind: &'static str, change: &Change<'_>) {
        let object = change.object();
        let place = (
            change.cluster.to_owned(),
            text(&object["metadata"]["namespace"]),
            text(&object["metadata"]["name"]),
        );
        let acting = self.acting.as_ref().filter(|(cluster, _)| cluster == change.cluster);
        let by_controller = acting.is_some_and(|(_, party)| crate::simulation::is_controller(party));
        let objects = self.live.0.entry(kind).or_default();
        if change.is_deletion() {
            objects.remove(&place);
        } else {
            objects.insert(place.clone(), object.clone());
        }
        let what = Happened {
            live: &self.live,
            place: &place,
            object: &object,
            gone: change.is_deletion(),
            by_controller,
            now: change.now,
        };
        let problems = match kind {
            "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings" => {
                self.rights.bound(&what)
            }
            "certificates.k8s.io/certificatesigningrequests" => self.certificates.requested(&what),
            "portolan.dev/invitations" => self.certificates.recorded(&what),
            "portolan.dev/foreignclusters" => {
                let mut problems = self.rights.declared(&what);
                problems.extend(self.quotas.shared(&what));
                problems
            }
            "portolan.dev/sharingclasses" => self.quotas.shared(&what),
            "/resourcequotas" => self.quotas.written(&what),
            _ => Vec::new(),
        };
        let told = |problem| format!("{} in {}: {problem}", change.now, change.cluster);
        self.problems.extend(problems.into_iter().map(told));
    }
}

/// One change of one object.
struct Happened<'a> {
    live: &'a Live,
    place: &'a Place,
    object: &'a Value,
    gone: bool,
    /// Whether a controller of Portolan did it.
    by_controller: bool,
    now: Timestamp,
}

impl Happened<'_> {
    fn cluster(&self) -> &str {
        &self.place.0
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
