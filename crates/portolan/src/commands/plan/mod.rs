//! `portolan plan`

mod show;

use super::review;
use crate::cli::{DataFormat, PlanArgs};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::{connection, manifest, output};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use portolan_api::placementreview::{MAX_MANIFESTS, ObjectReview, ReviewResult, ReviewedKind};
use portolan_api::template::PreservedObject;
use portolan_api::{GROUP, PlacementReviewSpec};
use portolan_runtime::foreign_text;
use serde_json::Value;
use std::process::ExitCode;

/// The kinds that can be planned, in words.
const KINDS: &str = "MultiClusterDeployments, MultiClusterJobs and MultiClusterServices";

pub(super) fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(plan(args)))
}

async fn plan(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let Documents { planned: documents, mut result } = documents(args)?;
    if documents.is_empty() {
        return Ok(ExitCode::from(code(result)));
    }
    let (hub, _) = connection::answering(&args.cluster).await?;
    let default = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let mut plans: Vec<(String, ObjectReview)> = Vec::new();
    for (namespace, manifests) in grouped(documents, &default) {
        for part in manifests.chunks(MAX_MANIFESTS) {
            let spec = PlacementReviewSpec { plan: part.to_vec(), ..PlacementReviewSpec::default() };
            let answers = review::ask(&hub, &namespace, "plan", spec, args.timeout.0).await?;
            plans.extend(answers.into_iter().map(|answer| (namespace.clone(), answer)));
        }
    }
    match args.output {
        // One line each, for tools that read lines.
        Some(DataFormat::Json) => {
            for (namespace, plan) in &plans {
                output::data(&format!("{}\n", review::as_json(namespace, plan)?))?;
            }
        }
        Some(DataFormat::Yaml) => {
            let values = plans.iter().map(|(namespace, plan)| review::as_json(namespace, plan));
            let values = values.collect::<Result<Vec<Value>, _>>()?;
            output::data(&portolan_api::convert::to_yaml(&values).map_err(Failure::other)?)?;
        }
        None => {
            for (position, (namespace, plan)) in plans.iter().enumerate() {
                if position > 0 {
                    anstream::println!();
                }
                show::plan(namespace, plan)?;
            }
        }
    }
    result = plans.iter().map(|(_, plan)| plan.result).fold(result, ReviewResult::max);
    Ok(ExitCode::from(code(result)))
}

/// What the shell is told.
fn code(result: ReviewResult) -> u8 {
    match result {
        ReviewResult::Unchanged => 0,
        ReviewResult::Invalid => 2,
        ReviewResult::Changes => 3,
        ReviewResult::Pending => 4,
        ReviewResult::Removes => 5,
    }
}

/// What is in the files.
struct Documents {
    /// The manifests that can be planned; none if all that is in the files has no placement.
    planned: Vec<Value>,
    /// Invalid if something else is of a kind that Portolan does not have.
    result: ReviewResult,
}

/// The manifests that can be planned. What else is in the files is named.
fn documents(args: &PlanArgs) -> Result<Documents, Failure> {
    let (mut documents, mut result) = (Vec::new(), ReviewResult::default());
    let mut has_elastic = false;
    for document in manifest::read(&args.filename)? {
        let text = |value: &Value| foreign_text(value.as_str().unwrap_or_default());
        let (kind, name) = (text(&document["kind"]), text(&document["metadata"]["name"]));
        if is_unknown(&document["apiVersion"], &kind) {
            result = ReviewResult::Invalid;
            anstream::eprintln!("{kind} {name}: group {GROUP} has no kind {kind}; {KINDS} are planned");
        } else if ReviewedKind::of(&kind).is_some() {
            documents.push(document);
        } else if let Some(known) = Kind::elastic(&kind).filter(|_| is_ours(&document["apiVersion"])) {
            has_elastic = true;
            anstream::eprintln!(
                "{kind} {name} is not planned: it has no placement; once it is applied, `portolan status {}/{name}` \
                 shows its state",
                known.short()
            );
        } else if kind.is_empty() {
            anstream::eprintln!("a document without kind is not planned: {KINDS} are");
        } else {
            anstream::eprintln!("{kind} {name} is not planned: {KINDS} are");
        }
    }
    if documents.is_empty() && !has_elastic {
        return Err(Failure::input("nothing in what was given can be planned").hint(format!("{KINDS} can")));
    }
    Ok(Documents { planned: documents, result })
}

/// Whether a document is of Portolan's group, and of no kind of it.
fn is_unknown(api_version: &Value, kind: &str) -> bool {
    let known = |crd: CustomResourceDefinition| crd.spec.group == GROUP && crd.spec.names.kind == kind;
    is_ours(api_version) && !portolan_api::crds().into_iter().any(known)
}

/// Whether a document is of Portolan's group.
fn is_ours(api_version: &Value) -> bool {
    let group = api_version.as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    group == Some(GROUP)
}

/// The manifests by namespace, in the order in which the namespaces appear.
fn grouped(documents: Vec<Value>, default: &str) -> Vec<(String, Vec<PreservedObject>)> {
    let mut groups: Vec<(String, Vec<PreservedObject>)> = Vec::new();
    for document in documents {
        let namespace = document["metadata"]["namespace"].as_str().unwrap_or(default).to_owned();
        let object = PreservedObject(document);
        match groups.iter_mut().find(|(known, _)| *known == namespace) {
            Some((_, objects)) => objects.push(object),
            None => groups.push((namespace, vec![object])),
        }
    }
    groups
}
