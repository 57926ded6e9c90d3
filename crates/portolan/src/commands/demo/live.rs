//! Placements as they happen.

use super::show;
use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use portolan_api::{MultiClusterDeployment, MultiClusterDeploymentStatus};
use std::collections::BTreeMap;
use std::pin::pin;

/// Shows for ever where each workload's replicas are decided to go, and when they are there.
pub(super) async fn follow(hub: Client) {
    let api: Api<MultiClusterDeployment> = Api::all(hub);
    let mut changes = pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    while let Some(change) = changes.next().await {
        // A watch that breaks is opened again; what it missed comes with the next list.
        let Ok(workload) = change else { continue };
        let name = workload.metadata.name.clone().unwrap_or_default();
        let line = line(&workload.status.unwrap_or_default());
        if let Some(line) = line
            && told.get(&name) != Some(&line)
        {
            show::happens(&name, &line);
            told.insert(name, line);
        }
    }
}

/// What a status says of places; nothing before there is anything to say.
fn line(status: &MultiClusterDeploymentStatus) -> Option<String> {
    let places = status.locations_summary.as_deref()?;
    let ready = match status.ready_replicas {
        0 => "starting".to_owned(),
        all if all == status.replicas => format!("all {all} ready"),
        _ => "some ready".to_owned(),
    };
    let waiting = match status.pending_replicas {
        0 => String::new(),
        waiting => format!(", {waiting} waiting"),
    };
    Some(format!("{places}: {ready}{waiting}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_places_readiness_and_what_waits() {
        let mut status = MultiClusterDeploymentStatus::default();
        assert_eq!(line(&status), None);
        status.locations_summary = Some("paris=2".into());
        (status.replicas, status.ready_replicas, status.pending_replicas) = (2, 2, 1);
        assert_eq!(line(&status).as_deref(), Some("paris=2: all 2 ready, 1 waiting"));
    }
}
