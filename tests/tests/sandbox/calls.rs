//! What a placement and a move cost in calls: one more than needed, a thousand times over, is what a large fleet waits
//! for.

use crate::stage::{fleet, pass, status};
use portolan_runtime::Seed;
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{foreign_cluster, workload};
use serde_json::json;
use std::collections::BTreeMap;

/// Calls in the hub and in all members since an earlier count, without what goes on whether anything is placed or not.
struct Count<'a> {
    fleet: &'a Fleet,
    before: BTreeMap<String, u64>,
}

impl<'a> Count<'a> {
    fn from_now(fleet: &'a Fleet) -> Self {
        Self { fleet, before: counted(fleet) }
    }

    fn lines(&self) -> Vec<String> {
        let since = |(what, count): (String, u64)| {
            let count = count - self.before.get(&what).copied().unwrap_or(0);
            (count > 0).then(|| format!("{what}: {count}"))
        };
        counted(self.fleet).into_iter().filter_map(since).collect()
    }
}

fn counted(fleet: &Fleet) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let clusters = fleet.members.iter().map(|member| ("member", member));
    for (place, cluster) in clusters.chain([("hub", &fleet.hub)]) {
        for called in cluster.calls() {
            // Watches are opened anew, clusters probed and their numbers told, whatever is placed.
            let goes_on = matches!(called.verb.as_str(), "watch" | "list")
                || called.resource.starts_with('/')
                || called.resource.starts_with("selfsubjectrulesreviews")
                || called.resource.starts_with("foreignclusters");
            if !goes_on {
                *counts.entry(format!("{place} {} {}", called.verb, called.resource)).or_default() +=
                    called.count;
            }
        }
    }
    counts
}

async fn label(fleet: &Fleet, name: &str, tier: &str) {
    let mut cluster = foreign_cluster(name);
    cluster["metadata"]["labels"] = json!({"tier": tier});
    apply(&fleet.hub.client("user"), &cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_placement_and_a_move_take_no_more_calls_than_these() {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = Contender::alone().run(fleet.world.clone(), fleet.hub.clone(), Seed::new(1));
    let _controller = tokio::spawn(controller);
    label(&fleet, "c2", "a").await;
    pass(20).await;
    let count = Count::from_now(&fleet);
    let selecting = json!({
        "placementPolicy": "worst-fit", "numberOfLocations": 1, "clusterSelector": {"matchLabels": {"tier": "a"}},
    });
    apply(&fleet.hub.client("user"), &workload("web", 2, selecting)).await;
    pass(60).await;
    let lines = count.lines();
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
    assert_eq!(
        lines,
        [
            "hub create events.events.k8s.io: 1",
            // The user's own, and the finalizer.
            "hub patch multiclusterdeployments.portolan.dev: 2",
            // The reservation, and that all is ready.
            "hub update multiclusterdeployments.portolan.dev/status: 2",
            // The template tried, and the copy.
            "member patch deployments.apps: 2",
        ]
    );

    let count = Count::from_now(&fleet);
    label(&fleet, "c3", "a").await;
    label(&fleet, "c2", "b").await;
    pass(60).await;
    let lines = count.lines();
    let moved = status(&fleet, "web").await;
    assert_eq!((moved.locations_summary.as_deref(), moved.ready_replicas), (Some("c3=2"), 2));
    assert_eq!(moved.placements.len(), 1, "the old copy is gone");
    assert_eq!(
        lines,
        [
            "hub create events.events.k8s.io: 1",
            // The reservation, and that all is ready and the old copy gone.
            "hub update multiclusterdeployments.portolan.dev/status: 2",
            "member delete deployments.apps: 1",
            "member patch deployments.apps: 1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_template_is_tried_once_for_all_workloads_that_share_it() {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = Contender::alone().run(fleet.world.clone(), fleet.hub.clone(), Seed::new(1));
    let _controller = tokio::spawn(controller);
    pass(20).await;
    let count = Count::from_now(&fleet);
    let like = |image: &str| {
        json!({
            "locations": ["c2"],
            "selector": {"matchLabels": {"app": "any"}},
            "template": {
                "metadata": {"labels": {"app": "any"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        })
    };
    for (name, image) in [("one", "app:1"), ("two", "app:1"), ("three", "app:2")] {
        apply(&fleet.hub.client("user"), &workload(name, 1, like(image))).await;
        pass(20).await;
        assert_eq!(status(&fleet, name).await.ready_summary.as_deref(), Some("1/1"));
    }
    let copies = count.lines().into_iter().find(|line| line.contains("deployments.apps"));
    assert_eq!(copies.as_deref(), Some("member patch deployments.apps: 5"), "two templates, three copies");
}
