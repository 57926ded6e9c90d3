//! `portolan plan`

use super::outlook;
use crate::cli::PlanArgs;
use crate::failure::Failure;
use crate::style::{BOLD, RESET};
use crate::{connection, manifest, output, table};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::MultiClusterDeployment;
use portolan_control::Outlook;
use portolan_control::names::FIELD_MANAGER;
use portolan_runtime::call;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Something would change.
const CHANGES: u8 = 3;
/// Something could not be placed.
const PENDING: u8 = 4;

pub(super) fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(plan(args)))
}

async fn plan(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let documents = manifest::read(&args.filename)?;
    let (ours, others): (Vec<Value>, Vec<Value>) =
        documents.into_iter().partition(|each| each["kind"] == "MultiClusterDeployment");
    for other in &others {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&other["kind"]), text(&other["metadata"]["name"]));
        anstream::eprintln!("{kind} {name} is not planned: only MultiClusterDeployments are");
    }
    if ours.is_empty() {
        return Err(Failure::input("there is no MultiClusterDeployment in what was given"));
    }
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let mut objects = Vec::new();
    for document in &ours {
        objects.push(as_applied(&hub, document, &namespace).await?);
    }
    let preview = outlook::open(&hub, args.timeout.0).await?;
    let (mut changes, mut pending) = (false, false);
    for object in objects {
        let meta = &object.metadata;
        let key = format!(
            "{}/{}",
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default()
        );
        let outlook = preview.plan(object);
        let decision = outlook.decision.as_ref().map_err(|problem| {
            Failure::other(format!("multiclusterdeployment {key}: nothing can be decided: {problem}"))
        })?;
        pending |= decision.pending > 0;
        changes |= rows(&outlook).iter().any(|row| row.before != row.after);
        if args.output.is_some() {
            output::data(&format!("{}\n", as_json(&key, &outlook)))?;
        } else {
            show(&key, &outlook)?;
        }
    }
    Ok(match (pending, changes) {
        (true, _) => ExitCode::from(PENDING),
        (false, true) => ExitCode::from(CHANGES),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// The object as the hub would have it after `kubectl apply`: checked, with defaults, and not kept.
async fn as_applied(
    hub: &Client,
    document: &Value,
    namespace: &str,
) -> Result<MultiClusterDeployment, Failure> {
    let mut document = document.clone();
    let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(Failure::input("a MultiClusterDeployment has no metadata.name"));
    }
    let namespace = document["metadata"]["namespace"].as_str().unwrap_or(namespace).to_owned();
    document["metadata"]["namespace"] = json!(namespace);
    let api: Api<MultiClusterDeployment> = Api::namespaced(hub.clone(), &namespace);
    let params =
        PatchParams { dry_run: true, ..PatchParams::apply(&format!("{FIELD_MANAGER}-plan")).force() };
    let what = format!("check multiclusterdeployment {namespace}/{name}");
    let checked = call(what, api.patch(&name, &params, &Patch::Apply(&document))).await;
    checked.map_err(|error| match error.code() {
        Some(400 | 422) => Failure::input(portolan_runtime::chain(&error)),
        _ => Failure::other(portolan_runtime::chain(&error)),
    })
}

/// A cluster that has something before or after.
struct Row {
    cluster: String,
    before: u32,
    after: u32,
    why: String,
}

fn rows(outlook: &Outlook) -> Vec<Row> {
    let Ok(decision) = &outlook.decision else { return Vec::new() };
    let names: BTreeSet<&String> = outlook.before.keys().chain(decision.placed.keys()).collect();
    let row = |name: &String| Row {
        cluster: name.clone(),
        before: outlook.before.get(name).copied().unwrap_or(0),
        after: decision.placed.get(name).map_or(0, |placed| placed.replicas),
        why: match outlook.accounts.iter().find(|account| account.cluster == *name) {
            Some(account) => account.verdict.clone(),
            None => "it is no longer a member".to_owned(),
        },
    };
    names.into_iter().map(row).collect()
}

fn show(key: &str, outlook: &Outlook) -> Result<(), Failure> {
    let Ok(decision) = &outlook.decision else { return Ok(()) };
    let rows = rows(outlook);
    let changed = rows.iter().filter(|row| row.before != row.after).count();
    let title = match changed {
        0 => "nothing changes".to_owned(),
        1 => "1 cluster changes".to_owned(),
        count => format!("{count} clusters change"),
    };
    anstream::println!("{BOLD}multiclusterdeployment {key}{RESET}: {title}");
    let mut lines = table::table(&["CLUSTER", "BEFORE", "AFTER", "WHY"]);
    for row in &rows {
        let step = i64::from(row.after) - i64::from(row.before);
        let after = if step == 0 { row.after.to_string() } else { format!("{} ({step:+})", row.after) };
        lines.add_row(vec![row.cluster.clone(), row.before.to_string(), after, row.why.clone()]);
    }
    if !rows.is_empty() {
        output::data(&table::text(&lines))?;
    }
    if decision.pending > 0 {
        anstream::println!("{} replicas would be pending:", decision.pending);
        for (cluster, refusal) in &decision.refusals {
            anstream::println!("  {cluster}: {}: {}", refusal.reason, refusal.message);
        }
    }
    if outlook.paused {
        anstream::println!("It is paused: the last decision stands.");
    }
    Ok(())
}

fn as_json(key: &str, outlook: &Outlook) -> Value {
    let clusters: Vec<Value> = rows(outlook)
        .into_iter()
        .map(|row| json!({"cluster": row.cluster, "before": row.before, "after": row.after, "why": row.why}))
        .collect();
    let decision = outlook.decision.as_ref().ok();
    let refusals: Vec<Value> = decision
        .into_iter()
        .flat_map(|decision| &decision.refusals)
        .map(|(cluster, why)| json!({"cluster": cluster, "reason": why.reason, "message": why.message}))
        .collect();
    json!({
        "workload": key,
        "clusters": clusters,
        "pending": decision.map_or(0, |decision| decision.pending),
        "refusals": refusals,
        "paused": outlook.paused,
    })
}
