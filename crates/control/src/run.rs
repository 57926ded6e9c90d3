//! All controllers of a hub on one fleet.

use crate::capacity::tell_of_room;
use crate::claims::Claims;
use crate::dependencies::{Leftovers, Sources};
use crate::fleet::{Connect, Fleet, Hub, keep};
use crate::jobs::Jobs;
use crate::placement::Placement;
use crate::review::Reviews;
use crate::services::Services;
use kube::Client;
use portolan_runtime::{Clock, Seed, Term, WatchHealth};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long the hub has to list its own kinds before that is said.
const HUB_LISTED_WITHIN: Duration = Duration::from_secs(10);

/// Runs the fleet's membership and all controllers for the length of a term. Dropped, they stop at once.
///
/// It ends when the term is over, or when one of its parts fails: a leader that is not whole gives up the lease and ends,
/// so that another one, or the same process started anew, does all of the work.
pub async fn run(hub: Client, connect: Arc<dyn Connect>, clock: Clock, seed: Seed, term: Term) {
    let hub = Hub::identify(hub, seed).await;
    let fleet = Fleet::default();
    let sources = Sources::default();
    let claims = Claims::new(&term);
    let placement = Placement::new(&hub, &fleet, &sources, &clock, seed, &claims, &term);
    let services =
        Services::new(&hub, &fleet, placement.workloads(), &clock, seed.child("services"), &claims, &term);
    let jobs = Jobs::new(&hub, &fleet, &sources, &clock, seed.child("jobs"), &claims, &term);
    let (wake_jobs, room_for_jobs) = (jobs.wake(), jobs.wake());
    let (wake_placement, wake_services) = (placement.wake(), services.wake());
    let (followers, room) = (services.wake(), placement.wake());
    let (using_placement, using_jobs) = (placement.wake(), jobs.wake());
    let leftovers =
        Leftovers::new(&fleet, &clock, seed.child("leftovers"), &term, move |cluster, ns, what| {
            using_placement.uses(cluster, ns, what) || using_jobs.uses(cluster, ns, what)
        });
    let (owning_placement, owning_jobs) = (placement.wake(), jobs.wake());
    let notice = Arc::new(leftovers.notice(move |owner| {
        owning_placement.room(owner);
        owning_jobs.room(owner);
    }));
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_hub([
        ("ForeignClusters", fleet.clusters.health().clone()),
        ("MultiClusterDeployments", placement.workloads().health().clone()),
        ("MultiClusterJobs", jobs.health().clone()),
        ("MultiClusterServices", services.health().clone()),
    ]));
    let (needs, needs_of_jobs) = (placement.wake(), jobs.wake());
    sources.follow(&hub.client, seed.child("dependencies"), &mut tasks, move |namespace, reference| {
        needs.needs(namespace, reference);
        needs_of_jobs.needs(namespace, reference);
    });
    tasks.spawn(tell_of_room(fleet.ledger.clone(), move |owner| {
        room.room(owner);
        room_for_jobs.room(owner);
    }));
    let (of_placement, of_jobs, of_services) = (placement.previews(), jobs.previews(), services.previews());
    let seed_of_reviews = seed.child("reviews");
    let reviews =
        Reviews::new(&hub, &fleet, of_placement, of_jobs, of_services, &clock, seed_of_reviews, &term);
    tasks.spawn(reviews.run());
    tasks.spawn(leftovers.run());
    tasks.spawn(services.run());
    tasks.spawn(jobs.run());
    let known = fleet.clone();
    tasks.spawn(keep(hub, fleet, connect, clock, seed.child("fleet"), move |cluster, what| {
        known.founding.notice(&known, cluster);
        wake_placement.touched(cluster, &what);
        wake_services.touched(cluster, &what);
        wake_jobs.touched(cluster, &what);
        notice(cluster, &what);
    }));
    tasks.spawn(placement.run(move |workload| followers.workload_changed(workload)));
    tokio::select! {
        biased;
        () = term.until_over() => {}
        Some(ended) = tasks.join_next() => {
            let why = ended.map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
            tracing::error!(why, "a controller failed: all are stopped");
        }
    }
    tasks.shutdown().await;
}

/// Says loudly what the hub does not let us list: nothing is decided without it.
async fn watch_hub<const N: usize>(watches: [(&'static str, WatchHealth); N]) {
    let mut said: BTreeMap<&str, String> = BTreeMap::new();
    loop {
        tokio::time::sleep(HUB_LISTED_WITHIN).await;
        for (kind, health) in &watches {
            let problem = health.failure().map(|failure| failure.error).filter(|_| !health.is_listed());
            match problem {
                Some(problem) if said.get(kind) != Some(&problem) => {
                    tracing::error!(
                        kind,
                        problem,
                        "the hub does not list them, and nothing is placed anywhere until it does: \
                         `portolan crds | kubectl apply --server-side -f -` installs the definitions"
                    );
                    said.insert(kind, problem);
                }
                Some(_) => {}
                None => _ = said.remove(kind),
            }
        }
    }
}
