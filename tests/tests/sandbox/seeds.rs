//! The manifests of the mck8s paper, converted, on a fleet with the names they use.

use super::stage::{contend, pass};
use jiff::Timestamp;
use kube::Api;
use portolan_api::convert::convert;
use portolan_api::{MultiClusterJob, MultiClusterService, conditions};
use portolan_sandbox::{NodeConfig, World, WorldConfig};
use portolan_tests::simulation::{Contender, Fleet, apply};
use serde_json::{Value, json};

const WORKLOAD: &str = include_str!("../../../crates/api/fixtures/seeds/mck8s-listing-1.yaml");
const SERVICE: &str = include_str!("../../../crates/api/fixtures/seeds/mck8s-listing-3.yaml");
const JOB: &str = include_str!("../../../crates/api/fixtures/seeds/mck8s-job.yaml");

#[tokio::test(start_paused = true)]
async fn the_papers_service_and_a_job_of_its_kind_work_as_written() {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
    let names = ["cluster1", "cluster2", "cluster3", "cluster4", "cluster5"];
    let fleet = Fleet::new(world, &names.map(|name| (name, 2, NodeConfig::new("4", "16Gi")))).await;
    let user = fleet.hub.client("user");
    for namespace in ["default", "batch"] {
        let open = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"portolan.dev/placement": "allowed"}},
        });
        apply(&user, &open).await;
        for member in &fleet.members {
            apply(&member.client("user"), &open).await;
        }
    }
    let _controller = contend(&fleet, Contender::alone());
    for text in [WORKLOAD, SERVICE, JOB] {
        for document in convert(text).unwrap().documents {
            let mut document: Value = document;
            if document["metadata"]["namespace"].is_null() {
                document["metadata"]["namespace"] = json!("default");
            }
            if document["kind"] == "MultiClusterDeployment" {
                // Nobody sends any traffic here.
                document["spec"]["placementPolicy"] = json!("worst-fit");
            }
            if document["kind"] == "MultiClusterJob" {
                // A simulated pod runs for as long as it is told, not for as long as its command says.
                let told = json!({"sandbox.portolan.dev/run-time": "30s"});
                document["spec"]["template"]["metadata"]["annotations"] = told;
            }
            apply(&user, &document).await;
        }
    }
    pass(100).await;
    let services: Api<MultiClusterService> = Api::namespaced(user.clone(), "default");
    let service = services.get("mcs-app-1").await.unwrap().status.unwrap();
    assert!(conditions::is_true(&service.conditions, conditions::ConditionType::Ready), "{service:?}");
    assert!(service.ready_endpoints > 0 && service.follows == ["mcd-app-1"]);
    let jobs: Api<MultiClusterJob> = Api::namespaced(user, "batch");
    let job = jobs.get("mcj-app-1").await.unwrap().status.unwrap();
    assert!(conditions::is_true(&job.conditions, conditions::ConditionType::Complete), "{job:?}");
    assert_eq!(job.completions_summary.as_deref(), Some("4/4"));
    assert_eq!(job.locations_summary.as_deref(), Some("cluster1=4"));
}
