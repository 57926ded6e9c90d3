//! A member: what the controller says about it, the hub's credential, and the way there with it.

use super::probe;
use super::report::{Sheet, unasked};
use super::rights::of_peer_error;
use super::way::{Credential as Shown, Way};
use super::{Own, hub, in_the_way};
use crate::commands::get::parts;
use crate::commands::members;
use crate::kind::Kind;
use futures::{StreamExt, TryStreamExt};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::ClusterType;
use portolan_control::fleet::Access;
use portolan_control::names::{OPT_IN, OPT_IN_LABEL};
use portolan_control::peering::{
    CertificateFacts, PeerError, Scope, TokenFacts, in_open_namespace, in_whole_member, missing, missing_in,
    of_tenant, of_tenant_in, rights,
};
use portolan_core::doctor::{
    Check, Conditions, Credential, CredentialKind, Evidence, LastSeen, Namespaces, Rights, StatedCondition,
};
use portolan_runtime::{CallError, call, foreign_text};
use std::collections::{BTreeMap, BTreeSet};

/// A controller at work writes more often than this that a member answers, in fleets of up to a thousand.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_secs(180);

/// In so many open namespaces of a member the rights are asked for.
const ASKED_NAMESPACES: usize = 20;

/// By member: the namespaces that workloads of the hub have replicas in there.
type Placed = BTreeMap<String, BTreeSet<String>>;

/// Where workloads are placed; nothing if the caller may not list them all.
pub(super) async fn placed(hub: &Client) -> Option<Placed> {
    let mut placed = Placed::new();
    for kind in Kind::WORKLOADS {
        for object in kind.list(hub, None, &ListParams::default()).await.ok()? {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            for part in parts(kind, &object) {
                placed.entry(part.cluster).or_default().insert(namespace.clone());
            }
        }
    }
    Some(placed)
}

/// Makes all checks of a member.
pub(super) async fn check(
    sheet: &Sheet,
    own: &Own<'_>,
    cluster: &ForeignCluster,
    placed: Option<&Placed>,
    members: usize,
) {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    told(sheet, cluster, members);
    if is_consumer_only(cluster) {
        // Nothing is asked of it, and there is no credential for it.
        return;
    }
    let placed = placed.and_then(|placed| placed.get(&name));
    if cluster.spec.type_ == ClusterType::Local {
        match open_namespaces(own.hub).await {
            Ok(open) => sheet.add(Check::Namespaces, "", &namespaces(open, placed)),
            Err(error) => sheet.add(Check::Namespaces, "", &unasked(&error, "list namespaces")),
        }
        return;
    }
    let with_credential = async {
        match access(sheet, own.hub, cluster).await {
            Some((access, known)) => with_access(sheet, access, &known, cluster, placed).await,
            None => {
                for check in [Check::Tcp, Check::Tls, Check::Api, Check::Rights, Check::Namespaces] {
                    sheet.add(check, "", &Evidence::NotReached { after: Check::Credential });
                }
            }
        }
    };
    let with_own = async {
        match members::client(own.args, own.contexts, own.hub, cluster).await {
            Ok(client) => in_the_way::check(sheet, &client, written()).await,
            Err(failure) => {
                let evidence = Evidence::NotAsked {
                    why: foreign_text(failure.message()),
                    advice: failure.hints().join("; "),
                };
                sheet.add(Check::Webhooks, "", &evidence);
                sheet.add(Check::ApiServices, "", &evidence);
            }
        }
    };
    tokio::join!(with_credential, with_own);
}

/// Whether a cluster is a tenant of this one, and this one nothing of it.
fn is_consumer_only(cluster: &ForeignCluster) -> bool {
    let spec = &cluster.spec;
    spec.incoming.is_some() && spec.outgoing.is_none() && spec.credentials.is_none() && !spec.is_member()
}

/// What the credential of the hub for a cluster is.
fn kind_of(cluster: &ForeignCluster) -> CredentialKind {
    if cluster.spec.outgoing.is_some() { CredentialKind::Certificate } else { CredentialKind::Token }
}

/// What the hub writes in a member, and the pods that come of it.
fn written() -> Vec<(String, String)> {
    let copies = rights().into_iter().filter(|right| right.scope == Scope::OpenNamespaces);
    let copies = copies.filter(|right| right.verbs.contains(&"patch"));
    let copies = copies.map(|right| (right.group.to_owned(), right.resource.to_owned()));
    let pods =
        [("", "pods"), ("apps", "replicasets")].map(|(group, name)| (group.to_owned(), name.to_owned()));
    let all: BTreeSet<(String, String)> = copies.chain(pods).collect();
    all.into_iter().collect()
}

