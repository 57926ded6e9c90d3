//! What happens in the demo, and what must come true.

use super::fleet::{Fleet, NAMESPACE, apply, sites};
use super::rush::RushHour;
use super::{show, users};
use crate::failure::Failure;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The paper's second listing, as its users wrote it.
const LISTING: &str = "\
apiVersion: fogguru.eu/v1
kind: MultiClusterDeployment
metadata:
  name: mcd-app-2
  namespace: demo
spec:
  locations: cluster2, cluster5
  selector:
    matchLabels: {app: mcd-app-2, tier: backend}
  replicas: 5
  template:
    metadata:
      labels: {app: mcd-app-2, tier: backend}
    spec:
      containers:
      - name: mcd-app-2
        image: k8s.gcr.io/hpa-example
        resources:
          requests: {memory: 512Mi, cpu: 500m}
";

const APPS: [&str; 5] = ["mcd-app-2", "roomy", "greedy", "neighbourly", "shop"];

/// Tells the story; an error is what did not come true.
pub(super) async fn tell(fleet: &Fleet, rush_hour: RushHour) -> Result<(), Failure> {
    let story = Story { fleet };
    show::chapter(1, "A hub and the five sites of the mck8s paper, all inside this process");
    story.members().await?;
    show::chapter(2, "The paper's manifest, converted, goes to the clusters that it names");
    story.affinity().await?;
    show::chapter(3, "Worst-fit chooses the roomiest clusters, counting what is taken");
    story.worst_fit().await?;
    show::chapter(4, "What fits is placed; the rest waits, and every cluster says why");
    story.partial().await?;
    show::chapter(5, "With substitution, the nearest cluster stands in for a full one");
    story.substitution().await?;
    show::chapter(6, "Traffic-aware: replicas go where the users are, and follow them");
    tokio::select! {
        biased;
        told = story.traffic() => told?,
        failure = users::measure(fleet.world().clone()) => return Err(failure),
    }
    show::chapter(7, "A cluster falls silent: nothing is lost, nothing is counted as gone");
    story.silence().await?;
    show::chapter(8, "A job is divided over clusters, and a service follows its workload");
    story.job_and_service().await?;
    show::chapter(9, "A rush hour, 50 minutes of virtual time: autoscaled, into the cloud, and home again");
    rush_hour.tell().await?;
    show::chapter(10, "Deleted in the hub, deleted everywhere");
    story.deletion().await?;
    show::say("\n   All of it came true. Next: docs/src/start/first-placement.md, on clusters of your own");
    Ok(())
}

struct Story<'a> {
    fleet: &'a Fleet,
}

