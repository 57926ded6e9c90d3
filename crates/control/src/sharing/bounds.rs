//! What is bounded in the namespaces of tenants beside what pods request: numbers of objects, storage, load balancers. Pure.

use super::words::{OF_EACH_STORAGE_CLASS, OF_STORAGE_CLASS, about_pods};
use crate::names::{PRIORITY_CLASSES_ANNOTATION, STORAGE_CLASSES_ANNOTATION};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use portolan_api::placement::Resources;
use portolan_api::sharing::SharingClassSpec;
use serde_json::{Value, json};

/// What holds in each namespace where no class says otherwise: enough for large applications, and too little to fill the
/// store of an API server. Revisions of Deployments are ReplicaSets.
const DEFAULTS: &[(&str, &str)] = &[
    ("count/configmaps", "200"),
    ("count/deployments.apps", "200"),
    ("count/jobs.batch", "500"),
    ("count/replicasets.apps", "2500"),
    ("count/secrets", "200"),
    ("count/services", "100"),
    ("persistentvolumeclaims", "20"),
    ("requests.storage", "100Gi"),
    ("services.loadbalancers", "0"),
    ("services.nodeports", "0"),
];

/// What a quota bounds in a namespace beside the offer. Of storage classes that are not offered there is nothing.
pub(super) fn bounds<'a>(class: &SharingClassSpec, storage: impl Iterator<Item = &'a str>) -> Resources {
    let mut bounds: Resources =
        DEFAULTS.iter().map(|(word, amount)| ((*word).to_owned(), Quantity((*amount).to_owned()))).collect();
    for name in storage.filter(|name| !is_offered(class, name)) {
        for word in OF_EACH_STORAGE_CLASS {
            bounds.insert(format!("{name}{OF_STORAGE_CLASS}{word}"), Quantity("0".to_owned()));
        }
    }
    bounds.extend(class.quota.clone());
    bounds
}

/// Whether a storage class of the cluster is offered.
pub(super) fn is_offered(class: &SharingClassSpec, storage_class: &str) -> bool {
    class.storage_classes.is_empty() || class.storage_classes.iter().any(|name| name == storage_class)
}

/// A word in the quota of a class that is not for a class to say.
pub(super) fn refused_word(class: &SharingClassSpec) -> Option<&str> {
    let fine = |word: &str| {
        let begins = ["count/", "limits.", "services."].iter().any(|begin| word.starts_with(begin));
        begins || word.contains(OF_STORAGE_CLASS) || OF_EACH_STORAGE_CLASS.contains(&word)
    };
    class.quota.keys().map(String::as_str).find(|word| about_pods(word).is_some() || !fine(word))
}

/// What the admission policy of tenants reads on their namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowances {
    priority_classes: Option<String>,
    storage_classes: Option<String>,
}

impl Allowances {
    /// Those that a namespace has.
    pub(super) fn of(namespace: &Namespace) -> Self {
        let annotations = namespace.metadata.annotations.as_ref();
        let read = |name: &str| annotations.and_then(|all| all.get(name).cloned());
        Self {
            priority_classes: read(PRIORITY_CLASSES_ANNOTATION),
            storage_classes: read(STORAGE_CLASSES_ANNOTATION),
        }
    }

    /// Those that a class gives, with the storage classes of the cluster.
    pub(super) fn given<'a>(class: &SharingClassSpec, storage: impl Iterator<Item = &'a str>) -> Self {
        let list = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(","));
        Self {
            priority_classes: list(class.priority_classes.iter().map(String::as_str).collect()),
            storage_classes: list(storage.filter(|name| is_offered(class, name)).collect()),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As annotations; those that are not given are removed.
    pub(super) fn annotations(&self) -> Value {
        json!({
            PRIORITY_CLASSES_ANNOTATION: self.priority_classes,
            STORAGE_CLASSES_ANNOTATION: self.storage_classes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(spec: Value) -> SharingClassSpec {
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn what_is_not_offered_is_none_and_a_class_goes_before_the_defaults() {
        let gold = class(
            json!({"storageClasses": ["fast"], "quota": {"count/secrets": 5, "services.loadbalancers": 1}}),
        );
        let bounds = bounds(&gold, ["fast", "slow"].into_iter());
        let of = |word: &str| bounds.get(word).map(|quantity| quantity.0.as_str());
        assert_eq!(of("slow.storageclass.storage.k8s.io/requests.storage"), Some("0"));
        assert_eq!(of("slow.storageclass.storage.k8s.io/persistentvolumeclaims"), Some("0"));
        assert_eq!(of("fast.storageclass.storage.k8s.io/requests.storage"), None);
        assert_eq!((of("count/secrets"), of("count/configmaps")), (Some("5"), Some("200")));
        assert_eq!((of("services.loadbalancers"), of("services.nodeports")), (Some("1"), Some("0")));
        let allowances = Allowances::given(&gold, ["fast", "slow"].into_iter());
        assert_eq!(allowances.annotations()[STORAGE_CLASSES_ANNOTATION], "fast");
        assert_eq!(allowances.annotations()[PRIORITY_CLASSES_ANNOTATION], Value::Null);
    }

    #[test]
    fn a_class_bounds_nothing_that_is_offered() {
        for (word, is_refused) in [
            ("pods", true),
            ("requests.cpu", true),
            ("requests.nvidia.com/gpu", true),
            ("cpu", true),
            ("secrets", true),
            ("requests.storage", false),
            ("fast.storageclass.storage.k8s.io/requests.storage", false),
            ("limits.memory", false),
            ("count/ingresses.networking.k8s.io", false),
        ] {
            let class = class(json!({"quota": {word: "1"}}));
            assert_eq!(refused_word(&class).is_some(), is_refused, "{word}");
        }
        assert!(bounds(&class(json!({})), std::iter::empty()).keys().all(|word| about_pods(word).is_none()));
    }
}
