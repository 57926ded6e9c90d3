//! A consumer has its certificates signed anew before they end, and tells how it stands with its providers. Tokens are renewed
//! as those of all members are.

use super::TenancyError;
use super::certificate::{Answer, NewKey, answer, is_same_key, request, send};
use super::gone::gone;
use super::held::Held;
use super::keys::forget_keys;
use super::probe::{Standing, standing};
use super::renew_error::{RenewError, SIGNED_WITHIN};
use crate::fleet::{Connect, Credentials};
use crate::monitor::Monitor;
use crate::names::{CLUSTER_LABEL, FIELD_MANAGER};
use crate::peering::{
    CertificateFacts, NAMESPACE, PeerError, SECRET_KEY, TokenFacts, certificate_user, if_same,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{ForeignCluster, Reason};
use portolan_core::tenancy::names::Tenant;
use portolan_runtime::{
    Action, CallError, Clock, EventType, Index, Key, Queue, Recorder, Seed, Term, call, chain, feed,
    foreign_text, supervise, work,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How soon to look again while Secrets are not listed.
const SYNCS: Duration = Duration::from_secs(1);

/// How soon to look again after a certificate was renewed: what a provider signs may be due at once.
const AGAIN: Duration = Duration::from_secs(60);

/// How often a request is made anew that was not ours, before the provider is left alone for a while.
const TRIES: u32 = 3;

/// How often the provider is asked whether this cluster is still its tenant.
const STANDING: Duration = Duration::from_secs(300);

/// So long after it was due, a token that is the old one is worth a word.
const LATE: SignedDuration = SignedDuration::from_mins(5);

/// How often it is asked meanwhile.
const POLL: Duration = Duration::from_millis(500);

/// Keeps certificates valid for the length of a term: when half of the life of one is over, the provider is asked for another
/// one, of another key, and both are written into the Secret. Requests that begin then show the new one; watches that are
/// open go on.
pub async fn renew(
    hub: Client,
    credentials: Arc<Credentials>,
    clock: Clock,
    seed: Seed,
    term: Term,
    new_key: NewKey,
) {
    renew_with(hub, credentials, clock, seed, term, new_key, &Monitor::default()).await;
}

/// The same, seen by a monitor.
pub async fn renew_with(
    hub: Client,
    credentials: Arc<Credentials>,
    clock: Clock,
    seed: Seed,
    term: Term,
    new_key: NewKey,
    monitor: &Monitor,
) {
    let queue = Queue::<Key>::new(seed.child("certificates"));
    let _shown = monitor.show_queue("Certificate", &queue);
    let secrets = Index::<Option<Held>>::default();
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<Secret>::namespaced(hub.clone(), NAMESPACE),
        watcher::Config::default().labels(CLUSTER_LABEL),
        |secret| Held::read(&secret.metadata.annotations.unwrap_or_default()),
        secrets.clone(),
        move |key| changed.add(key.clone()),
        seed.child("secrets"),
    ));
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<ForeignCluster>::all(hub.clone()),
        watcher::Config::default(),
        |cluster| cluster.spec.outgoing.is_some(),
        Index::default(),
        move |key| changed.add(Key::new(NAMESPACE, &key.name)),
        seed.child("foreignclusters"),
    ));
    tasks.spawn(forget_keys(hub.clone(), clock.clone(), seed.child("keys"), term.clone()));
    let recorder = Recorder::new(hub.clone(), clock.clone(), "portolan.dev/tenancy");
    let refused = Mutex::default();
    let renewal =
        Renewal { hub, credentials, secrets, clock: clock.clone(), recorder, term, new_key, refused };
    supervise(tasks, work(&queue, 2, &clock, |key| renewal.reconcile(key))).await;
}

/// Whether something holds, and why.
type Found = (bool, Reason, String);

struct Renewal {
    hub: Client,
    credentials: Arc<Credentials>,
    secrets: Index<Option<Held>>,
    clock: Clock,
    recorder: Recorder,
    term: Term,
    new_key: NewKey,
    /// The certificates for which a provider that has ended the peering was asked, and when it last was.
    refused: Mutex<BTreeMap<Key, (CertificateFacts, Instant)>>,
}

