//! A burst to the cloud and back whose controllers are killed around one of their requests that write: each of them, on each side.
//!
//! Which requests there are is seen in a play without a crash. All of them are played if `PORTOLAN_EVERY_CRASH` is set; otherwise
//! some that are spread over the whole burst, always the same ones.

use crate::burst::{made, placed, running, start};
use crate::burst_templates::{begin, left_over, templated};
use crate::provision::{bursting, provisioner};
use crate::stage::pass;
use kube::Api;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use portolan_api::cloudprovisioner::CloudPhase;
use portolan_sandbox::{CrashPoint, FaultPlan};
use portolan_tests::simulation::{CONTROLLER, apply};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Every so many crashes one is played: an odd number, so that both sides of requests are.
const STEP: usize = 41;

/// What clusters are made from.
#[derive(Clone, Copy, Debug)]
enum Way {
    Class,
    Templates,
}

/// At which request of the controllers they are killed, and on which side of it.
type Crash = (u64, CrashPoint);

#[test]
fn a_crash_around_any_write_makes_no_second_cluster_and_leaks_no_machine() {
    play_crashes(Way::Class);
}

#[test]
fn a_crash_between_the_parts_makes_no_second_cluster_and_leaks_nothing() {
    play_crashes(Way::Templates);
}

fn play_crashes(way: Way) {
    let writes = play(way, None);
    assert!(writes.len() > 50, "the controllers wrote only {} times", writes.len());
    let sides = |number: &u64| [(*number, CrashPoint::Before), (*number, CrashPoint::After)];
    let all: Vec<Crash> = writes.iter().flat_map(sides).collect();
    let step = if std::env::var_os("PORTOLAN_EVERY_CRASH").is_some() { 1 } else { STEP };
    let chosen: Vec<Crash> = all.iter().copied().step_by(step).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(crash) = chosen.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if catch_unwind(AssertUnwindSafe(|| play(way, Some(*crash)))).is_err() {
                        failed.lock().unwrap().push(*crash);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by_key(|(number, _)| *number);
    println!("{way:?}: {} of {} crashes played, {} failed", chosen.len(), all.len(), failed.len());
    assert!(failed.is_empty(), "{way:?}: crashes that left something: {failed:?}");
}

/// Plays a burst in a world of its own, and tells which of the controllers' requests wrote.
fn play(way: Way, crash: Option<Crash>) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(Box::pin(burst(way, crash)))
}

async fn burst(way: Way, crash: Option<Crash>) -> Vec<u64> {
    let faults = match crash {
        Some((number, point)) => FaultPlan::none().crash(CONTROLLER, number, point),
        None => FaultPlan::none(),
    };
    let soon = json!({"decommissionAfter": "60s"});
    let (stage, cloud, declared) = match way {
        Way::Class => {
            let (stage, cloud) = start(faults).await;
            (stage, cloud, provisioner("cp1", "cloud1", soon))
        }
        Way::Templates => {
            let (stage, cloud) = begin(faults).await;
            (stage, cloud, templated("cp1", "cloud1", &["small"], soon))
        }
    };
    let user = stage.hub.client("user");
    apply(&user, &declared).await;
    apply(&user, &bursting("web", 6)).await;
    pass(5 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 2), "{way:?}, {crash:?}");
    apply(&user, &bursting("web", 4)).await;
    pass(4 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 0), "{way:?}, {crash:?}");
    assert_eq!((made(&cloud).len(), running(&cloud)), (1, 0), "{way:?}, {crash:?}");
    let status = stage.status("cp1").await;
    assert_eq!(
        (status.phase, status.clusters, status.orphans.len()),
        (CloudPhase::Idle, 1, 0),
        "{way:?}, {crash:?}"
    );
    assert!(stage.clusters().await.is_empty(), "{way:?}, {crash:?}: a Cluster is left");
    if matches!(way, Way::Templates) {
        assert_eq!(left_over(&stage).await, Vec::<String>::new(), "{way:?}, {crash:?}");
    }
    let members: Api<ForeignCluster> = Api::all(user);
    let members = members.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(members.len(), 1, "{way:?}, {crash:?}: home is the only member");
    let lines = stage.world.log().lines();
    let clusters = lines.iter().filter(|line| line.contains(" hub added cluster.x-k8s.io/clusters "));
    assert_eq!(clusters.count(), 1, "{way:?}, {crash:?}");
    let crashes = lines.iter().filter(|line| line.contains(" controller crashes ")).count();
    assert_eq!(crashes, usize::from(crash.is_some()), "{way:?}, {crash:?}");
    writes(&lines)
}

/// The numbers of the controllers' requests that write, from lines such as `… hub controller #17 PATCH /api/… -> 200`.
fn writes(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| {
        let (_, rest) = line.split_once(&format!(" {CONTROLLER} #"))?;
        let mut words = rest.split(' ');
        let (number, method, uri) = (words.next()?, words.next()?, words.next()?);
        let asks = uri.contains("accessreviews") || uri.contains("dryRun=");
        let writes = ["POST", "PUT", "PATCH", "DELETE"].contains(&method) && !asks;
        number.parse().ok().filter(|_| writes)
    };
    lines.iter().filter_map(number).collect()
}
