//! A member: what the controller says about it, the hub's credential, and the way there with it.

use super::probe::{self, Credential as Shown, Way};
use super::report::{Sheet, unasked};
use super::rights::of_peer_error;
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
use portolan_api::foreigncluster::ClusterType;
use portolan_control::fleet::Access;
use portolan_control::names::{OPT_IN, OPT_IN_LABEL};
use portolan_control::peering::{
    CertificateFacts, Scope, TokenFacts, in_open_namespace, in_whole_member, missing, missing_in, rights,
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

const RENEW: &str = "run `portolan peer` for this member again, which grants a new credential";

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
    conditions(sheet, cluster);
    if !cluster.spec.is_member() {
        // Nothing is placed there. A consumer is not even called: it calls this cluster.
        if cluster.spec.outgoing.is_some()
            && let Some(found) = access(sheet, own.hub, cluster).await
        {
            hops(sheet, found).await;
        }
        return;
    }
    last_seen(sheet, cluster, members);
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
            Some(found) => with_access(sheet, found, placed).await,
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
fn conditions(sheet: &Sheet, cluster: &ForeignCluster) {
    let status = cluster.status.clone().unwrap_or_default();
    let condition = |each: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| StatedCondition {
        type_: foreign_text(&each.type_),
        status: foreign_text(&each.status),
        reason: foreign_text(&each.reason),
        message: foreign_text(&each.message),
    };
    // Of a peer that is no member, only the conditions say which spec they are about.
    let observed = status.conditions.iter().filter_map(|each| each.observed_generation).min();
    let observed = if cluster.spec.is_member() { status.observed_generation } else { observed };
    let conditions = Conditions {
        all: status.conditions.iter().map(condition).collect(),
        current: observed == cluster.metadata.generation,
    };
    sheet.add(Check::Condition, "", &Evidence::Conditions(conditions));
}

/// When the controller last reached it.
fn last_seen(sheet: &Sheet, cluster: &ForeignCluster, members: usize) {
    let more = SignedDuration::from_secs(i64::try_from(members / 5).unwrap_or(i64::MAX));
    let within = SEEN_WITHIN.saturating_add(more);
    let seen = cluster.status.as_ref().and_then(|status| Some(status.last_seen.as_ref()?.0));
    sheet.add(Check::LastSeen, "", &Evidence::LastSeen(LastSeen { seen, within }));
}

/// A credential that can be used.
struct Usable {
    access: Access,
    /// Its Secret.
    secret: String,
    kind: CredentialKind,
}

/// The credential of the hub, out of its Secret, if it can be used.
async fn access(sheet: &Sheet, hub: &Client, cluster: &ForeignCluster) -> Option<Usable> {
    let Some(reference) = cluster.spec.credentials.as_ref().map(|credentials| &credentials.secret_ref) else {
        let why = "spec.credentials is not set".to_owned();
        sheet.add(Check::Credential, "", &Evidence::BadAddress { why, advice: RENEW.to_owned() });
        return None;
    };
    let name = format!("{}/{}", reference.namespace, reference.name);
    let broken = |problem: String| {
        let secret = name.clone();
        Evidence::Credential(Credential {
            kind: CredentialKind::Token,
            secret,
            problem: Some(problem),
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
    let (token, certificate) = (TokenFacts::read(&annotations), CertificateFacts::read(&annotations));
    let kind = if certificate.is_some() { CredentialKind::Certificate } else { CredentialKind::Token };
    match Access::from_secret(&secret, reference).await {
        Ok(access) => {
            let claims = access.claims().unwrap_or_default();
            let noted = token.map(|facts| (facts.expires, facts.renew));
            let noted = noted.or(certificate.as_ref().map(|facts| (facts.expires, facts.renew)));
            let user = certificate.map(|facts| foreign_text(&facts.user));
            let credential = Credential {
                kind,
                secret: name.clone(),
                problem: None,
                subject: claims.subject.or(user),
                expires: claims.expires.into_iter().chain(noted.map(|(expires, _)| expires)).min(),
                renew: noted.map(|(_, renew)| renew),
            };
            sheet.add(Check::Credential, &name, &Evidence::Credential(credential));
            Some(Usable { access, secret: name, kind })
        }
        Err(error) => {
            sheet.add(Check::Credential, &name, &broken(foreign_text(&portolan_runtime::chain(&error))));
            None
        }
    }
}

/// What can be checked with the credential of the hub.
async fn with_access(sheet: &Sheet, found: Usable, placed: Option<&BTreeSet<String>>) {
    let subject = found.access.claims().and_then(|claims| claims.subject);
    let account = subject.as_deref().and_then(|subject| subject.rsplit(':').next()).map(str::to_owned);
    let client = found.access.client.clone();
    if !hops(sheet, found).await {
        for check in [Check::Rights, Check::Namespaces] {
            sheet.add(check, "", &Evidence::NotReached { after: Check::Api });
        }
        return;
    }
    hub::kubernetes(sheet, &client).await;
    let open = open_namespaces(&client).await;
    let evidence = match &open {
        Ok(open) => namespaces(open.clone(), placed),
        Err(error) => Evidence::NotAsked {
            why: foreign_text(&portolan_runtime::chain(error)),
            advice: RENEW.to_owned(),
        },
    };
    sheet.add(Check::Namespaces, "", &evidence);
    let whose = subject.unwrap_or_else(|| "the account of the hub".to_owned());
    sheet.add(Check::Rights, "", &of_hub(&client, whose, account, &open.unwrap_or_default()).await);
}

/// The way to the member with the credential of the hub; whether the member answers.
async fn hops(sheet: &Sheet, found: Usable) -> bool {
    let Usable { access, secret, kind } = found;
    let is_renewed = kind == CredentialKind::Certificate;
    let credential = Shown { called: format!("the credential in Secret {secret}"), renew: RENEW, is_renewed };
    let way = Way { config: access.config, client: access.client, credential };
    probe::hops(sheet, &way).await
}

/// The rights of the hub's account, everywhere and in open namespaces.
async fn of_hub(client: &Client, whose: String, account: Option<String>, open: &[String]) -> Evidence {
    let right = "create selfsubjectaccessreviews.authorization.k8s.io";
    let whole = in_whole_member(account.as_deref());
    let mut lacking = match missing(client, &whole).await {
        Ok(lacking) => lacking,
        Err(error) => return of_peer_error(&error, right),
    };
    let mut asked = whole.len();
    let each = open.iter().take(ASKED_NAMESPACES).map(|namespace| async move {
        let needs = in_open_namespace(namespace);
        Ok::<_, portolan_control::peering::PeerError>((
            needs.len(),
            missing_in(client, namespace, &needs).await?,
        ))
    });
    let found: Result<Vec<_>, _> = futures::stream::iter(each).buffered(4).try_collect().await;
    match found {
        Ok(found) => {
            for (count, missing) in found {
                asked += count;
                lacking.extend(missing);
            }
        }
        Err(error) => return of_peer_error(&error, right),
    }
    Evidence::Rights(Rights {
        whose,
        asked,
        missing: lacking,
        grant: "run `portolan peer` for this member again, with its namespaces, which grants them".to_owned(),
        optional: false,
    })
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
