//! The keys of invitations that a consumer has begun to use and never finished.

use super::gone::gone;
use super::provider::{signed, until};
use crate::names::INVITATION_LABEL;
use crate::peering::NAMESPACE;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_runtime::{Action, CallError, Clock, Index, Key, Queue, Seed, Term, feed, supervise, work};
use std::time::Duration;
use tokio::task::JoinSet;

/// On the Secret of a key: when its invitation ends.
pub(super) const KEY_EXPIRES: &str = "portolan.dev/invitation-expires-at";

/// How long after that the key is of use: clocks differ, and a provider waits for a consumer that was accepted in time.
const KEPT: Duration = Duration::from_secs(1800);

/// Deletes keys whose invitation is over, for the length of a term.
pub(super) async fn forget_keys(hub: Client, clock: Clock, seed: Seed, term: Term) {
    let queue = Queue::<Key>::new(seed.child("keys"));
    let keys = Index::<Option<Timestamp>>::default();
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<Secret>::namespaced(hub.clone(), NAMESPACE),
        watcher::Config::default().labels(INVITATION_LABEL),
        |secret| secret.metadata.annotations?.get(KEY_EXPIRES)?.parse().ok(),
        keys.clone(),
        move |key| changed.add(key.clone()),
        seed.child("secrets"),
    ));
    let forget = async |key: Key| -> Result<Action, CallError> {
        let Some(expires) = keys.get(&key).and_then(|expires| *expires) else {
            return Ok(Action::AwaitChange);
        };
        let (now, last) = (clock.now(), expires.saturating_add(signed(KEPT)).unwrap_or(expires));
        if now < last {
            return Ok(Action::RequeueAfter(until(last, now)));
        }
        let secrets: Api<Secret> = Api::namespaced(hub.clone(), &key.namespace);
        let what = format!("delete Secret {key} of an invitation that is over");
        gone(term.call(what, secrets.delete(&key.name, &DeleteParams::default())).await)?;
        Ok(Action::AwaitChange)
    };
    supervise(tasks, work(&queue, 1, &clock, forget)).await;
}
