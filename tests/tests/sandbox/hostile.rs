//! A member that answers whatever it likes costs only itself: workloads in honest members are placed, scaled and
//! deleted as always, and its ForeignCluster says what is wrong.

use crate::stage::{contend, fleet_of, pass, patch, ready, replicas, workloads};
use portolan_sandbox::{FaultPlan, HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::workload;
use serde_json::json;
use tokio::task::JoinHandle;

/// The hostile member is first in the alphabet, the honest one last.
const EVIL: &str = "a-evil";
const HONEST: usize = 1;

/// More than any answer of a member may be, and little enough for a test.
const LIMIT: usize = 128 << 20;

fn asked() -> RequestFilter {
    RequestFilter::any().party(CONTROLLER)
}

/// A fleet whose first member follows these rules from the start.
async fn start(rules: Vec<HostileRule>) -> (Fleet, JoinHandle<()>) {
    let fleet = fleet_of(&[(EVIL, 1, "4"), ("honest", 1, "4")], FaultPlan::none()).await;
    fleet.world.hostile(EVIL, rules);
    let controller = contend(&fleet, Contender::alone());
    (fleet, controller)
}

/// A workload in the honest member is placed, scaled and deleted.
async fn is_served(fleet: &Fleet) {
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["honest"]}))).await;
    pass(40).await;
    assert_eq!(replicas(fleet, HONEST, "web").await, Some(1), "not placed");
    patch(fleet, "web", json!({"replicas": 3})).await;
    pass(20).await;
    assert_eq!(replicas(fleet, HONEST, "web").await, Some(3), "not scaled");
    assert_eq!(ready(fleet, "web").await, 3);
    workloads(fleet).delete("web", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(replicas(fleet, HONEST, "web").await, None, "not deleted");
    assert!(workloads(fleet).get_opt("web").await.unwrap().is_none(), "the finalizer stays");
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_in_a_watch_costs_only_its_member() {
    let head = r#"{"type":"ADDED","object":{"#.to_owned();
    let endless = HostileAnswer::Endless { head, chunk: " ".repeat(1 << 20), limit: LIMIT };
    let (fleet, _controller) =
        start(vec![HostileRule::new(asked().verb("watch").resource("nodes"), endless)]).await;
    is_served(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn conflicts_without_end_cost_only_their_member() {
    let conflict = HostileAnswer::refusal(409, "try again");
    let writes = asked().verb("patch").verb("create").resource("deployments.apps");
    let (fleet, _controller) = start(vec![HostileRule::new(writes, conflict)]).await;
    apply(&fleet.hub.client("user"), &workload("there", 1, json!({"locations": [EVIL]}))).await;
    let before = fleet.world.requests(CONTROLLER);
    pass(60).await;
    let asked = fleet.world.requests(CONTROLLER) - before;
    assert!(asked < 1000, "{asked} requests in a minute");
    is_served(&fleet).await;
}