impl Story<'_> {
    async fn members(&self) -> Result<(), Failure> {
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.clone());
        let all_ready = |list: &Vec<ForeignCluster>| {
            let ready = |cluster: &ForeignCluster| {
                let status = cluster.status.as_ref();
                status.is_some_and(|status| conditions::is_true(&status.conditions, ConditionType::Ready))
            };
            !list.is_empty() && list.iter().all(ready)
        };
        let list = async || Ok(api.list(&Default::default()).await.map_err(Failure::other)?.items);
        let (list, after) = until("all members are ready", list, all_ready).await?;
        show::clusters(&list, &sites().collect::<Vec<_>>());
        show::came_true("all members answer", after);
        Ok(())
    }

    async fn affinity(&self) -> Result<(), Failure> {
        let converted = portolan_api::convert::convert(LISTING).map_err(Failure::other)?;
        for document in &converted.documents {
            apply(&self.fleet.hub, document).await?;
        }
        let (workload, after) = self.until_ready("mcd-app-2", "cluster2=5,cluster5=5").await?;
        show::placements(&workload);
        show::came_true("5 replicas run in each of cluster2 and cluster5", after);
        Ok(())
    }

    async fn worst_fit(&self) -> Result<(), Failure> {
        let placement = json!({"placementPolicy": "worst-fit", "numberOfLocations": 2});
        apply(&self.fleet.hub, &workload("roomy", 4, "1", placement)).await?;
        let (workload, after) = self.until_ready("roomy", "cluster1=4,cluster5=4").await?;
        show::placements(&workload);
        show::came_true("the two large sites were chosen", after);
        Ok(())
    }

    async fn partial(&self) -> Result<(), Failure> {
        apply(&self.fleet.hub, &workload("greedy", 8, "1500m", json!({"locations": ["cluster3"]}))).await?;
        let waits = |status: &MultiClusterDeployment| {
            status
                .status
                .as_ref()
                .is_some_and(|status| status.pending_replicas == 3 && status.ready_replicas == 5)
        };
        let (workload, after) = self.until("greedy", "5 of 8 replicas run and 3 wait", waits).await?;
        show::placements(&workload);
        show::came_true("5 of 8 replicas run, one on each node; 3 wait", after);
        self.scale("greedy", 5).await?;
        let (_, after) = self.until_ready("greedy", "cluster3=5").await?;
        show::came_true("scaled to 5, nothing waits any more", after);
        Ok(())
    }

    async fn substitution(&self) -> Result<(), Failure> {
        let placement = json!({"locations": ["cluster2"], "enableSubstitution": true});
        apply(&self.fleet.hub, &workload("neighbourly", 8, "1500m", placement)).await?;
        let (workload, after) = self.until_ready("neighbourly", "cluster1=3,cluster2=5").await?;
        show::placements(&workload);
        show::came_true("3 replicas found no room in Nantes and went to Rennes, 2.16 ms away", after);
        Ok(())
    }

    async fn traffic(&self) -> Result<(), Failure> {
        users::send(self.fleet, "cluster3", 60);
        users::send(self.fleet, "cluster4", 5);
        show::say("60 requests a second come from Lille, 5 from Grenoble");
        users::tell_once(self.fleet.world()).await?;
        let placement = json!({"placementPolicy": "traffic-aware"});
        apply(&self.fleet.hub, &workload("shop", 2, "100m", placement)).await?;
        let (workload, after) = self.until_ready("shop", "cluster3=2").await?;
        show::placements(&workload);
        show::came_true("the shop runs in Lille, where its users are", after);
        users::send(self.fleet, "cluster3", 0);
        users::send(self.fleet, "cluster4", 600);
        show::say("the users move: 600 requests a second now come from Grenoble");
        let least = Cell::new(i32::MAX);
        let watched = async || {
            least.set(least.get().min(self.fleet.ready("shop").await?));
            self.workloads().get("shop").await.map_err(Failure::other)
        };
        let moved = |workload: &MultiClusterDeployment| is_ready_in(workload, "cluster4=2");
        let (workload, after) = until("the shop is ready in cluster4", watched, moved).await?;
        show::placements(&workload);
        if least.get() < 2 {
            return Err(Failure::other(format!(
                "while the shop moved, only {} replicas were ready",
                least.get()
            )));
        }
        show::came_true("the shop has followed them, and never had fewer than 2 ready replicas", after);
        Ok(())
    }

    async fn silence(&self) -> Result<(), Failure> {
        self.fleet.cut("cluster5");
        let unknown = |workload: &MultiClusterDeployment| {
            let status = workload.status.clone().unwrap_or_default();
            let ready = conditions::find(&status.conditions, ConditionType::Ready);
            ready.is_some_and(|ready| ready.status == "Unknown")
                && status.locations_summary.as_deref() == Some("cluster2=5,cluster5=5")
        };
        let (workload, after) =
            self.until("mcd-app-2", "cluster5 is Unknown and keeps its replicas", unknown).await?;
        show::placements(&workload);
        show::came_true("cluster5 is Unknown; its 5 replicas stay on record", after);
        self.fleet.heal("cluster5");
        let (_, after) = self.until_ready("mcd-app-2", "cluster2=5,cluster5=5").await?;
        show::came_true("it answers again, and everything is as before", after);
        Ok(())
    }

    async fn job_and_service(&self) -> Result<(), Failure> {
        let job = json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "MultiClusterJob",
            "metadata": {"name": "nightly", "namespace": NAMESPACE},
            "spec": {
                "locations": ["cluster1", "cluster5"], "countMode": "Total", "completions": 6, "parallelism": 6,
                "template": {
                    "metadata": {"annotations": {"sandbox.portolan.dev/run-time": "2s"}},
                    "spec": {"restartPolicy": "Never", "containers": [
                        {"name": "main", "image": "example.org/sum:1", "resources": {"requests": {"cpu": "100m"}}},
                    ]},
                },
            },
        });
        apply(&self.fleet.hub, &job).await?;
        let jobs: Api<MultiClusterJob> = Api::namespaced(self.fleet.hub.clone(), NAMESPACE);
        let complete = |job: &MultiClusterJob| {
            let status = job.status.as_ref();
            status.is_some_and(|status| conditions::is_true(&status.conditions, ConditionType::Complete))
        };
        let look = async || jobs.get("nightly").await.map_err(Failure::other);
        let (job, after) = until("the job is complete", look, complete).await?;
        let places = job.status.and_then(|status| status.locations_summary).unwrap_or_default();
        show::came_true(&format!("6 completions, divided as {places}, each run once"), after);
        let service = json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "MultiClusterService",
            "metadata": {"name": "roomy", "namespace": NAMESPACE},
            "spec": {"selector": {"app": "roomy"}, "ports": [{"port": 80}]},
        });
        apply(&self.fleet.hub, &service).await?;
        let services: Api<MultiClusterService> = Api::namespaced(self.fleet.hub.clone(), NAMESPACE);
        let serves = |service: &MultiClusterService| {
            service.status.as_ref().is_some_and(|status| status.ready_endpoints == 8)
        };
        let look = async || services.get("roomy").await.map_err(Failure::other);
        let (_, after) = until("the service has 8 endpoints", look, serves).await?;
        show::came_true("the Service is in the two clusters where roomy runs, with 8 endpoints", after);
        jobs.delete("nightly", &DeleteParams::default()).await.map_err(Failure::other)?;
        services.delete("roomy", &DeleteParams::default()).await.map_err(Failure::other)?;
        Ok(())
    }

    async fn deletion(&self) -> Result<(), Failure> {
        let api = self.workloads();
        for name in APPS {
            api.delete(name, &DeleteParams::default()).await.map_err(Failure::other)?;
        }
        let gone = async || {
            let left = api.list(&Default::default()).await.map_err(Failure::other)?.items.len();
            let mut copies = 0;
            for name in APPS {
                copies += self.fleet.copies(name).await?;
            }
            Ok(left + copies)
        };
        let (_, after) = until("all copies are gone", gone, |left| *left == 0).await?;
        show::came_true("no workload and no copy is left", after);
        Ok(())
    }

    async fn until_ready(
        &self,
        name: &str,
        places: &str,
    ) -> Result<(MultiClusterDeployment, Duration), Failure> {
        let ready = |workload: &MultiClusterDeployment| is_ready_in(workload, places);
        self.until(name, &format!("{name} is ready in {places}"), ready).await
    }

    async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&MultiClusterDeployment) -> bool,
    ) -> Result<(MultiClusterDeployment, Duration), Failure> {
        let api = self.workloads();
        until(what, async || api.get(name).await.map_err(Failure::other), holds).await
    }

    async fn scale(&self, name: &str, replicas: i32) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let patched = self.workloads().patch(name, &PatchParams::default(), &patch).await;
        patched.map(|_| ()).map_err(Failure::other)
    }

    fn workloads(&self) -> Api<MultiClusterDeployment> {
        Api::namespaced(self.fleet.hub.clone(), NAMESPACE)
    }
}

