//! What `portolan status --verbose` says of each peer: who it takes this cluster for, what is shared, and how far it is.

use crate::clean;
use crate::commands::doctor::Report;
use crate::commands::get::{distances, health, offer_lines};
use crate::failure::{Failure, NotShown};
use crate::kind::Kind;
use crate::style::mark;
use kube::Client;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::ClusterType;
use portolan_core::doctor::Check;
use serde_json::{Map, Value, json};

/// One line of a peer: what it is about, and what is said, one line each.
type Fact = (&'static str, Vec<String>);

/// The controller and the peers, for people and for programs.
pub(super) struct Peers {
    pub(super) text: String,
    pub(super) controller: Vec<String>,
    pub(super) data: Vec<Value>,
}

/// All peers, or the one of this name.
pub(super) async fn report(
    hub: &Client,
    only: Option<&str>,
    checks: &Report,
    not_shown: &mut NotShown,
) -> Result<Peers, Failure> {
    let objects = match Kind::Cluster.list(hub, None, &ListParams::default()).await {
        // The hub may have no definitions yet.
        Err(failure) if failure.is_not_found() => Vec::new(),
        objects => not_shown.unless_forbidden(objects)?.unwrap_or_default(),
    };
    let controller =
        [Check::Portolan, Check::Leader].iter().flat_map(|check| checks.messages(None, *check)).collect();
    let mut peers = Peers { text: String::new(), controller, data: Vec::new() };
    peers.text.push_str("\nController\n");
    peers.controller.iter().for_each(|line| peers.text.push_str(&format!("  {line}\n")));
    for object in objects {
        let cluster: ForeignCluster =
            serde_json::from_value(clean::object(object)).map_err(Failure::other)?;
        let name = cluster.metadata.name.clone().unwrap_or_default();
        if only.is_some_and(|only| only != name) {
            continue;
        }
        if peers.data.is_empty() {
            peers.text.push_str("\nPeers\n");
        }
        let facts = facts(&cluster, &name, checks);
        let ready = health(&cluster).0 == "True";
        peers.text.push_str(&shown(&name, ready, &facts));
        peers.data.push(data(&name, ready, &facts));
    }
    Ok(peers)
}

/// What is known of a peer. A fact that does not apply to it is left out.
fn facts(cluster: &ForeignCluster, name: &str, checks: &Report) -> Vec<Fact> {
    let found = |check: Check| checks.messages(Some(name), check);
    let status = cluster.status.clone().unwrap_or_default();
    let condition = |type_| conditions::find(&status.conditions, type_);
    let mut authentication = found(Check::Credential);
    // What the credential says is said once.
    let ours = condition(ConditionType::Authenticated)
        .filter(|each| authentication.is_empty() || each.status != "True");
    authentication.extend(ours.map(|each| each.message.clone()));
    authentication.extend(condition(ConditionType::IncomingPeering).map(|each| each.message.clone()));
    let mut distances: Vec<String> =
        distances(cluster).into_iter().map(|each| format!("between clusters: {each}")).collect();
    distances.extend(found(Check::Latency).into_iter().map(|each| format!("from here: {each}")));
    let facts = [
        ("role", vec![role(cluster).to_owned()]),
        ("authentication", authentication),
        ("namespaces", found(Check::Namespaces)),
        ("sharing", offer_lines(cluster)),
        ("latency", distances),
        ("certificate", found(Check::Certificate)),
    ];
    facts.into_iter().filter(|(_, said)| !said.is_empty()).collect()
}

/// What the cluster is to this one.
fn role(cluster: &ForeignCluster) -> &'static str {
    let (incoming, is_member) = (cluster.spec.incoming.is_some(), cluster.spec.is_member());
    match (incoming, is_member, cluster.spec.outgoing.is_some()) {
        _ if cluster.spec.type_ == ClusterType::Local => "member: this cluster itself",
        (true, true, _) => "member and consumer",
        (false, true, _) => "member",
        (true, false, true) => "provider of a tenant namespace, and consumer",
        (false, false, _) => "provider of a tenant namespace",
        (true, false, false) => "consumer",
    }
}

fn shown(name: &str, ready: bool, facts: &[Fact]) -> String {
    let width = facts.iter().map(|(about, _)| about.len()).max().unwrap_or(0);
    let mut text = format!("  {} {name}\n", mark(ready));
    for (about, said) in facts {
        for (number, line) in said.iter().enumerate() {
            let about = if number == 0 { about } else { "" };
            text.push_str(&format!("      {about:width$}  {line}\n"));
        }
    }
    text
}

fn data(name: &str, ready: bool, facts: &[Fact]) -> Value {
    let facts = facts.iter().map(|(about, said)| ((*about).to_owned(), json!(said)));
    let head = [("name".to_owned(), json!(name)), ("ready".to_owned(), json!(ready))];
    Value::Object(head.into_iter().chain(facts).collect::<Map<_, _>>())
}
