//! What a member is to hold of a workload.

use super::{Placement, Workload};
use crate::copies::{Desired, Ownership, digest, insert, insert_template_hash, propagated_annotations};
use crate::driver::Declared;
use crate::names::{ADOPTED_TEMPLATE_ANNOTATION, WORKLOAD_LABEL};
use portolan_api::MultiClusterDeployment;
use portolan_runtime::Key;
use serde_json::{Value, json};
use std::sync::PoisonError;

impl Placement {
    /// What a member is to hold of a workload, applied in this leader's name.
    pub(super) fn desired(&self, workload: &Workload, replicas: u32) -> Desired {
        let (object, digest) = self.deployment(workload, replicas);
        Desired { object, digest, template: self.template(workload) }
    }

    /// The digest of what a member is to hold, computed once.
    pub(super) fn digest(&self, workload: &Workload, replicas: u32) -> String {
        let digest = || self.deployment(workload, replicas).1;
        let mut digests = workload.digests.lock().unwrap_or_else(PoisonError::into_inner);
        digests.entry(replicas).or_insert_with(digest).clone()
    }

    fn deployment(&self, workload: &Workload, replicas: u32) -> (Value, String) {
        let (hub, epoch) = (&self.base.context.hub.id, self.base.context.term.epoch());
        deployment(&workload.object, workload.uid(), hub, epoch, replicas)
    }

    /// The digest of what members are to hold, whatever the number of replicas.
    pub(super) fn template(&self, workload: &Workload) -> String {
        self.digest(workload, 1)
    }
}

/// Builds the Deployment for one member, and its digest: the workload's own fields as they were written, marked as ours.
pub(super) fn deployment(
    workload: &MultiClusterDeployment,
    uid: &str,
    hub: &str,
    epoch: Option<i64>,
    replicas: u32,
) -> (Value, String) {
    let meta = &workload.metadata;
    let (namespace, name) =
        (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    let spec = &workload.spec;
    let mut template = spec.template.0.clone();
    if !is_unlabelled(workload) {
        insert(&mut template, &["metadata", "labels"], WORKLOAD_LABEL, json!(uid));
        insert_template_hash(&mut template, &spec.template);
    }
    let mut deployment = json!({ "replicas": replicas, "selector": spec.selector, "template": template });
    let optional = [
        ("strategy", spec.strategy.as_ref().map(|strategy| strategy.0.clone())),
        ("minReadySeconds", spec.min_ready_seconds.map(Value::from)),
        ("revisionHistoryLimit", spec.revision_history_limit.map(Value::from)),
        ("progressDeadlineSeconds", spec.progress_deadline_seconds.map(Value::from)),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            deployment[field] = value;
        }
    }
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": meta.labels.clone().unwrap_or_default(),
            "annotations": propagated_annotations(meta),
        },
        "spec": deployment,
    });
    let ownership = Ownership { hub, workload: uid, owner: &Key::new(namespace, name), epoch };
    let applied = ownership.mark(&mut object);
    (object, applied)
}

/// Whether the pods of a workload carry no labels of ours: its Deployment was adopted from nobody, and has still the same
/// template.
pub(super) fn is_unlabelled(workload: &MultiClusterDeployment) -> bool {
    let annotations = workload.metadata.annotations.as_ref();
    let adopted = annotations.and_then(|all| all.get(ADOPTED_TEMPLATE_ANNOTATION));
    adopted.is_some_and(|adopted| *adopted == digest(&workload.spec.template.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{EPOCH_ANNOTATION, HUB_LABEL, OWNER_ANNOTATION};
    use portolan_core::capacity::TemplateHash;

    const HASH: &str = "ac5234a0eecb6b1b";

    fn workload(replicas: u32) -> MultiClusterDeployment {
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "MultiClusterDeployment",
            "metadata": {"name": "app", "namespace": "shop", "uid": "u1", "labels": {"team": "a"},
                "annotations": {"contact": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}",
                    "deployment.kubernetes.io/revision": "4", "portolan.dev/needed-by": "x"}},
            "spec": {
                "locations": ["a"],
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "x"}},
                "minReadySeconds": 3,
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}], "fieldOfTomorrow": true},
                },
            },
        }))
        .unwrap()
    }

    #[test]
    fn carries_the_template_as_written_and_marks_it_as_ours() {
        let object = deployment(&workload(2), "u1", "hub1", Some(7), 2).0;
        assert_eq!(object["spec"]["template"]["spec"]["fieldOfTomorrow"], true);
        assert_eq!(
            object["spec"]["template"]["metadata"]["labels"],
            json!({"app": "x", WORKLOAD_LABEL: "u1", TemplateHash::LABEL: HASH})
        );
        assert_eq!(object["spec"]["minReadySeconds"], 3);
        assert_eq!(
            object["metadata"]["labels"],
            json!({"team": "a", WORKLOAD_LABEL: "u1", HUB_LABEL: "hub1"})
        );
        assert_eq!(object["metadata"]["annotations"][OWNER_ANNOTATION], "shop/app");
        assert_eq!(object["metadata"]["annotations"][EPOCH_ANNOTATION], "7");
        assert_eq!(object["metadata"]["annotations"]["contact"], "a");
        for own in [
            "kubectl.kubernetes.io/last-applied-configuration",
            "deployment.kubernetes.io/revision",
            "portolan.dev/needed-by",
        ] {
            assert!(object["metadata"]["annotations"].get(own).is_none(), "{own}");
        }
        assert!(object["spec"].get("strategy").is_none(), "what the user leaves open stays open");
    }

    #[test]
    fn the_digest_tells_what_differs() {
        let of = |epoch, replicas| deployment(&workload(replicas), "u1", "hub1", epoch, replicas).1;
        assert_eq!(of(None, 2), of(Some(2), 2), "another leader applies the same");
        assert_ne!(of(None, 2), of(None, 3));
    }

    #[test]
    fn pods_say_which_template_made_them_as_far_as_room_is_concerned() {
        let hash = |workload: &MultiClusterDeployment, epoch, replicas| {
            let object = deployment(workload, "u1", "hub1", epoch, replicas).0;
            object["spec"]["template"]["metadata"]["labels"][TemplateHash::LABEL].clone()
        };
        let first = workload(2);
        assert_eq!(hash(&first, None, 2), HASH);
        assert_eq!(hash(&first, Some(9), 5), HASH, "neither replicas nor leaders change it");
        let mut image = workload(2);
        image.spec.template.0["spec"]["containers"][0]["image"] = json!("j");
        assert_eq!(hash(&image, None, 2), HASH, "another image takes the same room");
        let mut larger = workload(2);
        larger.spec.template.0["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        assert_ne!(hash(&larger, None, 2), HASH);
        let mut forged = workload(2);
        forged.spec.template.0["metadata"]["labels"][TemplateHash::LABEL] = json!("mine");
        assert_eq!(hash(&forged, None, 2), HASH, "what users write there does not count");
    }

    #[test]
    fn a_template_that_is_no_object_does_no_harm() {
        let mut odd = workload(1);
        odd.spec.template.0 = json!({"metadata": "text"});
        assert_eq!(
            deployment(&odd, "u1", "h", None, 1).0["spec"]["template"]["metadata"]["labels"][WORKLOAD_LABEL],
            "u1"
        );
    }
}
