//! An explanation for people.

use crate::human::{amount, round_trip};
use crate::style::{BOLD, DIM, RED, RESET, YELLOW, mark};
use anstream::println;
use portolan_api::placementreview::{ClusterReview, ObjectReview};

pub(super) fn explanation(namespace: &str, review: &ObjectReview) {
    let kind = review.kind.as_str().to_lowercase();
    println!("{BOLD}{kind} {namespace}/{}{RESET}", review.name);
    review.errors.iter().for_each(|error| println!("{RED}{}: {}{RESET}", error.reason, error.message));
    review.summary.iter().for_each(|line| println!("{line}"));
    review.notes.iter().for_each(|line| println!("{line}"));
    review.clusters.iter().for_each(cluster);
}

fn cluster(each: &ClusterReview) {
    println!("\n{BOLD}{}{RESET}  {}", each.cluster, each.verdict);
    if let Some(refused) = &each.refused {
        println!("  {RED}✗ refused   {}: {}{RESET}", refused.reason, refused.message);
    }
    for filter in &each.filters {
        println!("  {} {:<9} {}", mark(filter.passed), filter.name, filter.message);
    }
    let facts = facts(each);
    if !facts.is_empty() {
        println!("  {DIM}{}{RESET}", facts.join("; "));
    }
    let mut others: Vec<String> =
        each.reserved.iter().map(|other| format!("{} {}", other.workload, other.replicas)).collect();
    others.extend(each.reserved_by_other_namespaces.map(|count| format!("other namespaces {count}")));
    if !others.is_empty() {
        println!("  {DIM}reserved by others: {}{RESET}", others.join(", "));
    }
    if let Some(note) = &each.note {
        println!("  {YELLOW}!{RESET} {note}");
    }
}

fn facts(each: &ClusterReview) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(job) = each.job.as_ref().filter(|_| each.after > 0) {
        facts.push(format!("{} of {} finished", job.succeeded, each.after));
        if job.failed > 0 {
            facts.push(format!("{} failed", counted(job.failed, "pod")));
        }
        if job.attempt > 0 {
            facts.push(format!("Job number {} for its part", job.attempt.saturating_add(1)));
        }
    }
    if let Some(endpoints) = &each.endpoints {
        let total = endpoints.ready.saturating_add(endpoints.not_ready);
        facts.push(format!("{} of {total} endpoints ready", endpoints.ready));
        if !endpoints.answers {
            facts.push("the cluster does not answer: this is as last seen".to_owned());
        }
    }
    facts.extend(each.rank.map(|rank| format!("place {rank} in the order of the policy")));
    if let Some(free) = &each.free {
        let cpu = amount("cpu", free.cpu_millis);
        let memory = amount("memory", free.memory_bytes.saturating_mul(1000));
        facts.push(format!("free for it: cpu {cpu}, memory {memory}"));
    }
    if let Some(traffic) = each.traffic_milli_requests {
        facts.push(format!("receives {:.1} requests/s", traffic as f64 / 1000.0));
    }
    if let Some(distance) = &each.distance {
        facts.push(format!("{} from {}", round_trip(distance.rtt.0), distance.from));
    }
    if !each.filters.is_empty() {
        facts.push(format!("held {} before", each.before));
    }
    facts
}

fn counted(count: i32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
