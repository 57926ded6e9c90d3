//! `lab list`.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use portolan_lab::state::{self, LabState};
use portolan_lab::{Cluster, Lab};

use crate::table::Table;

pub(super) fn run() -> Result<()> {
    let names = state::names()?;
    if names.is_empty() {
        println!("No labs. `cargo xtask lab up --clusters 2` starts one.");
        return Ok(());
    }
    let mut table =
        Table::new(["NAME", "STATE", "KUBERNETES", "CLUSTERS", "NODES", "SIMULATED", "AGE", "KUBECONFIG"]);
    for name in names {
        match state::read(&name)? {
            None => {
                let dash = || "-".to_owned();
                table.row([name, "incomplete".to_owned(), dash(), dash(), dash(), dash(), dash(), dash()]);
            }
            Some(lab) => table.row(describe(&lab)?),
        }
    }
    print!("{table}");
    Ok(())
}

fn describe(state: &LabState) -> Result<[String; 8]> {
    let lab = Lab::attach(&state.name)?;
    let nodes: Vec<_> = lab.clusters().iter().flat_map(Cluster::nodes).collect();
    let running = nodes.iter().filter(|node| node.is_running()).count();
    let owner_is_alive = state.owner.as_ref().map(|owner| owner.is_alive());
    let condition = match running {
        _ if owner_is_alive == Some(false) => "abandoned".to_owned(),
        _ if !state.ready => "starting".to_owned(),
        all if all == nodes.len() => "running".to_owned(),
        0 => "dead".to_owned(),
        some => format!("{some} of {} nodes", nodes.len()),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok([
        state.name.clone(),
        condition,
        state.kubernetes.clone(),
        state.clusters.iter().map(|cluster| cluster.name.as_str()).collect::<Vec<_>>().join(","),
        nodes.len().to_string(),
        state.clusters.iter().map(|cluster| cluster.kwok).sum::<u32>().to_string(),
        age(now.saturating_sub(state.created)),
        lab.kubeconfig_path()?.display().to_string(),
    ])
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_are_short() {
        assert_eq!([5, 130, 7300, 200_000].map(super::age), ["5s", "2m", "2h", "2d"]);
    }
}
