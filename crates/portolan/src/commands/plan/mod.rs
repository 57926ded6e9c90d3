//! `portolan plan`

mod planned;

use super::outlook;
use crate::cli::{DataFormat, PlanArgs};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::style::{BOLD, RESET};
use crate::{connection, manifest, output, table};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use planned::{Planned, Row};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_control::Preview;
use portolan_control::names::FIELD_MANAGER;
use portolan_runtime::call;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Something would change.
const CHANGES: u8 = 3;
/// Something could not be placed.
const PENDING: u8 = 4;

/// An object as the hub would have it.
enum Applied {
    Deployment(Box<MultiClusterDeployment>),
    Job(Box<MultiClusterJob>),
    Service(Box<MultiClusterService>),
}

pub(super) fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(plan(args)))
}

async fn plan(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let mut documents = Vec::new();
    for document in manifest::read(&args.filename)? {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&document["kind"]), text(&document["metadata"]["name"]));
        match kind.as_str() {
            "MultiClusterDeployment" => documents.push((Kind::Deployment, document)),
            "MultiClusterJob" => documents.push((Kind::Job, document)),
            "MultiClusterService" => documents.push((Kind::Service, document)),
            _ => anstream::eprintln!("{kind} {name} is not planned: {KINDS} are"),
        }
    }
    if documents.is_empty() {
        return Err(Failure::input("nothing in what was given can be planned").hint(format!("{KINDS} can")));
    }
    // A service goes where the deployments that are planned with it go.
    documents.sort_by_key(|(kind, _)| *kind == Kind::Service);
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let mut objects = Vec::new();
    for (kind, document) in &documents {
        objects.push(match kind {
            Kind::Job => Applied::Job(Box::new(as_applied(&hub, *kind, document, &namespace).await?)),
            Kind::Service => Applied::Service(Box::new(as_applied(&hub, *kind, document, &namespace).await?)),
            _ => Applied::Deployment(Box::new(as_applied(&hub, *kind, document, &namespace).await?)),
        });
    }
    let preview = outlook::open(&hub, args.timeout.0).await?;
    let plans = objects.into_iter().map(|object| ask(&preview, object)).collect::<Result<Vec<_>, _>>()?;
    match args.output {
        // One line each, for tools that read lines.
        Some(DataFormat::Json) => {
            output::data(&plans.iter().map(|plan| format!("{}\n", as_json(plan))).collect::<String>())?;
        }
        Some(DataFormat::Yaml) => {
            let plans: Vec<Value> = plans.iter().map(as_json).collect();
            output::data(&portolan_api::convert::to_yaml(&plans).map_err(Failure::other)?)?;
        }
        None => {
            for (position, plan) in plans.iter().enumerate() {
                if position > 0 {
                    anstream::println!();
                }
                show(plan)?;
            }
        }
    }
    let pending = plans.iter().any(|plan| plan.pending > 0);
    let changes = plans.iter().any(|plan| plan.rows.iter().any(Row::changes));
    Ok(match (pending, changes) {
        (true, _) => ExitCode::from(PENDING),
        (false, true) => ExitCode::from(CHANGES),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// The kinds that can be planned, in words.
const KINDS: &str = "MultiClusterDeployments, MultiClusterJobs and MultiClusterServices";

fn ask(preview: &Preview, object: Applied) -> Result<Planned, Failure> {
    fn key<K: Resource>(object: &K) -> String {
        let meta = object.meta();
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        format!("{}/{}", text(&meta.namespace), text(&meta.name))
    }
    match object {
        Applied::Deployment(object) => Planned::of_deployment(key(&*object), &preview.plan(*object)),
        Applied::Job(object) => Planned::of_job(key(&*object), &preview.plan_job(*object)),
        Applied::Service(object) => Planned::of_service(key(&*object), &preview.plan_service(&object)),
    }
}

/// The object as the hub would have it after `kubectl apply`: checked, with defaults, and not kept.
async fn as_applied<K>(hub: &Client, kind: Kind, document: &Value, namespace: &str) -> Result<K, Failure>
where
    K: portolan_control::copy::Kind,
{
    let mut document = document.clone();
    let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(Failure::input(format!("a {} has no metadata.name", K::kind(&()))));
    }
    let namespace = document["metadata"]["namespace"].as_str().unwrap_or(namespace).to_owned();
    document["metadata"]["namespace"] = json!(namespace);
    let api: Api<K> = Api::namespaced(hub.clone(), &namespace);
    let params =
        PatchParams { dry_run: true, ..PatchParams::apply(&format!("{FIELD_MANAGER}-plan")).force() };
    let what = format!("check {} {namespace}/{name}", kind.name());
    let checked = call(what, api.patch(&name, &params, &Patch::Apply(&document))).await;
    checked.map_err(|error| match error.code() {
        Some(400 | 422) => Failure::input(portolan_runtime::chain(&error)),
        Some(404) => Failure::other(portolan_runtime::chain(&error)).hint(format!(
            "the hub must have namespace {namespace}, and Portolan's definitions: `portolan peer` or `portolan crds`"
        )),
        _ => Failure::other(portolan_runtime::chain(&error)),
    })
}

fn show(plan: &Planned) -> Result<(), Failure> {
    let title = match plan.rows.iter().filter(|row| row.changes()).count() {
        0 => "nothing changes".to_owned(),
        1 => "1 cluster changes".to_owned(),
        count => format!("{count} clusters change"),
    };
    anstream::println!("{BOLD}{} {}{RESET}: {title}", plan.kind.name(), plan.key);
    let parallel = plan.rows.iter().any(|row| row.parallelism.is_some());
    let mut header = vec!["CLUSTER", "BEFORE", "AFTER", "WHY"];
    if parallel {
        header.insert(3, "AT ONCE");
    }
    let mut lines = table::table(&header);
    for row in &plan.rows {
        let step = i64::from(row.after) - i64::from(row.before);
        let after = if step == 0 { row.after.to_string() } else { format!("{} ({step:+})", row.after) };
        let mut cells = vec![row.cluster.clone(), row.before.to_string(), after, row.why.clone()];
        if let Some((before, after)) = row.parallelism {
            let text = if before == after { after.to_string() } else { format!("{before} → {after}") };
            cells.insert(3, text);
        }
        lines.add_row(cells);
    }
    if !plan.rows.is_empty() {
        output::data(&table::text(&lines))?;
    }
    if plan.pending > 0 {
        anstream::println!("{} {} would be pending:", plan.pending, plan.unit);
        for (cluster, reason, message) in &plan.refusals {
            anstream::println!("  {cluster}: {reason}: {message}");
        }
    }
    for note in &plan.notes {
        anstream::println!("{note}");
    }
    Ok(())
}

fn as_json(plan: &Planned) -> Value {
    let cluster = |row: &Row| {
        let mut each =
            json!({"cluster": row.cluster, "before": row.before, "after": row.after, "why": row.why});
        if let Some((before, after)) = row.parallelism {
            each["parallelismBefore"] = json!(before);
            each["parallelismAfter"] = json!(after);
        }
        each
    };
    let refusal = |(cluster, reason, message): &(String, &str, String)| json!({"cluster": cluster, "reason": reason, "message": message});
    json!({
        "kind": plan.kind.name(),
        "workload": plan.key,
        "clusters": plan.rows.iter().map(cluster).collect::<Vec<_>>(),
        "pending": plan.pending,
        "refusals": plan.refusals.iter().map(refusal).collect::<Vec<_>>(),
        "paused": plan.paused,
    })
}