impl Renewal {
    async fn reconcile(&self, key: Key) -> Result<Action, RenewError> {
        let clusters: Api<ForeignCluster> = Api::all(self.hub.clone());
        let what = format!("read ForeignCluster {}", key.name);
        let Some(cluster) = call(what, clusters.get_opt(&key.name)).await? else {
            self.refused().remove(&key);
            return Ok(Action::AwaitChange);
        };
        if !self.secrets.synced() {
            return Ok(Action::RequeueAfter(SYNCS));
        }
        let facts = match self.secrets.get(&key).and_then(|held| held.as_ref().clone()) {
            Some(Held::Certificate(facts)) => facts,
            Some(Held::Token { user, facts }) => return self.by_token(&cluster, &user, &facts).await,
            None => {
                self.tell_missing(&key, &cluster).await?;
                return Ok(Action::AwaitChange);
            }
        };
        let left = Duration::try_from(facts.renew.duration_since(self.clock.now())).unwrap_or_default();
        if !left.is_zero() {
            let message = format!("its certificate for user {} is valid until {}", facts.user, facts.expires);
            let found = (true, Reason::CertificateIssued, message);
            let outgoing = self.outgoing(&cluster, &facts.user).await;
            self.tell(&cluster, found, outgoing).await?;
            return Ok(Action::RequeueAfter(left.min(STANDING)));
        }
        if cluster.metadata.deletion_timestamp.is_some() {
            return Ok(Action::RequeueAfter(AGAIN));
        }
        if let Some(wait) = self.is_refused(&key, &facts) {
            return Ok(Action::RequeueAfter(wait));
        }
        match Box::pin(self.renew(&key, &cluster, &facts)).await {
            Ok(fresh) => {
                tracing::info!(cluster = key.name, until = %fresh.expires, "a certificate is renewed")
            }
            Err(error) => {
                let problem = foreign_text(&chain(&error));
                let note = format!("the certificate ends at {} and is not renewed: {problem}", facts.expires);
                let valid = self.clock.now() < facts.expires;
                let found = (valid, Reason::CertificateRenewalFailed, note.clone());
                let outgoing =
                    if valid { self.outgoing(&cluster, &facts.user).await } else { Some(found.clone()) };
                let is_ended = outgoing.as_ref().is_some_and(|(holds, ..)| !holds);
                self.tell(&cluster, found, outgoing).await?;
                let reason = Reason::CertificateRenewalFailed;
                self.recorder.record(&cluster, EventType::Warning, reason, &note).await;
                if !is_ended {
                    return Err(error);
                }
                self.refused().insert(key, (facts, Instant::now()));
                return Ok(Action::RequeueAfter(STANDING));
            }
        }
        Ok(Action::RequeueAfter(AGAIN))
    }

