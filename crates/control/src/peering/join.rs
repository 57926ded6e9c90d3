//! Making a cluster a member.

use super::access::{missing, of_hub, of_member};
use super::apply::{PeerError, api_of, apply_by, called};
use super::definitions::install_definitions;
use super::identity::identity;
use super::leave::check_credential;
use super::namespaces::{make, make_missing};
use super::objects::{
    Names, SERVER_ANNOTATION, foreign_cluster, in_hub, in_member, open_namespace, without_report,
};
use super::peer::{NAMESPACE, Peer};
use super::token::request_token;
use super::{Address, Need};
use crate::names::FIELD_MANAGER;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt};
use portolan_api::ForeignCluster;
use portolan_api::foreigncluster::OutgoingPeering;
use portolan_runtime::{Term, call};
use serde_json::{Value, json};

/// The two clusters.
#[derive(Clone)]
pub struct Sides {
    /// The hub, as its user.
    pub hub: Client,
    /// The member, as its user. For a local peer it is the hub.
    pub member: Client,
    /// How the hub reaches the member.
    pub address: Address,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The ForeignCluster.
    pub cluster: ForeignCluster,
    /// The kubeconfig that the hub uses, as JSON; none for a local peer.
    pub kubeconfig: Option<Value>,
    /// When its token ends.
    pub expires: Option<Timestamp>,
    /// Whether the hub may have a report in the member. The user may not be able to give that right away.
    pub can_report: bool,
}

