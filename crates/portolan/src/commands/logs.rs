//! `portolan logs`

use super::controllers;
use super::members::{self, Workload};
use crate::cli::LogsArgs;
use crate::failure::Failure;
use crate::{clean, connection, output, signals};
use anstream::eprintln;
use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client};
use portolan_control::names::WORKLOAD_LABEL;
use portolan_control::peering::NAMESPACE;
use portolan_runtime::{call, chain};
use std::io::IsTerminal;

/// The longest line that is printed as one.
const LINE_LIMIT: u64 = 1 << 20;

/// The annotation that names the container whose logs people want.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

pub(super) fn run(args: &LogsArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(logs(args)))
}

/// One container whose log is read.
struct Source {
    api: Api<Pod>,
    cluster: String,
    pod: String,
    container: String,
}

/// What stands in the place of a workload for the pods of the controller.
const CONTROLLER: &str = "controller";

async fn logs(args: &LogsArgs) -> Result<(), Failure> {
    if args.workload.object == [CONTROLLER] {
        let sources = of_controller(args).await?;
        return print(args, sources, Vec::new()).await;
    }
    let workload = members::find(&args.workload).await?;
    let mut failed = Vec::new();
    let mut sources = Vec::new();
    for (cluster, client) in workload.members(&args.workload).await {
        let found = match client {
            Ok(client) => find(args, &workload, &cluster, client).await,
            Err(failure) => Err(failure),
        };
        match found {
            Ok(found) => sources.extend(found),
            Err(failure) => failed.push((cluster, failure)),
        }
    }
    if sources.is_empty() && failed.is_empty() {
        eprintln!("{} {} has no pods", workload.kind.name(), workload.name);
    }
    print(args, sources, failed).await
}

/// The containers of the controller's pods in the hub.
async fn of_controller(args: &LogsArgs) -> Result<Vec<Source>, Failure> {
    let (hub, _) = connection::answering(&args.workload.cluster).await?;
    let namespace = args.workload.namespace.as_deref().unwrap_or(NAMESPACE);
    let pods = controllers::pods(&hub, namespace).await.map_err(|error| Failure::call(&error))?;
    if pods.is_empty() {
        return Err(Failure::other(format!("namespace {namespace} of the hub has no pod of the controller")).hint(
            "a controller that runs elsewhere writes its log to its standard error; -n names another namespace",
        ));
    }
    Ok(sources(args, &Api::namespaced(hub, namespace), "hub", &pods))
}

/// Prints the logs of these containers; what failed before is reported with what fails now.
async fn print(
    args: &LogsArgs,
    sources: Vec<Source>,
    mut failed: Vec<(String, Failure)>,
) -> Result<(), Failure> {
    let reading = sources.iter().map(|source| async move { (source, read(args, source).await) });
    // Followed containers are read at the same time, others one after the other, so that their lines stay together.
    let at_once = if args.follow { sources.len().max(1) } else { 1 };
    let mut reading = futures::stream::iter(reading).buffer_unordered(at_once);
    let all = async {
        let mut broken = Vec::new();
        while let Some((source, outcome)) = reading.next().await {
            broken
                .extend(outcome.err().map(|failure| (format!("{}/{}", source.cluster, source.pod), failure)));
        }
        broken
    };
    let broken = tokio::select! {
        broken = all => broken,
        stopped = signals::stopped() => return stopped,
    };
    failed.extend(broken);
    let mut failed = failed.into_iter();
    let Some((first, failure)) = failed.next() else { return Ok(()) };
    for (place, failure) in failed {
        eprintln!("{}: {}", clean::line(&place), clean::line(failure.message()));
    }
    Err(failure.about(&first))
}

/// The containers of the workload's pods in one member.
async fn find(
    args: &LogsArgs,
    workload: &Workload,
    cluster: &str,
    client: Client,
) -> Result<Vec<Source>, Failure> {
    let api: Api<Pod> = Api::namespaced(client, &workload.namespace);
    let ours = ListParams::default().labels(&format!("{WORKLOAD_LABEL}={}", workload.uid));
    let what = format!("list the pods of namespace {} in {cluster}", workload.namespace);
    let pods = call(what, api.list(&ours)).await.map_err(|error| Failure::other(chain(&error)))?;
    Ok(sources(args, &api, cluster, &pods.items))
}

/// The containers of pods that the flags ask for.
fn sources(args: &LogsArgs, api: &Api<Pod>, cluster: &str, pods: &[Pod]) -> Vec<Source> {
    let mut sources = Vec::new();
    for pod in pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        for container in containers(args, pod) {
            let (api, cluster, pod) = (api.clone(), cluster.to_owned(), name.clone());
            sources.push(Source { api, cluster, pod, container });
        }
    }
    sources
}

fn containers(args: &LogsArgs, pod: &Pod) -> Vec<String> {
    let all: Vec<String> =
        pod.spec.iter().flat_map(|spec| &spec.containers).map(|each| each.name.clone()).collect();
    if args.all_containers {
        return all;
    }
    let annotated = pod.metadata.annotations.as_ref().and_then(|all| all.get(DEFAULT_CONTAINER)).cloned();
    let default = annotated.filter(|name| all.contains(name)).or_else(|| all.first().cloned());
    args.container.clone().or(default).into_iter().collect()
}

/// Prints the log of one container, each line with where it comes from.
async fn read(args: &LogsArgs, source: &Source) -> Result<(), Failure> {
    let params = LogParams {
        container: Some(source.container.clone()),
        follow: args.follow,
        tail_lines: (args.tail >= 0).then_some(args.tail),
        since_seconds: args.since.map(|since| i64::try_from(since.0.as_secs()).unwrap_or(i64::MAX).max(1)),
        timestamps: args.timestamps,
        previous: args.previous,
        ..LogParams::default()
    };
    let what = format!("read the log of pod {}", source.pod);
    let stream = call(what, source.api.log_stream(&source.pod, &params)).await;
    let mut stream = stream.map_err(|error| Failure::other(chain(&error)))?;
    let container = if args.all_containers { format!(" {}", source.container) } else { String::new() };
    let prefix = clean::line(&format!("[{}/{}{container}]", source.cluster, source.pod));
    // A program that reads the lines gets them as they were written.
    let terminal = std::io::stdout().is_terminal();
    while let Some(line) = next_line(&mut stream).await.map_err(Failure::from)? {
        let line = if terminal { clean::styled(&line) } else { line };
        output::data(&format!("{prefix} {line}\n"))?;
    }
    Ok(())
}

/// The next line of a log; of one that is very long, the next part.
async fn next_line(log: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    if log.take(LINE_LIMIT).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        line.pop();
        line.pop_if(|last| *last == b'\r');
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_without_end_is_read_in_parts() {
        let long = "x".repeat(3 << 20);
        let log = format!("first\r\n\n{long}\nlast");
        let (mut log, mut lines) = (log.as_bytes(), Vec::new());
        while let Some(line) = next_line(&mut log).await.unwrap() {
            lines.push(line);
        }
        assert_eq!(
            (lines[0].as_str(), lines[1].as_str(), lines.last().unwrap().as_str()),
            ("first", "", "last")
        );
        assert!(lines.iter().all(|line| line.len() <= 1 << 20));
        assert_eq!(lines[2..lines.len() - 1].concat(), long);
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_end_no_log() {
        let mut log = &b"\xff\nnext\n"[..];
        assert_eq!(next_line(&mut log).await.unwrap().as_deref(), Some("\u{fffd}"));
        assert_eq!(next_line(&mut log).await.unwrap().as_deref(), Some("next"));
        assert_eq!(next_line(&mut log).await.unwrap(), None);
    }
}
