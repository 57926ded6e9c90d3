//! A plan for people.

use crate::failure::Failure;
use crate::style::{BOLD, RED, RESET};
use crate::{output, table};
use portolan_api::placementreview::{
    ClusterReview, ContainerChange, ObjectReview, ReviewError, ReviewResult, ReviewedKind, Rollout,
};

pub(super) fn plan(namespace: &str, plan: &ObjectReview) -> Result<(), Failure> {
    let title = match (plan.result, plan.clusters.iter().filter(|each| each.changes()).count()) {
        (ReviewResult::Invalid, _) => format!("{RED}invalid{RESET}"),
        (ReviewResult::Pending, 0) => "nothing changes, and not all of it can be done".to_owned(),
        (_, 0) => "nothing changes".to_owned(),
        (_, 1) => "1 cluster changes".to_owned(),
        (_, count) => format!("{count} clusters change"),
    };
    let kind = plan.kind.as_str().to_lowercase();
    anstream::println!("{BOLD}{kind} {namespace}/{}{RESET}: {title}", plan.name);
    plan.errors.iter().for_each(|error| anstream::println!("  {RED}{}{RESET}", told(error)));
    if !plan.clusters.is_empty() {
        output::data(&rows(plan))?;
    }
    if let Some(rollout) = &plan.rollout {
        anstream::println!("{}", rolled_out(rollout));
    }
    match plan.removed_running_replicas {
        0 => {}
        1 => anstream::println!("{RED}1 running replica would go{RESET}"),
        count => anstream::println!("{RED}{count} running replicas would go{RESET}"),
    }
    for each in &plan.clusters {
        if let Some(refused) = &each.refused {
            anstream::println!(
                "{RED}{} refuses it: {}: {}{RESET}",
                each.cluster,
                refused.reason,
                refused.message
            );
        }
        if let Some(note) = &each.note {
            anstream::println!("{}: {note}", each.cluster);
        }
    }
    let short = matches!(plan.result, ReviewResult::Pending | ReviewResult::Removes);
    let refusals = if plan.pending > 0 || short { plan.refusals.as_slice() } else { &[] };
    let colon = if refusals.is_empty() { "" } else { ":" };
    if plan.pending > 0 {
        anstream::println!("{} {} would be pending{colon}", plan.pending, unit(plan.kind, plan.pending == 1));
    } else if !refusals.is_empty() {
        anstream::println!("why not all of it can be placed:");
    }
    for refusal in refusals {
        anstream::println!("  {}: {}: {}", refusal.cluster, refusal.reason, refusal.message);
    }
    plan.notes.iter().for_each(|note| anstream::println!("{note}"));
    Ok(())
}

fn rows(plan: &ObjectReview) -> String {
    let parallel = plan.clusters.iter().any(|each| each.job.is_some());
    let mut header = vec!["CLUSTER", "BEFORE", "AFTER", "WHY"];
    if parallel {
        header.insert(3, "AT ONCE");
    }
    let mut lines = table::table(&header);
    for each in &plan.clusters {
        lines.add_row(row(each));
    }
    table::text(&lines)
}

fn row(each: &ClusterReview) -> Vec<String> {
    let step = i64::from(each.after) - i64::from(each.before);
    let after = if step == 0 { each.after.to_string() } else { format!("{} ({step:+})", each.after) };
    let mut cells = vec![each.cluster.clone(), each.before.to_string(), after, each.verdict.clone()];
    if let Some(job) = &each.job {
        let (before, after) = (job.parallelism_before, job.parallelism_after);
        let text = if before == after { after.to_string() } else { format!("{before} → {after}") };
        cells.insert(3, text);
    }
    cells
}

fn rolled_out(rollout: &Rollout) -> String {
    let image = |change: &ContainerChange| match (change.from.as_str(), change.to.as_str()) {
        ("", to) => format!("container {} is new, with image {to}", change.container),
        (_, "") => format!("container {} is removed", change.container),
        (from, to) => format!("{} {from} → {to}", change.container),
    };
    let mut changes: Vec<String> = rollout.images.iter().map(image).collect();
    changes.extend(rollout.fields.iter().map(|field| format!("template.{field}")));
    let pods = if rollout.pods == 1 { "1 pod is".to_owned() } else { format!("{} pods are", rollout.pods) };
    let changes = changes.join(", ");
    if rollout.recreate {
        return format!(
            "recreated: {pods} replaced, and all pods of a cluster end before new ones start: {changes}"
        );
    }
    format!("rolling update: {pods} replaced: {changes}")
}

fn told(error: &ReviewError) -> String {
    match &error.cluster {
        Some(cluster) => format!("{cluster} says {}: {}", error.reason, error.message),
        None => format!("{}: {}", error.reason, error.message),
    }
}

fn unit(kind: ReviewedKind, one: bool) -> &'static str {
    match (kind, one) {
        (ReviewedKind::MultiClusterDeployment, true) => "replica",
        (ReviewedKind::MultiClusterDeployment, false) => "replicas",
        (ReviewedKind::MultiClusterJob, true) => "completion",
        (ReviewedKind::MultiClusterJob, false) => "completions",
        (ReviewedKind::MultiClusterService, true) => "Service",
        (ReviewedKind::MultiClusterService, false) => "Services",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_replica_is_not_several() {
        assert_eq!(unit(ReviewedKind::MultiClusterDeployment, true), "replica");
        assert_eq!(unit(ReviewedKind::MultiClusterJob, false), "completions");
    }

    #[test]
    fn pods_that_end_before_new_ones_start_are_no_rolling_update() {
        let image = ContainerChange { container: "main".into(), from: "app:1".into(), to: "app:2".into() };
        let rolling = Rollout { pods: 2, images: vec![image], ..Rollout::default() };
        assert_eq!(rolled_out(&rolling), "rolling update: 2 pods are replaced: main app:1 → app:2");
        let recreated = rolled_out(&Rollout { recreate: true, ..rolling });
        assert!(recreated.contains("all pods of a cluster end before new ones start"), "{recreated}");
        assert!(!recreated.contains("rolling"), "{recreated}");
    }
}