/// What the controller says.
fn told(sheet: &Sheet, cluster: &ForeignCluster, members: usize) {
    let status = cluster.status.clone().unwrap_or_default();
    let condition = |each: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| StatedCondition {
        type_: foreign_text(&each.type_),
        status: foreign_text(&each.status),
        reason: foreign_text(&each.reason),
        message: foreign_text(&each.message),
    };
    let generation = cluster.metadata.generation;
    let ready = conditions::find(&status.conditions, ConditionType::Ready);
    let conditions = Conditions {
        all: status.conditions.iter().map(condition).collect(),
        current: status.observed_generation == generation
            || ready.is_some_and(|ready| ready.observed_generation == generation),
    };
    sheet.add(Check::Condition, "", &Evidence::Conditions(conditions));
    if !cluster.spec.is_member() {
        return;
    }
    let more = SignedDuration::from_secs(i64::try_from(members / 5).unwrap_or(i64::MAX));
    let within = SEEN_WITHIN.saturating_add(more);
    let seen = status.last_seen.map(|time| time.0);
    sheet.add(Check::LastSeen, "", &Evidence::LastSeen(LastSeen { seen, within }));
}

/// What is known of a credential.
struct Known {
    secret: String,
    kind: CredentialKind,
    subject: Option<String>,
}

/// The credential of the hub, out of its Secret, if it can be used.
async fn access(sheet: &Sheet, hub: &Client, cluster: &ForeignCluster) -> Option<(Access, Known)> {
    let kind = kind_of(cluster);
    let Some(reference) = cluster.spec.credentials.as_ref().map(|credentials| &credentials.secret_ref) else {
        let why = "spec.credentials is not set".to_owned();
        sheet.add(Check::Credential, "", &Evidence::BadAddress { why, advice: kind.renew().to_owned() });
        return None;
    };
    let name = format!("{}/{}", reference.namespace, reference.name);
    let broken = |problem: String| {
        let secret = name.clone();
        Evidence::Credential(Credential {
            secret,
            problem: Some(problem),
            kind,
            subject: None,
            expires: None,
            renew: None,
        })
    };
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), &reference.namespace);
    let secret = match call(format!("read Secret {name}"), secrets.get(&reference.name)).await {
        Ok(secret) => secret,
        Err(error) => {
            let right = format!("get secrets in namespace {}", reference.namespace);
            let missing = error.is_not_found().then(|| broken(format!("Secret {name} does not exist")));
            sheet.add(Check::Credential, &name, &missing.unwrap_or_else(|| unasked(&error, &right)));
            return None;
        }
    };
    let annotations = secret.metadata.annotations.clone().unwrap_or_default();
    let certificate = CertificateFacts::read(&annotations);
    let kind = certificate.as_ref().map_or(kind, |_| CredentialKind::Certificate);
    let token = TokenFacts::read(&annotations).map(|facts| (facts.expires, facts.renew));
    let noted = certificate.as_ref().map(|facts| (facts.expires, facts.renew)).or(token);
    match Access::from_secret(&secret, reference).await {
        Ok(access) => {
            let claims = access.claims().unwrap_or_default();
            let subject = claims.subject.or(certificate.map(|facts| foreign_text(&facts.user)));
            let credential = Credential {
                secret: name.clone(),
                problem: None,
                kind,
                subject: subject.clone(),
                expires: claims.expires.into_iter().chain(noted.map(|(expires, _)| expires)).min(),
                renew: noted.map(|(_, renew)| renew),
            };
            sheet.add(Check::Credential, &name, &Evidence::Credential(credential));
            Some((access, Known { secret: name, kind, subject }))
        }
        Err(error) => {
            sheet.add(Check::Credential, &name, &broken(foreign_text(&portolan_runtime::chain(&error))));
            None
        }
    }
}

