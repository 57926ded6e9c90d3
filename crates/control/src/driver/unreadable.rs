//! Objects of the hub that exist and cannot be read.

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use portolan_api::Reason;
use portolan_runtime::{EventType, Index, Key, Recorder};
use std::marker::PhantomData;

/// Whether an object that was not found exists all the same. If it cannot be read, its user is told; either way its copies
/// stay as they are.
pub(crate) async fn is_unreadable<K, T>(index: &Index<T>, key: &Key, recorder: &Recorder) -> bool
where
    K: Resource<DynamicType = ()>,
{
    let Some(unreadable) = index.health().unreadable(key) else {
        // It may have become readable since it was looked for: then another look was asked for.
        return index.get(key).is_some();
    };
    let metadata = ObjectMeta {
        name: Some(key.name.clone()),
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        uid: unreadable.uid,
        ..ObjectMeta::default()
    };
    let object = PartialObjectMeta::<K> { types: None, metadata, _phantom: PhantomData };
    let note =
        format!("it cannot be read, and nothing is done about it until it is mended: {}", unreadable.problem);
    recorder.record(&object, EventType::Warning, Reason::Invalid, &note).await;
    true
}
