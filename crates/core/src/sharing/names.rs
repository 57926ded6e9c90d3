//! Which resources can be shared.

use crate::capacity::{CPU, MEMORY, PODS};
use portolan_api::words::is_label;

/// What of Kubernetes' own resources pods request on nodes.
const OWN: [&str; 4] = [CPU, MEMORY, PODS, "ephemeral-storage"];

/// Whether a resource can be shared: pods request it, and a ResourceQuota takes it. One word that a quota does not take makes
/// API servers refuse all of it.
#[must_use]
pub fn is_shareable(name: &str) -> bool {
    let is_extended = name.contains('/') && !name.contains("kubernetes.io/") && is_label(name, "");
    OWN.contains(&name) || is_extended || name.strip_prefix("hugepages-").is_some_and(|size| !size.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pods_request_can_be_shared_and_no_other_word_of_quotas() {
        for name in
            ["cpu", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "example.com/a_b.C"]
        {
            assert!(is_shareable(name), "{name}");
        }
        for name in [
            "gpu",
            "services",
            "limits.cpu",
            "requests.cpu",
            "storage",
            "hugepages-",
            "/gpu",
            "a/b/c",
            "kubernetes.io/x",
        ] {
            assert!(!is_shareable(name), "{name}");
        }
    }
}
