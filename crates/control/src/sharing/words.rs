//! The words of a ResourceQuota.

use portolan_core::capacity::PODS;

/// What a quota calls what pods request of a resource.
pub(super) const REQUESTS: &str = "requests.";

/// What words about one storage class have in common.
pub(super) const OF_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// The words about a storage class.
pub(super) const OF_EACH_STORAGE_CLASS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// The resource that pods request which a word of a ResourceQuota is about, if it is about one.
pub(super) fn about_pods(word: &str) -> Option<&str> {
    match word {
        PODS => Some(PODS),
        _ if about_storage(word) => None,
        _ => word.strip_prefix(REQUESTS),
    }
}

/// Whether a word is about storage, and not about what pods request.
fn about_storage(word: &str) -> bool {
    OF_EACH_STORAGE_CLASS.contains(&word) || word.contains(OF_STORAGE_CLASS)
}
