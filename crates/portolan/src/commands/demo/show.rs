//! How the demo looks.

use anstream::println;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use portolan_api::{ForeignCluster, MultiClusterDeployment, conditions};

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const GREEN: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[0m";

/// Begins a chapter.
pub(super) fn chapter(number: usize, title: &str) {
    println!("\n{BOLD}{number}. {title}{RESET}");
}

/// Says something.
pub(super) fn say(text: &str) {
    println!("   {text}");
}

/// Says what is happening to a workload.
pub(super) fn happens(workload: &str, what: &str) {
    println!("   {DIM}· {workload:<12} {what}{RESET}");
}

/// Says that something came true.
pub(super) fn came_true(text: &str, after: std::time::Duration) {
    println!("   {GREEN}✓{RESET} {text} {DIM}({:.1} s){RESET}", after.as_secs_f64());
}

/// Says that something came true in virtual time.
pub(super) fn held(text: &str) {
    println!("   {GREEN}✓{RESET} {text}");
}

/// A number over time.
pub(super) fn curve(name: &str, blocks: &str, most: &str) {
    println!("   {name:<10} {blocks} {DIM}{most}{RESET}");
}

/// The clusters, as `kubectl get` would show them.
pub(super) fn clusters(clusters: &[ForeignCluster], sizes: &[(&str, &str, String)]) {
    let mut table = table(&["CLUSTER", "SITE", "SIZE", "READY"]);
    for (name, site, size) in sizes {
        let cluster = clusters.iter().find(|each| each.metadata.name.as_deref() == Some(name));
        let conditions =
            cluster.and_then(|each| each.status.as_ref()).map(|status| status.conditions.as_slice());
        let ready = conditions.and_then(|all| conditions::find(all, conditions::ConditionType::Ready));
        let ready = ready.map_or("Unknown", |ready| ready.status.as_str());
        table.add_row([*name, *site, size, ready]);
    }
    print(&table);
}

/// Where the replicas of a workload are.
pub(super) fn placements(workload: &MultiClusterDeployment) {
    let status = workload.status.clone().unwrap_or_default();
    let mut table = table(&["CLUSTER", "REPLICAS", "READY", "STATE", "WHY"]);
    for placed in &status.placements {
        let why = match (&placed.message, placed.cause) {
            (Some(message), _) => message.clone(),
            (None, Some(cause)) => match &placed.substitute_for {
                Some(location) => format!("{cause:?} for {location}"),
                None => format!("{cause:?}"),
            },
            (None, None) => String::new(),
        };
        let cells = [
            placed.cluster.clone(),
            placed.replicas.to_string(),
            placed.ready_replicas.to_string(),
            format!("{:?}", placed.state),
            why,
        ];
        table.add_row(cells);
    }
    for waiting in &status.pending {
        let why = waiting.message.clone().unwrap_or_default();
        table.add_row([waiting.cluster.clone(), "-".into(), "-".into(), waiting.reason.clone(), why]);
    }
    print(&table);
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    table
}

fn print(table: &Table) {
    for line in table.to_string().lines() {
        println!("  {}", line.trim_end());
    }
}
