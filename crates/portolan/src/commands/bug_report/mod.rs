//! `portolan bug-report`

mod archive;
mod redact;

use super::doctor::{self, Request};
use super::{controllers, leader, version};
use crate::cli::BugReportArgs;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::{connection, output};
use archive::Archive;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DynamicObject, ListParams, LogParams};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_api::{ClusterReport, Invitation, ResourceOffer, SharingClass};
use portolan_runtime::{call, chain};
use redact::Redactor;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How much of the log of a container is taken.
const LOG_LINES: i64 = 5000;
const LOG_BYTES: i64 = 8 << 20;
/// How many events are looked through.
const EVENTS: u32 = 5000;

pub(super) fn run(args: &BugReportArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(report(args)))
}

async fn report(args: &BugReportArgs) -> Result<(), Failure> {
    let now = Timestamp::now();
    let file = args.output.clone().unwrap_or_else(|| {
        PathBuf::from(format!("portolan-bug-report-{}.tar.gz", now.strftime("%Y%m%dT%H%M%SZ")))
    });
    // A file that cannot be written is told before anything is asked.
    let mut archive = Archive::create(&file, now)?;
    let collected = Box::pin(collect(args)).await?;
    for (name, text) in collected {
        archive.add(&name, &text)?;
    }
    archive.finish()?;
    anstream::eprintln!("Read the archive before you send it: names, labels and messages are in it.");
    output::data(&format!("{}\n", file.display()))
}

/// The files of the archive. What could not be read is told in one of them.
async fn collect(args: &BugReportArgs) -> Result<Vec<(String, String)>, Failure> {
    let mut missing = Vec::new();
    let request = Request {
        cluster: &args.cluster,
        lease: &args.lease,
        names: &[],
        contexts: &[],
        timeout: args.timeout.0,
    };
    let checks = doctor::examine(&request).await?;
    let hub = connection::client(&args.cluster).await?;
    let mut objects = Vec::new();
    for kind in [&[Kind::Cluster][..], &Kind::WORKLOADS, &Kind::ELASTIC].concat() {
        match kind.list(&hub, None, &ListParams::default()).await {
            Ok(list) => objects.push((kind.name().to_owned(), list)),
            Err(failure) => missing.push(failure.message().to_owned()),
        }
    }
    for resource in [
        ApiResource::erase::<ClusterReport>(&()),
        ApiResource::erase::<Invitation>(&()),
        ApiResource::erase::<ResourceOffer>(&()),
        ApiResource::erase::<SharingClass>(&()),
    ] {
        let api: Api<DynamicObject> = Api::all_with(hub.clone(), &resource);
        match call(format!("list {}s", resource.kind), api.list(&ListParams::default())).await {
            Ok(list) => {
                let list = list.items.into_iter().map(serde_json::to_value);
                let list = list.collect::<Result<Vec<_>, _>>().map_err(Failure::other)?;
                objects.push((resource.kind.to_lowercase(), list));
            }
            Err(error) => missing.push(chain(&error)),
        }
    }
    let events = events(&hub, &mut missing).await;
    let logs = logs(&hub, &args.lease.lease_namespace, &mut missing).await;
    let versions = versions(args, &hub, &mut missing).await;

    // What is hidden in one object is hidden everywhere: a status or a log may quote it.
    let mut redactor = Redactor::new(args.hide_addresses);
    objects.iter().flat_map(|(_, list)| list).for_each(|object| redactor.learn(object));
    let mut files = vec![
        ("README.txt".to_owned(), README.to_owned()),
        ("versions.json".to_owned(), pretty(&redactor.object(versions))?),
        ("doctor.json".to_owned(), pretty(&redactor.object(checks.data()))?),
    ];
    for (name, list) in objects {
        let list: Vec<Value> = list.into_iter().map(|object| redactor.object(object)).collect();
        files.push((format!("objects/{}.json", plural(&name)), pretty(&json!(list))?));
    }
    files.push(("events.json".to_owned(), pretty(&redactor.object(json!(events)))?));
    files.extend(logs.into_iter().map(|(name, log)| (format!("logs/{name}.log"), redactor.text(&log))));
    let missing: String = missing.iter().map(|line| format!("{}\n", redactor.text(line))).collect();
    files.push(("not-collected.txt".to_owned(), missing));
    Ok(files)
}

