//! Objects that users declare in the hub, and the finalizer that keeps them until their copies are gone.

use crate::copy::{Kind, set_finalizers};
use crate::names::FINALIZER;
use kube::Client;
use portolan_runtime::{CallError, Term};

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
