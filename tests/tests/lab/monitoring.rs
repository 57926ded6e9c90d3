//! What the controller tells those who watch over it, on real Kubernetes.

use super::fleet::{CONTROLLER, Fleet};
use super::proof::eventually;
use anyhow::{Result, ensure};
use portolan_lab::Seen;

/// With two members that answer: the promised series are there, and the controller is ready.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    let ready = get(fleet, "/readyz").await?;
    ensure!(ready.contains("[+]election ok") && ready.contains("[+]fence ok"), "{ready}");
    until(fleet, "portolan_members{state=\"Ready\"} 2").await?;
    // Measured by the first look at its health after it was joined.
    let page = until(fleet, "portolan_member_round_trip_seconds{cluster=\"c2\"} ").await?;
    for line in [
        "portolan_leader_election_master_status{name=\"portolan-controller\"} 1",
        "portolan_member_reachable{cluster=\"c3\"} 1",
        "portolan_actuator_breaker_open{cluster=\"c2\"} 0",
        "portolan_pending_workloads{kind=\"MultiClusterDeployment\"} 0",
        "portolan_decisions_total{kind=\"MultiClusterDeployment\",result=\"scheduled\"} ",
        "portolan_rest_client_requests_total{cluster=\"hub\",verb=\"PUT\",code=\"200\"} ",
        "portolan_rest_client_requests_total{cluster=\"c2\",verb=\"PATCH\",code=\"201\"} ",
        "portolan_rest_client_request_duration_seconds_count{cluster=\"c3\",verb=\"GET\"} ",
        "portolan_workqueue_depth{name=\"MultiClusterDeployment\"} ",
        "portolan_watch_age_seconds{cluster=\"c2\"} ",
        "process_resident_memory_bytes ",
    ] {
        ensure!(has(&page, line), "no series {line}: {page}");
    }
    Ok(())
}

/// With member c3 silent.
pub(super) async fn prove_silence(fleet: &Fleet) -> Result<()> {
    let page = until(fleet, "portolan_members{state=\"Unreachable\"} 1").await?;
    ensure!(has(&page, "portolan_member_reachable{cluster=\"c3\"} 0"), "{page}");
    ensure!(
        has(&page, "portolan_rest_client_requests_total{cluster=\"c3\",verb=\"GET\",code=\"none\"} "),
        "{page}"
    );
    Ok(())
}

async fn until(fleet: &Fleet, line: &str) -> Result<String> {
    eventually(line, async || {
        let page = get(fleet, "/metrics").await?;
        Ok(if has(&page, line) { Seen::Ready(page) } else { Seen::NotYet(page) })
    })
    .await
}

fn has(page: &str, line: &str) -> bool {
    page.lines().any(|each| each.starts_with(line))
}

async fn get(fleet: &Fleet, path: &str) -> Result<String> {
    let hub = fleet.hub()?;
    let address = "jsonpath={.items[0].status.podIP}";
    let address = hub.kubectl(&["-n", "portolan", "get", "pods", "-l", CONTROLLER, "-o", address]).await?;
    let url = format!("http://{address}:8080{path}");
    hub.control_plane().exec(&["busybox", "wget", "-q", "-O", "-", &url]).await
}