/// Makes a cluster a member, or sets right what is already there.
///
/// # Errors
/// What stands in the way; what was made until then stays, and the next run goes on from there.
pub async fn join(
    sides: &Sides,
    peer: &Peer,
    now: Timestamp,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Joined, PeerError> {
    refuse_missing(&sides.hub, &of_hub(), "the hub").await?;
    let identities = identify(sides, peer).await?;
    tell("installing definitions in the hub");
    install_definitions(&sides.hub).await?;
    make_member(&Term::alone(FIELD_MANAGER), sides, peer, identities, now, tell).await
}

/// The same by a leader, in a hub that has its definitions, and where the rights of the caller are known.
///
/// # Errors
/// As [`join`], or the term has ended.
pub(crate) async fn admit(
    term: &Term,
    sides: &Sides,
    peer: &Peer,
    now: Timestamp,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Joined, PeerError> {
    let identities = identify(sides, peer).await?;
    make_member(term, sides, peer, identities, now, tell).await
}

/// Who the two clusters are.
struct Identities {
    hub: String,
    member: String,
}

/// Finds out who the two clusters are, if the caller has all rights in the member; nothing is made.
async fn identify(sides: &Sides, peer: &Peer) -> Result<Identities, PeerError> {
    if !peer.local {
        let needs = of_member(&sides.member, peer).await?;
        refuse_missing(&sides.member, &needs, &peer.name).await?;
    }
    let hub_id = identity(&sides.hub, "the hub").await?;
    let id = if peer.local { hub_id.clone() } else { identity(&sides.member, "the member").await? };
    if !peer.local && id == hub_id {
        return Err(PeerError::SameCluster { id });
    }
    Ok(Identities { hub: hub_id, member: id })
}

async fn make_member(
    term: &Term,
    sides: &Sides,
    peer: &Peer,
    Identities { hub: hub_id, member: id }: Identities,
    now: Timestamp,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Joined, PeerError> {
    let exists = check_name(&sides.hub, &peer.name, &id).await?;
    if !peer.local {
        check_credential(&sides.hub, &peer.name).await?;
    }
    let (kubeconfig, expires, can_report) = if peer.local {
        for namespace in &peer.namespaces {
            make(term, &sides.hub, &open_namespace(namespace, peer), &hub_id, "the hub").await?;
        }
        (None, None, true)
    } else {
        let names = Names::of(&hub_id);
        tell("making the hub's account and its roles in the member");
        let can_report = grant(term, &sides.member, &names, peer).await?;
        tell("making a token");
        let (token, facts) =
            request_token(&sides.member, NAMESPACE, &names.account, peer.token_lifetime, now).await?;
        let address = stored(&sides.hub, &peer.name, &sides.address).await?;
        let kubeconfig = address.kubeconfig(&peer.name, &token);
        tell("writing the credential in the hub");
        let text = serde_json::to_string_pretty(&kubeconfig)
            .map_err(|source| PeerError::Encode { what: "the kubeconfig", source })?;
        for object in in_hub(&peer.name, &text, &facts, &address) {
            match object["kind"].as_str() {
                Some("Namespace") => make_missing(term, &sides.hub, &object, "the hub").await?,
                _ => {
                    apply_by(term, &sides.hub, &object, "the hub").await?;
                }
            }
        }
        (Some(kubeconfig), Some(facts.expires), can_report)
    };
    let cluster = declare(term, &sides.hub, peer, &id, exists, None).await?;
    Ok(Joined { cluster, kubeconfig, expires, can_report })
}

/// Makes the hub's account and its roles in a member, and opens the namespaces of the peer to it. Answers whether the hub has its
/// right to a report: of a user who may not give that away, the role is made without it.
///
/// # Errors
/// The member refused, or does not answer, or the term has ended.
pub(crate) async fn grant(
    term: &Term,
    member: &Client,
    names: &Names,
    peer: &Peer,
) -> Result<bool, PeerError> {
    let mut can_report = true;
    for object in in_member(names, peer) {
        match (object["kind"].as_str(), without_report(names, &object)) {
            (Some("Namespace"), _) => make(term, member, &object, names.hub(), &peer.name).await?,
            (_, None) => apply_anew(term, member, &object, &peer.name).await?,
            (_, Some(less)) => match apply_by(term, member, &object, &peer.name).await {
                Err(error) if error.code() == Some(403) => {
                    can_report = false;
                    apply_by(term, member, &less, &peer.name).await?;
                }
                other => {
                    other?;
                }
            },
        }
    }
    Ok(can_report)
}

/// The address with the URL that the user gave in an earlier run, unless another one is given now.
async fn stored(hub: &Client, name: &str, address: &Address) -> Result<Address, PeerError> {
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let what = format!("read Secret {NAMESPACE}/{name}");
    let secret = call(what, secrets.get_metadata_opt(name)).await?;
    let annotations = secret.and_then(|secret| secret.metadata.annotations).unwrap_or_default();
    Ok(match annotations.get(SERVER_ANNOTATION).filter(|_| !address.given) {
        Some(server) => Address { server: server.clone(), given: true, ..address.clone() },
        None => address.clone(),
    })
}

/// Whether there is a ForeignCluster of this name; it must be of this cluster and stay, and no other may be of it. Of the
/// others no more is read than that: one that cannot be read keeps no cluster from joining.
pub(crate) async fn check_name(hub: &Client, name: &str, id: &str) -> Result<bool, PeerError> {
    let api = Api::<DynamicObject>::all_with(hub.clone(), &ForeignCluster::api_resource());
    let all = call("list ForeignClusters of the hub", api.list(&Default::default())).await?.items;
    for each in all {
        let called = each.metadata.name.clone().unwrap_or_default();
        let known = each.data["spec"]["clusterIdentity"]["clusterID"].as_str().unwrap_or_default().to_owned();
        if called == name && known != id {
            return Err(PeerError::NameTaken { name: called, known, found: id.to_owned() });
        }
        if called != name && known == id {
            return Err(PeerError::MemberAlready { name: called });
        }
        if called == name && each.metadata.deletion_timestamp.is_some() {
            return Err(PeerError::Leaving { name: called });
        }
        if called == name {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn refuse_missing(client: &Client, needs: &[Need], side: &str) -> Result<(), PeerError> {
    let missing = missing(client, needs).await?;
    match missing.as_slice() {
        [] => Ok(()),
        _ => Err(PeerError::MissingRights { side: format!("in {side}"), missing }),
    }
}

/// Applies an object; a binding whose role cannot be changed is made anew.
async fn apply_anew(term: &Term, client: &Client, object: &Value, place: &str) -> Result<(), PeerError> {
    match apply_by(term, client, object, place).await {
        Err(error) if error.code() == Some(422) && object.get("roleRef").is_some() => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let what = format!("delete {} in {place}", called(object));
            term.call(what, api_of(client, object).delete(name, &Default::default())).await?;
            apply_by(term, client, object, place).await?;
        }
        other => {
            other?;
        }
    }
    Ok(())
}

/// Declares the member. What an earlier run or a user wrote stays, unless it is given anew.
pub(crate) async fn declare(
    term: &Term,
    hub: &Client,
    peer: &Peer,
    id: &str,
    exists: bool,
    outgoing: Option<&OutgoingPeering>,
) -> Result<ForeignCluster, PeerError> {
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let mut wanted = foreign_cluster(peer, id);
    if let Some(outgoing) = outgoing {
        wanted["spec"]["outgoing"] = json!(outgoing);
    }
    let what = format!("write ForeignCluster {}", peer.name);
    if exists {
        // It is not another cluster by now, and what it is called is the user's.
        if let Some(spec) = wanted["spec"].as_object_mut() {
            spec.remove("clusterIdentity");
            spec.remove("type");
            // Who accepts offers is the user's to say.
            if let Some(outgoing) = spec.get_mut("outgoing").and_then(serde_json::Value::as_object_mut) {
                outgoing.remove("acceptance");
            }
        }
        let patch = json!({ "metadata": { "labels": peer.labels }, "spec": wanted["spec"] });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        return Ok(term.call(what, api.patch(&peer.name, &params, &Patch::Merge(patch))).await?);
    }
    let object: ForeignCluster = serde_json::from_value(wanted)
        .map_err(|source| PeerError::Encode { what: "the ForeignCluster", source })?;
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    Ok(term.call(what, api.create(&params, &object)).await?)
}