const README: &str = "\
A bug report of Portolan.

versions.json      this program, the hub and its controller
doctor.json        what `portolan doctor` found
objects/           Portolan's objects in the hub, with their status
events.json        the events of these objects
logs/              the controller's logs, if it runs in the hub
not-collected.txt  what could not be read, and why

Not in it: Secrets, ConfigMaps, kubeconfigs. <redacted> stands for tokens, keys, certificates and passwords, for the
annotations of objects that are not Portolan's, and in pod templates for everything but the shape: names, images, ports,
resources, labels and numbers stay.
";

fn plural(name: &str) -> String {
    if name.ends_with('s') { format!("{name}es") } else { format!("{name}s") }
}

fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(Failure::other)
}

async fn versions(args: &BugReportArgs, hub: &Client, missing: &mut Vec<String>) -> Value {
    let mut versions = json!({"client": env!("CARGO_PKG_VERSION"), "os": std::env::consts::OS, "arch": std::env::consts::ARCH});
    match call("ask the hub for its version", hub.apiserver_version()).await {
        Ok(info) => versions["hub"] = info.git_version.into(),
        Err(error) => missing.push(chain(&error)),
    }
    match leader::lease(hub, &args.lease).await {
        Ok(lease) => {
            let annotations = lease.and_then(|lease| lease.metadata.annotations).unwrap_or_default();
            versions["controller"] = json!(annotations.get(version::VERSION_ANNOTATION));
        }
        Err(error) => missing.push(chain(&error)),
    }
    versions
}

/// The events of Portolan's objects.
async fn events(hub: &Client, missing: &mut Vec<String>) -> Vec<Value> {
    let api: Api<Event> = Api::all(hub.clone());
    let group = portolan_api::API_VERSION;
    let list = match call("list the events of the hub", api.list(&ListParams::default().limit(EVENTS))).await
    {
        Ok(list) => list,
        Err(error) => {
            missing.push(chain(&error));
            return Vec::new();
        }
    };
    if list.metadata.continue_.is_some_and(|more| !more.is_empty()) {
        missing.push(format!("events beyond the first {EVENTS} of the hub"));
    }
    let ours = |event: &Event| event.involved_object.api_version.as_deref() == Some(group);
    list.items.into_iter().filter(ours).filter_map(|event| serde_json::to_value(event).ok()).collect()
}

/// The logs of the controller's pods: name and text.
async fn logs(hub: &Client, namespace: &str, missing: &mut Vec<String>) -> Vec<(String, String)> {
    let pods = match controllers::pods(hub, namespace).await {
        Ok(pods) => pods,
        Err(error) => {
            missing.push(chain(&error));
            return Vec::new();
        }
    };
    if pods.is_empty() {
        missing.push(format!(
            "logs of the controller: namespace {namespace} of the hub has no pod of it, so it runs elsewhere; add its \
             standard error to the report"
        ));
    }
    let api: Api<Pod> = Api::namespaced(hub.clone(), namespace);
    let mut logs = Vec::new();
    for pod in pods {
        let name = pod.metadata.name.unwrap_or_default();
        for previous in [false, true] {
            let params = LogParams {
                tail_lines: Some(LOG_LINES),
                limit_bytes: Some(LOG_BYTES),
                timestamps: true,
                previous,
                ..LogParams::default()
            };
            let called = if previous { format!("{name}-previous") } else { name.clone() };
            match call(format!("read the log of pod {namespace}/{name}"), api.logs(&name, &params)).await {
                Ok(log) => logs.push((called, log)),
                // A container that was never restarted has no earlier log.
                Err(_) if previous => {}
                Err(error) => missing.push(chain(&error)),
            }
        }
    }
    logs
}
