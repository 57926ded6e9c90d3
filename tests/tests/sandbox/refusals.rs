//! A member that does not take a workload which another one serves is asked now and then whether it would, and nothing is
//! given back to it before it says so.

use crate::stage::{contend, fleet_of, pass, ready, replicas};
use portolan_sandbox::{DenyingPolicy, FaultAnswer, FaultPlan, LogEntry, PartialFault, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::workload;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// The places of `web`, each time that they have changed.
#[derive(Clone, Default)]
struct Moves(Arc<Mutex<Vec<String>>>);

impl Moves {
    fn follow(fleet: &Fleet) -> Self {
        let moves = Self::default();
        let seen = moves.clone();
        fleet.world.log().listen(Some(Box::new(move |entry: &LogEntry<'_>| {
            let LogEntry::Change(change) = entry else { return };
            if change.table == "portolan.dev/multiclusterdeployments" {
                let places =
                    change.object()["status"]["locationsSummary"].as_str().unwrap_or("none").to_owned();
                let mut seen = seen.0.lock().unwrap();
                if seen.last() != Some(&places) {
                    seen.push(places);
                }
            }
        })));
        moves
    }

    /// How often it moved so far, and where it is.
    fn told(&self) -> (usize, String) {
        let moves = self.0.lock().unwrap();
        (moves.len(), moves.last().cloned().unwrap_or_default())
    }
}

/// Two members, of which `a` is preferred and `b` may stand in; the controller at work.
async fn standing_in(prepare: impl FnOnce(&Fleet)) -> (Fleet, Moves) {
    let fleet = fleet_of(&[("a", 1, "4"), ("b", 1, "4")], FaultPlan::none()).await;
    prepare(&fleet);
    let moves = Moves::follow(&fleet);
    drop(contend(&fleet, Contender::alone()));
    let wish = json!({"locations": ["a"], "enableSubstitution": true});
    apply(&fleet.hub.client("user"), &workload("web", 2, wish)).await;
    pass(120).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), (None, Some(2)));
    (fleet, moves)
}

/// For twenty minutes it stays where it is.
async fn stays(fleet: &Fleet, moves: &Moves) {
    let before = moves.told();
    assert_eq!(before.1, "b=2");
    for minute in 0..20 {
        pass(60).await;
        assert_eq!(moves.told(), before, "after {minute} minutes: {:?}", moves.0.lock().unwrap());
    }
    assert_eq!(ready(fleet, "web").await, 2);
}

/// Within so many seconds it is at home, without having been anywhere else meanwhile.
async fn comes_home(fleet: &Fleet, moves: &Moves, seconds: u64) {
    let (before, _) = moves.told();
    pass(seconds).await;
    assert_eq!(moves.told(), (before + 1, "a=2".to_owned()));
    assert_eq!((replicas(fleet, 0, "web").await, replicas(fleet, 1, "web").await), (Some(2), None));
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_denies_stays_with_its_substitute_until_it_is_allowed() {
    for forbidden in [false, true] {
        let (fleet, moves) = standing_in(|fleet| {
            let policy = DenyingPolicy::new("others", &["Deployment"], "this cluster is for others");
            fleet.members[0].add_policy(if forbidden { policy.forbidden() } else { policy });
        })
        .await;
        stays(&fleet, &moves).await;
        fleet.members[0].remove_admission("others");
        comes_home(&fleet, &moves, 360).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_member_fails_to_do_stays_with_its_substitute_until_it_can() {
    let (fleet, moves) = standing_in(|fleet| {
        let applied =
            RequestFilter::any().party(CONTROLLER).cluster("a").verb("patch").resource("deployments.apps");
        fleet.world.add_fault(PartialFault::new("broken", applied, FaultAnswer::Status(500)));
    })
    .await;
    stays(&fleet, &moves).await;
    fleet.world.end_fault("broken");
    comes_home(&fleet, &moves, 540).await;
}
