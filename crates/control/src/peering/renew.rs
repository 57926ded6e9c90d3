//! New tokens before the old ones end.

use super::objects::{CLUSTER_LABEL, SECRET_KEY};
use super::peer::NAMESPACE;
use super::token::{TokenFacts, request_token};
use super::{PeerError, apply::PeerError::Encode};
use crate::fleet::{Connect, Credentials};
use crate::monitor::Monitor;
use crate::names::FIELD_MANAGER;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::Reason;
use portolan_runtime::{
    Action, Clock, EventType, Index, Key, Queue, Recorder, Seed, call, chain, feed, foreign_text, supervise,
    work,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often to look without news; clocks may be set.
const AT_LEAST: Duration = Duration::from_secs(3600);

/// How soon a member is asked for another token, whatever came of the last request.
const AGAIN: Duration = Duration::from_secs(60);

/// Keeps the credentials of members valid, for ever: asks a member for a new token when half of the old one's life is
/// over, and writes it into the Secret. Connections that are open take it from there.
pub async fn renew(hub: Client, credentials: Arc<Credentials>, clock: Clock, seed: Seed) {
    renew_with(hub, credentials, clock, seed, &Monitor::default()).await;
}

/// The same, seen by a monitor.
pub(super) async fn renew_with(
    hub: Client,
    credentials: Arc<Credentials>,
    clock: Clock,
    seed: Seed,
    monitor: &Monitor,
) {
    let queue = Queue::<Key>::new(seed.child("secrets"));
    let _shown = monitor.show_queue("Token", &queue);
    let secrets = Index::<Option<TokenFacts>>::default();
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<Secret>::namespaced(hub.clone(), NAMESPACE),
        watcher::Config::default().labels(CLUSTER_LABEL),
        |secret| TokenFacts::read(&secret.metadata.annotations.unwrap_or_default()),
        secrets.clone(),
        move |key| changed.add(key.clone()),
        seed.child("watch"),
    ));
    let recorder = Recorder::new(hub.clone(), clock.clone(), "portolan.dev/peering");
    let renewal =
        Renewal { hub, credentials, secrets, clock: clock.clone(), recorder, asked: Mutex::default() };
    supervise(tasks, work(&queue, 4, &clock, |key| renewal.reconcile(key))).await;
}

struct Renewal {
    hub: Client,
    credentials: Arc<Credentials>,
    secrets: Index<Option<TokenFacts>>,
    clock: Clock,
    recorder: Recorder,
    /// When the member of a Secret was last asked for a token.
    asked: Mutex<BTreeMap<Key, Instant>>,
}

impl Renewal {
    async fn reconcile(&self, key: Key) -> Result<Action, portolan_runtime::CallError> {
        let Some(facts) = self.secrets.get(&key) else {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            return Ok(Action::AwaitChange);
        };
        let Some(facts) = facts.as_ref() else { return Ok(Action::AwaitChange) };
        let left = facts.renew.duration_since(self.clock.now());
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Action::RequeueAfter(left.min(AT_LEAST)));
        }
        if let Some(wait) = self.is_too_soon(&key) {
            return Ok(Action::RequeueAfter(wait));
        }
        let clusters: Api<ForeignCluster> = Api::all(self.hub.clone());
        let what = format!("read ForeignCluster {}", key.name);
        let Some(cluster) = call(what, clusters.get_opt(&key.name)).await? else {
            return Ok(Action::AwaitChange);
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), Instant::now());
        match self.renew(&key, &cluster, facts).await {
            Ok(()) => Ok(Action::RequeueAfter(AGAIN)),
            Err(error) => {
                let problem = foreign_text(&chain(&error));
                tracing::warn!(cluster = key.name, problem, "a token is not renewed");
                let help = if cluster.spec.outgoing.is_some() {
                    "a new invitation makes another one"
                } else {
                    "`portolan peer` makes a new one"
                };
                let note =
                    format!("the token ends at {} and is not renewed: {problem}; {help}", facts.expires);
                self.recorder.record(&cluster, EventType::Warning, Reason::TokenRenewalFailed, &note).await;
                Ok(Action::RequeueAfter(AGAIN))
            }
        }
    }

    /// How long to wait until the member is asked again, if it was asked a moment ago: what it answers may be due at once.
    fn is_too_soon(&self, key: &Key) -> Option<Duration> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()?;
        let left = AGAIN.saturating_sub(asked.elapsed());
        (!left.is_zero()).then_some(left)
    }

    async fn renew(&self, key: &Key, cluster: &ForeignCluster, facts: &TokenFacts) -> Result<(), RenewError> {
        // A client of its own: the connection that is open keeps its token until the Secret has the new one.
        let member = self.credentials.connect_apart(cluster).await?;
        let (token, fresh) =
            request_token(&member, &facts.namespace, &facts.account, facts.lifetime, self.clock.now())
                .await?;
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), &key.namespace);
        let secret = call(format!("read Secret {key}"), secrets.get(&key.name)).await?;
        let data = secret.data.unwrap_or_default();
        let text = data.get(SECRET_KEY).map(|bytes| bytes.0.clone()).unwrap_or_default();
        let mut kubeconfig: Value =
            serde_json::from_slice(&text).map_err(|source| Encode { what: "the kubeconfig", source })?;
        kubeconfig["users"][0]["user"]["token"] = json!(token);
        let patch = json!({
            "metadata": {
                "resourceVersion": secret.metadata.resource_version,
                "annotations": fresh.annotations(),
            },
            "data": { SECRET_KEY: BASE64_STANDARD.encode(kubeconfig.to_string()) },
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("write the new token into Secret {key}");
        call(what, secrets.patch(&key.name, &params, &Patch::Merge(patch))).await?;
        tracing::info!(cluster = key.name, until = %fresh.expires, "a token is renewed");
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
enum RenewError {
    #[error(transparent)]
    Connect(#[from] crate::fleet::ConnectError),
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Call(#[from] portolan_runtime::CallError),
}
