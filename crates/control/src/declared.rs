//! Objects that users declare in the hub, and the finalizer that keeps them until their copies are gone.

use crate::copy::{Kind, set_finalizers};
use crate::names::FINALIZER;
use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::Reason;
use portolan_api::conditions::{ConditionType, Finding};
use portolan_runtime::{CallError, Change, Index, Key, Queue, Recorder, Seed, Term, Weight, follow_with};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

/// Without waiting.
pub(crate) const AT_ONCE: (Duration, Duration) = (Duration::ZERO, Duration::ZERO);

/// Keeps the objects of a kind known, for ever. Who counts on them is told of a change first, then it is indexed, and
/// then what changed is looked at, after as long as was answered: if nothing else is due, and at the latest.
pub(crate) fn watch<K, T>(
    hub: &Client,
    project: impl Fn(K) -> T + Send + 'static,
    index: &Index<T>,
    queue: &Queue<Key>,
    first: impl Fn(&Change<T>) -> (Duration, Duration) + Send + 'static,
    changed: impl Fn(&Key) + Send + 'static,
    seed: Seed,
) -> impl Future<Output = ()> + Send + 'static
where
    K: Kind + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let (index, queue, health) = (index.clone(), queue.clone(), index.health().clone());
    let take = move |change| {
        let (wait, at_last) = first(&change);
        let is_listed = matches!(change, Change::Listed(_));
        for key in index.take(change) {
            changed(&key);
            queue.add_within(key, wait, at_last);
        }
        if is_listed {
            index.health().all_unreadable().into_iter().for_each(|(key, _)| queue.add(key));
        }
    };
    follow_with(Api::<K>::all(hub.clone()), watcher::Config::default(), project, take, seed, health)
}

/// Whether an object that was not found is there all the same. If it cannot be read, its user is told; either way its
/// copies stay as they are.
pub(crate) async fn is_unreadable<K: Kind, T>(index: &Index<T>, key: &Key, recorder: &Recorder) -> bool {
    let Some(unreadable) = index.health().unreadable(key) else {
        // It may have become readable since it was looked for: whoever took it has asked for another look.
        return index.get(key).is_some();
    };
    let metadata = ObjectMeta {
        name: Some(key.name.clone()),
        namespace: Some(key.namespace.clone()),
        uid: unreadable.uid,
        ..ObjectMeta::default()
    };
    let object = PartialObjectMeta::<K> { types: None, metadata, _phantom: PhantomData };
    let note =
        format!("it cannot be read, and nothing is done about it until it is mended: {}", unreadable.problem);
    recorder.record(&object, Weight::Warning, Reason::Invalid, &note).await;
    true
}

/// What is told of a deletion that members hold up.
pub(crate) fn awaiting(away: &[String], copy: &str) -> Finding {
    let message = format!(
        "deletion waits for {}, which cannot be reached: its {copy} goes when it returns, or with its ForeignCluster",
        away.join(", ")
    );
    Finding::new(ConditionType::Ready, false, Reason::AwaitingMember, message)
}

/// What is told of a deletion that members hold up: those that cannot be reached, and those that refuse.
pub(crate) fn held_up(away: &[String], failing: &BTreeMap<String, String>, copy: &str) -> Finding {
    if failing.is_empty() {
        return awaiting(away, copy);
    }
    const TOLD_AT_MOST: usize = 8;
    let told = failing.iter().take(TOLD_AT_MOST).map(|(cluster, why)| format!("{cluster}: {why}"));
    let told = told.collect::<Vec<_>>().join("; ");
    let more = failing.len().saturating_sub(TOLD_AT_MOST) + away.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message = format!("deletion waits for clusters that do not delete their {copy}: {told}{more}");
    Finding::new(ConditionType::Ready, false, Reason::DeletionFailed, message)
}

/// Whether our finalizer is on the object.
pub(crate) fn is_kept<K: Kind>(object: &K) -> bool {
    object.meta().finalizers.iter().flatten().any(|each| each == FINALIZER)
}

/// Puts our finalizer on the object.
pub(crate) async fn keep<K: Kind>(term: &Term, hub: &Client, object: &K) -> Result<(), CallError> {
    let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
    finalizers.push(FINALIZER.to_owned());
    set_finalizers(term, hub, object, &finalizers).await
}

/// Takes our finalizer off the object.
pub(crate) async fn let_go<K: Kind>(term: &Term, hub: &Client, object: &K) -> Result<(), CallError> {
    let finalizers = object.meta().finalizers.clone().unwrap_or_default();
    let kept: Vec<String> = finalizers.into_iter().filter(|each| each != FINALIZER).collect();
    set_finalizers(term, hub, object, &kept).await
}
