//! How an object in a member tells whose it is.

use crate::copy::Sight;
use crate::names::{DIGEST_ANNOTATION, EPOCH_ANNOTATION, OWNER_ANNOTATION, WORKLOAD_LABEL};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use portolan_runtime::Key;

/// What the metadata of an object in a member says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
    /// The uid of the object in the hub that it belongs to, if it is ours.
    pub workload: Option<String>,
    /// The object in the hub that it belongs to, if it is ours.
    pub owner: Option<Key>,
    /// The digest of what was applied.
    pub digest: Option<String>,
    /// The epoch of the leader that last applied it.
    pub epoch: Option<i64>,
}

/// Whether a number can be the epoch of a leader: the Lease counts in 32 bits. Any other is nobody's.
pub(crate) fn is_epoch(number: &i64) -> bool {
    (0..=i64::from(i32::MAX)).contains(number)
}

impl Mark {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name).cloned());
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            workload: meta.labels.as_ref().and_then(|labels| labels.get(WORKLOAD_LABEL).cloned()),
            owner: annotation(OWNER_ANNOTATION)
                .and_then(|owner| owner.split_once('/').map(|(namespace, name)| Key::new(namespace, name))),
            digest: annotation(DIGEST_ANNOTATION),
            epoch: annotation(EPOCH_ANNOTATION).and_then(|epoch| epoch.parse().ok()).filter(is_epoch),
        }
    }

    /// Which object this is, and which state of it.
    #[must_use]
    pub fn sight(&self) -> Sight<'_> {
        Sight { uid: &self.uid, version: &self.version }
    }

    /// Whether it belongs to the object of this uid.
    #[must_use]
    pub fn is_of(&self, uid: &str) -> bool {
        self.workload.as_deref() == Some(uid)
    }
}