/// What can be checked with the credential of the hub.
async fn with_access(
    sheet: &Sheet,
    access: Access,
    known: &Known,
    cluster: &ForeignCluster,
    placed: Option<&BTreeSet<String>>,
) {
    let client = access.client.clone();
    let renew = known.kind.renew();
    let credential = Shown { called: format!("the credential in Secret {}", known.secret), renew };
    let way = Way { config: access.config, client: access.client, credential };
    if !probe::hops(sheet, &way).await {
        for check in [Check::Rights, Check::Namespaces] {
            sheet.add(check, "", &Evidence::NotReached { after: Check::Api });
        }
        return;
    }
    hub::kubernetes(sheet, &client).await;
    let open = match confined_to(cluster) {
        _ if !cluster.spec.is_member() => None,
        Some(confined) => Some(Ok(confined)),
        None => Some(open_namespaces(&client).await),
    };
    let labelled = open.as_ref().and_then(|open| open.as_ref().ok().cloned()).unwrap_or_default();
    let granted = granted(&client, known, cluster, &labelled).await;
    let right = "create selfsubjectaccessreviews.authorization.k8s.io";
    match (&open, &granted) {
        // It places nothing there.
        (None, _) => {}
        (Some(Err(error)), _) => {
            let why = foreign_text(&portolan_runtime::chain(error));
            sheet.add(Check::Namespaces, "", &Evidence::NotAsked { why, advice: renew.to_owned() });
        }
        (Some(Ok(_)), Ok(granted)) => {
            sheet.add(Check::Namespaces, "", &namespaces(granted.open.clone(), placed));
        }
        (Some(Ok(_)), Err(error)) => sheet.add(Check::Namespaces, "", &of_peer_error(error, right)),
    }
    let evidence = match granted {
        Ok(granted) => Evidence::Rights(Rights {
            whose: known.subject.clone().unwrap_or_else(|| "the account of the hub".to_owned()),
            asked: granted.asked,
            missing: granted.missing,
            grant: match known.kind {
                CredentialKind::Token => {
                    "run `portolan peer` for this member again, with its namespaces, which grants them".to_owned()
                }
                CredentialKind::Certificate => {
                    "the controller of the provider grants them: look whether it runs, of which version it is, and at its \
                     ForeignCluster for this cluster"
                        .to_owned()
                }
            },
            optional: false,
        }),
        Err(error) => of_peer_error(&error, right),
    };
    sheet.add(Check::Rights, "", &evidence);
}

/// The namespaces that the hub sees of a member whose tenant it is, if it sees no more of it.
fn confined_to(cluster: &ForeignCluster) -> Option<Vec<String>> {
    let outgoing = cluster.spec.outgoing.as_ref().filter(|outgoing| !outgoing.sees_cluster)?;
    let told = cluster.status.as_ref().and_then(|status| status.outgoing.clone()).unwrap_or_default();
    Some(told.namespaces.into_iter().filter(|name| *name != outgoing.tenant_namespace).collect())
}

/// The rights of the hub's user in a member.
struct Granted {
    /// How many were asked for.
    asked: usize,
    /// Those that it lacks.
    missing: Vec<String>,
    /// The open namespaces that are open to this hub: others are open to other hubs.
    open: Vec<String>,
}

/// The rights of the hub's user: everywhere, and in those of the open namespaces in which it has any.
async fn granted(
    client: &Client,
    known: &Known,
    cluster: &ForeignCluster,
    open: &[String],
) -> Result<Granted, PeerError> {
    let tenancy = cluster.spec.outgoing.as_ref().filter(|_| known.kind == CredentialKind::Certificate);
    let is_tenant = tenancy.is_some();
    let whole = match tenancy {
        Some(outgoing) => of_tenant(&outgoing.tenant_namespace, outgoing.placement && outgoing.sees_cluster),
        None => in_whole_member(known.subject.as_deref().and_then(|subject| subject.rsplit(':').next())),
    };
    let lacking = missing(client, &whole).await?;
    let mut granted = Granted { asked: whole.len(), missing: lacking, open: Vec::new() };
    let each = open.iter().take(ASKED_NAMESPACES).map(|namespace| async move {
        let needs = if is_tenant { of_tenant_in(namespace) } else { in_open_namespace(namespace) };
        Ok::<_, PeerError>((namespace, needs.len(), missing_in(client, namespace, &needs).await?))
    });
    let found: Vec<_> = futures::stream::iter(each).buffered(4).try_collect().await?;
    for (namespace, asked, lacking) in found {
        if lacking.len() < asked {
            granted.asked += asked;
            granted.missing.extend(lacking);
            granted.open.push(namespace.clone());
        }
    }
    granted.open.extend(open.iter().skip(ASKED_NAMESPACES).cloned());
    Ok(granted)
}

/// The namespaces that the member has opened.
async fn open_namespaces(client: &Client) -> Result<Vec<String>, CallError> {
    let api: Api<Namespace> = Api::all(client.clone());
    let params = ListParams::default().labels(&format!("{OPT_IN_LABEL}={OPT_IN}")).limit(500);
    let list = call("list the open namespaces", api.list_metadata(&params)).await?;
    Ok(list.items.into_iter().filter_map(|each| each.metadata.name).map(|name| foreign_text(&name)).collect())
}

fn namespaces(open: Vec<String>, placed: Option<&BTreeSet<String>>) -> Evidence {
    let closed = placed.into_iter().flatten().filter(|name| !open.contains(name)).cloned().collect();
    Evidence::Namespaces(Namespaces { open, closed })
}