    /// How long to leave a provider alone that has ended the peering, or whose certificate is over: only a new invitation
    /// helps, and that brings another certificate.
    fn is_refused(&self, key: &Key, facts: &CertificateFacts) -> Option<Duration> {
        let mut refused = self.refused();
        let (of, asked) = refused.get(key)?;
        let left = STANDING.saturating_sub(asked.elapsed());
        if of == facts && !left.is_zero() {
            return Some(left);
        }
        refused.remove(key);
        None
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<Key, (CertificateFacts, Instant)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells how it stands with a provider that has given a token.
    async fn by_token(
        &self,
        cluster: &ForeignCluster,
        user: &str,
        facts: &TokenFacts,
    ) -> Result<Action, RenewError> {
        let (now, until) = (self.clock.now(), facts.expires);
        let valid = now < until;
        let is_late = now.duration_since(facts.renew) > LATE;
        let (reason, message) = if is_late {
            let message = format!(
                "its token for user {user} ends at {until} and is not renewed: the events of this ForeignCluster say why"
            );
            (Reason::TokenRenewalFailed, message)
        } else {
            (Reason::TokenIssued, format!("its token for user {user} is valid until {until}"))
        };
        let found = (valid, reason, message);
        let outgoing = if valid { self.outgoing(cluster, user).await } else { Some(found.clone()) };
        self.tell(cluster, found, outgoing).await?;
        Ok(Action::RequeueAfter(STANDING))
    }

    /// Somebody has deleted the credential of a provider, or has put something else there.
    async fn tell_missing(&self, key: &Key, cluster: &ForeignCluster) -> Result<(), CallError> {
        if cluster.spec.outgoing.is_none() || cluster.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let message = format!(
            "Secret {key} with the credential of this cluster does not exist, or holds none: end the peering by `portolan \
             unpeer {}` here and in the provider, and peer again with a new invitation",
            key.name
        );
        let found = (false, Reason::CredentialNotFound, message);
        self.tell(cluster, found.clone(), Some(found)).await
    }

    /// What the provider says of this cluster; nothing if it does not answer.
    async fn outgoing(&self, cluster: &ForeignCluster, user: &str) -> Option<Found> {
        let outgoing = cluster.spec.outgoing.as_ref()?;
        let asked = async {
            let provider = self.credentials.connect_apart(cluster).await?;
            standing(provider, outgoing, user).await
        };
        let namespace = &outgoing.tenant_namespace;
        match asked.await {
            Ok(Standing::Tenant) => {
                Some((true, Reason::PeeringEstablished, format!("this cluster is tenant {namespace} there")))
            }
            Ok(Standing::Ended(why)) => {
                let why = foreign_text(&why);
                let message = format!(
                    "the provider has no tenant {namespace} of user {user} any more: {why}; `portolan unpeer` here, then peer \
                     with a new invitation"
                );
                Some((false, Reason::PeeringRevoked, message))
            }
            Err(error) => {
                tracing::debug!(error = %chain(&error), "a provider does not say whether this cluster is its tenant");
                None
            }
        }
    }

    async fn renew(
        &self,
        key: &Key,
        cluster: &ForeignCluster,
        facts: &CertificateFacts,
    ) -> Result<CertificateFacts, RenewError> {
        let tenant = Tenant::of_user(&facts.user).ok_or_else(|| RenewError::NoTenant(facts.user.clone()))?;
        let wrong = |why: String| TenancyError::Key { what: "key", why };
        let pair = (self.new_key)().map_err(|error| wrong(error.to_string()))?;
        // A client of its own: the connection that is open goes on until the Secret has the new certificate.
        let provider = self.credentials.connect_apart(cluster).await?;
        let wanted = request(&tenant.renewal(), &tenant, &pair, facts.lifetime, &key.name)?;
        ask(&provider, &wanted).await?;
        let certificate = signed(&provider, &wanted).await?;
        let fresh = CertificateFacts::of(&certificate, &facts.user, &pair, facts.lifetime).map_err(wrong)?;
        self.write(key, &fresh, certificate_user(&certificate, &pair.serialize_pem())).await?;
        Ok(fresh)
    }

    async fn write(&self, key: &Key, fresh: &CertificateFacts, user: Value) -> Result<(), RenewError> {
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), &key.namespace);
        let secret = call(format!("read Secret {key}"), secrets.get(&key.name)).await?;
        let text = secret.data.and_then(|mut data| data.remove(SECRET_KEY)).unwrap_or_default();
        let mut kubeconfig: Value = serde_json::from_slice(&text.0)
            .map_err(|source| PeerError::Encode { what: "the kubeconfig", source })?;
        kubeconfig["users"][0]["user"] = user;
        let patch = json!({
            "metadata": {
                "resourceVersion": secret.metadata.resource_version, "annotations": fresh.annotations(),
            },
            "data": { SECRET_KEY: BASE64_STANDARD.encode(kubeconfig.to_string()) },
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("write the new certificate into Secret {key}");
        self.term.call(what, secrets.patch(&key.name, &params, &Patch::Merge(patch))).await?;
        Ok(())
    }

    async fn tell(
        &self,
        cluster: &ForeignCluster,
        (holds, reason, message): Found,
        outgoing: Option<Found>,
    ) -> Result<(), CallError> {
        let mut status = cluster.status.clone().unwrap_or_default();
        let (generation, now) = (cluster.metadata.generation, self.clock.time().0);
        let authenticated = Finding::new(ConditionType::Authenticated, holds, reason, message);
        let mut changed = conditions::set(&mut status.conditions, authenticated, generation, now);
        if let Some((holds, reason, message)) = outgoing.filter(|_| cluster.spec.outgoing.is_some()) {
            let mut types = vec![ConditionType::OutgoingPeering];
            if !cluster.spec.is_member() {
                types.insert(0, ConditionType::Ready);
            }
            for type_ in types {
                let finding = Finding::new(type_, holds, reason, message.clone());
                changed |= conditions::set(&mut status.conditions, finding, generation, now);
            }
        }
        if !changed {
            return Ok(());
        }
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let api: Api<ForeignCluster> = Api::all(self.hub.clone());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let update = ForeignCluster { status: Some(status), ..cluster.clone() };
        let what = format!("write status of ForeignCluster {name}");
        gone(self.term.call(what, api.replace_status(&name, &params, &update)).await)
    }
}

/// Makes a request. There is one name for it, and one that is there stays as it is, whoever has made it: the last one, that of a
/// copy of this hub, or one of ours that was on its way for long. So another one is deleted, as it was read, and ours made.
async fn ask(provider: &Client, wanted: &CertificateSigningRequest) -> Result<(), RenewError> {
    let api: Api<CertificateSigningRequest> = Api::all(provider.clone());
    let name = wanted.metadata.name.clone().unwrap_or_default();
    for _ in 0..TRIES {
        let found = send(provider, wanted).await?;
        if is_same_key(&found, wanted) {
            return Ok(());
        }
        let what = format!("delete CertificateSigningRequest {name} of another key in the provider");
        match gone(call(what, api.delete(&name, &if_same(&found.metadata))).await) {
            Err(error) if !error.is_conflict() => return Err(error.into()),
            // Another one has taken its place already.
            _ => {}
        }
    }
    Err(RenewError::OtherKey(name))
}

/// Waits until our request is signed, and not one that has taken its place.
async fn signed(provider: &Client, wanted: &CertificateSigningRequest) -> Result<String, RenewError> {
    let api: Api<CertificateSigningRequest> = Api::all(provider.clone());
    let name = wanted.metadata.name.clone().unwrap_or_default();
    let started = Instant::now();
    loop {
        let what = format!("read CertificateSigningRequest {name} in the provider");
        let found = call(what, api.get(&name)).await?;
        if !is_same_key(&found, wanted) {
            return Err(RenewError::OtherKey(name));
        }
        match answer(&found) {
            Answer::Issued(certificate) => return Ok(certificate),
            Answer::Refused(why) => return Err(RenewError::Refused(foreign_text(&why))),
            Answer::None if started.elapsed() >= SIGNED_WITHIN => return Err(RenewError::NoController),
            Answer::Approved if started.elapsed() >= SIGNED_WITHIN => return Err(RenewError::NoSigner),
            Answer::None | Answer::Approved => tokio::time::sleep(POLL).await,
        }
    }
}
