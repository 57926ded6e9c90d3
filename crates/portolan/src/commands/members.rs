//! The members of a workload, reached with the user's own credentials.
//!
//! The hub's account in a member may not read logs, and its token is not for users. A user who may read the pods of a
//! member has a context for it.

use super::get::parts;
use crate::cli::{ClusterArgs, WorkloadArgs};
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::foreigncluster::ClusterType;
use portolan_control::names::WORKLOAD_ID_ANNOTATION;
use portolan_runtime::{call, chain};
use serde_json::Value;
use std::collections::BTreeMap;

/// A workload, and the clusters that hold something of it.
pub(super) struct Workload {
    pub(super) hub: Client,
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The uid of the object in the hub, which its events there name.
    pub(super) object_uid: String,
    clusters: Vec<String>,
    contexts: BTreeMap<String, String>,
}

/// Finds the workload that the flags name.
pub(super) async fn find(args: &WorkloadArgs) -> Result<Workload, Failure> {
    let (kind, name) = Kind::parse_one(&args.object)?;
    if !kind.is_workload() {
        let (short, one) = (kind.short(), kind.singular());
        return Err(Failure::input(format!("{short}/{name} is a {one}, not a workload")).hint(format!(
            "give mcd/NAME, mcj/NAME or mcs/NAME; `portolan status {short}/NAME` shows a {one}"
        )));
    }
    let contexts = contexts(&args.contexts)?;
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let object = kind.get(&hub, Some(&namespace), &name).await?;
    let holding: Vec<String> = parts(kind, &object).into_iter().map(|part| part.cluster).collect();
    if let Some(other) = args.clusters.iter().find(|each| !holding.contains(each)) {
        return Err(Failure::input(format!("--cluster {other}: {} {name} is not there", kind.name())).hint(
            if holding.is_empty() {
                "no cluster holds it".into()
            } else {
                format!("it is in {}", holding.join(", "))
            },
        ));
    }
    // One list of contexts may serve for many workloads; a name that no member has is mistyped.
    for cluster in contexts.keys().filter(|each| !holding.contains(each)) {
        if let Err(failure) = Kind::Cluster.get(&hub, None, cluster).await {
            eprintln!("warning: --member-context {cluster}: {}", failure.message());
        }
    }
    let clusters =
        holding.into_iter().filter(|each| args.clusters.is_empty() || args.clusters.contains(each));
    // The pods carry the identity of the workload.
    let metadata = &object["metadata"];
    let identity = metadata["annotations"][WORKLOAD_ID_ANNOTATION].as_str().or(metadata["uid"].as_str());
    let uid = identity.unwrap_or_default().to_owned();
    let object_uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
    Ok(Workload { hub, kind, namespace, name, uid, object_uid, clusters: clusters.collect(), contexts })
}

impl Workload {
    /// A client for each cluster that holds something of the workload, or why there is none.
    pub(super) async fn members(&self, args: &WorkloadArgs) -> Vec<(String, Result<Client, Failure>)> {
        let mut members = Vec::new();
        for cluster in &self.clusters {
            members.push((cluster.clone(), self.member(args, cluster).await));
        }
        members
    }

    async fn member(&self, args: &WorkloadArgs, name: &str) -> Result<Client, Failure> {
        let object: Value = Kind::Cluster.get(&self.hub, None, name).await?;
        let cluster: ForeignCluster = serde_json::from_value(object).map_err(Failure::other)?;
        client(&args.cluster, &self.contexts, &self.hub, &cluster).await
    }
}

/// The contexts of members, each given as CLUSTER=CONTEXT.
pub(super) fn contexts(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let context = |text: &String| {
        let pair =
            text.split_once('=').filter(|(cluster, context)| !cluster.is_empty() && !context.is_empty());
        let pair = pair.map(|(cluster, context)| (cluster.to_owned(), context.to_owned()));
        pair.ok_or_else(|| {
            Failure::input(format!("--member-context: {text:?} is not of the form CLUSTER=CONTEXT"))
        })
    };
    given.iter().map(context).collect()
}

/// A client for a member, with the user's own credentials.
pub(super) async fn client(
    args: &ClusterArgs,
    contexts: &BTreeMap<String, String>,
    hub: &Client,
    cluster: &ForeignCluster,
) -> Result<Client, Failure> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if cluster.spec.type_ == ClusterType::Local {
        return Ok(hub.clone());
    }
    let context = contexts.get(name).map_or(name, String::as_str);
    let remote = connection::remote(args.kubeconfig.as_deref(), context).await;
    let client = remote
        .map_err(|failure| {
            failure.hint(format!(
                "members are read with your own credentials: give --member-context {name}=CONTEXT"
            ))
        })?
        .client;
    check(&client, cluster, name, context).await?;
    Ok(client)
}

/// Refuses a context that leads to another cluster than the member. Who may not ask cannot be told.
async fn check(client: &Client, cluster: &ForeignCluster, name: &str, context: &str) -> Result<(), Failure> {
    let api: Api<Namespace> = Api::all(client.clone());
    match call(format!("ask {name} who it is"), api.get("kube-system")).await {
        Ok(namespace) => {
            let (found, known) = (namespace.metadata.uid, &cluster.spec.cluster_identity.cluster_id);
            if found.as_ref().is_some_and(|found| found != known) {
                return Err(Failure::input(format!(
                    "context {context} leads to another cluster than {name}"
                ))
                .hint(format!("give --member-context {name}=CONTEXT")));
            }
            Ok(())
        }
        Err(error) if error.code() == Some(403) => Ok(()),
        Err(error) => Err(Failure::other(chain(&error))),
    }
}
