//! How an object in a member tells whose it is.

use crate::copies::ObjectVersion;
use crate::names::{DIGEST_ANNOTATION, EPOCH_ANNOTATION, OWNER_ANNOTATION, WORKLOAD_LABEL};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use portolan_runtime::Key;

/// What the metadata of an object in a member says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyMeta {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
    /// The generation of its spec; 0 for kinds that do not count their changes.
    pub generation: i64,
    /// The uid of the object in the hub that it belongs to, if it is ours.
    pub workload: Option<String>,
    /// The object in the hub that it belongs to, if it is ours.
    pub owner: Option<Key>,
    /// The digest of what was applied.
    pub digest: Option<String>,
    /// The epoch of the leader that last applied it.
    pub epoch: Option<i64>,
    /// Whether somebody took away the label that says whose it is, and the owner that it names has its very name.
    pub unlabelled: bool,
}

/// Whether a number can be the epoch of a leader: the Lease counts in 32 bits. Any other is nobody's.
pub(crate) fn is_epoch(number: &i64) -> bool {
    (0..=i64::from(i32::MAX)).contains(number)
}

impl CopyMeta {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name).cloned());
        let owner = annotation(OWNER_ANNOTATION)
            .and_then(|owner| owner.split_once('/').map(|(namespace, name)| Key::new(namespace, name)));
        let workload = meta.labels.as_ref().and_then(|labels| labels.get(WORKLOAD_LABEL).cloned());
        let itself =
            Key::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        let unlabelled = workload.is_none() && owner.as_ref() == Some(&itself);
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            // Without the label it is not as it was applied, whatever else it says.
            digest: annotation(DIGEST_ANNOTATION).filter(|_| workload.is_some()),
            workload,
            owner,
            unlabelled,
            epoch: annotation(EPOCH_ANNOTATION).and_then(|epoch| epoch.parse().ok()).filter(is_epoch),
        }
    }

    /// Which object this is, and which state of it.
    #[must_use]
    pub fn object_version(&self) -> ObjectVersion<'_> {
        ObjectVersion { uid: &self.uid, version: &self.version }
    }

    /// Whether it belongs to the object of this uid. A copy that lost its label still does, by its name and its owner.
    #[must_use]
    pub fn is_of(&self, uid: &str) -> bool {
        self.unlabelled || self.workload.as_deref() == Some(uid)
    }

    /// Whether it belongs to nothing in the hub, where the object of its name has this uid, if there is one.
    #[must_use]
    pub fn is_stray(&self, uid: Option<&str>) -> bool {
        match uid {
            Some(uid) => self.workload.as_deref().is_some_and(|workload| workload != uid),
            None => self.unlabelled || self.workload.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn mark(labels: Value, owner: &str) -> CopyMeta {
        let meta = json!({
            "name": "web", "namespace": "shop", "labels": labels,
            "annotations": {OWNER_ANNOTATION: owner, DIGEST_ANNOTATION: "d", EPOCH_ANNOTATION: "9223372036854775807"},
        });
        CopyMeta::of(&serde_json::from_value(meta).unwrap())
    }

    #[test]
    fn a_copy_that_lost_its_label_is_still_ours_and_to_be_applied_again() {
        let ours = mark(json!({WORKLOAD_LABEL: "u1"}), "shop/web");
        assert!(ours.is_of("u1") && !ours.is_stray(Some("u1")) && ours.digest.is_some());
        assert!(ours.is_stray(Some("u2")) && ours.is_stray(None));
        let lost = mark(json!({}), "shop/web");
        assert!(lost.is_of("u1") && !lost.is_stray(Some("u1")), "never deleted for a label");
        assert_eq!(lost.digest, None, "it is not as it was applied");
        assert!(lost.is_stray(None), "its owner is gone");
        let other = mark(json!({}), "shop/other");
        assert!(!other.is_of("u1") && !other.is_stray(Some("u1")) && !other.is_stray(None));
    }

    #[test]
    fn an_epoch_that_no_lease_can_hold_is_not_read() {
        assert_eq!(mark(json!({}), "shop/web").epoch, None);
    }
}