/// Whether a workload is as it was asked to be last, in these places.
fn is_ready_in(workload: &MultiClusterDeployment, places: &str) -> bool {
    let status = workload.status.clone().unwrap_or_default();
    status.observed_generation == workload.metadata.generation
        && conditions::is_true(&status.conditions, ConditionType::Ready)
        && status.locations_summary.as_deref() == Some(places)
}

/// Looks until something holds; the demo's own time limit ends a wait.
async fn until<T>(
    what: &str,
    look: impl AsyncFn() -> Result<T, Failure>,
    holds: impl Fn(&T) -> bool,
) -> Result<(T, Duration), Failure> {
    let start = Instant::now();
    loop {
        let seen = look().await?;
        if holds(&seen) {
            return Ok((seen, start.elapsed()));
        }
        if start.elapsed() > Duration::from_secs(30) {
            return Err(Failure::other(format!("waited 30 s, but not: {what}")));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) fn workload(name: &str, replicas: i32, cpu: &str, placement: Value) -> Value {
    let mut object = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [
                    {"name": "main", "image": "example.org/app:1", "resources": {"requests": {"cpu": cpu}}},
                ]},
            },
        },
    });
    if let (Some(spec), Value::Object(placement)) = (object["spec"].as_object_mut(), placement) {
        spec.extend(placement);
    }
    object
}
