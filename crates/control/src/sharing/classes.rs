//! What a ForeignCluster is given: by its own spec, its class, or the default class.

use super::bounds::refused_word;
use portolan_api::sharing::{PodSecurity, Sharing, SharingClassSpec, default_limits, default_requests};
use portolan_api::{ForeignCluster, Reason, SharingClass};
use portolan_core::capacity::Amounts;
use portolan_core::sharing::{Rule, is_shareable};
use std::sync::Arc;

/// What is shared with a consumer, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Terms {
    /// How much.
    pub(super) rule: Rule,
    /// Everything else: of the class, or as it is where no class says otherwise.
    pub(super) class: SharingClassSpec,
}

/// Why nothing, or nothing else than before, is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) reason: Reason,
    pub(super) message: String,
}

/// The class that holds for those that have no sharing of their own: the default that was created last.
pub(super) fn default_class(classes: &[Arc<SharingClass>]) -> Option<&Arc<SharingClass>> {
    let created = |class: &SharingClass| {
        (class.metadata.creation_timestamp.as_ref().map(|time| time.0), class.metadata.name.clone())
    };
    let defaults = classes.iter().filter(|class| class.spec.default);
    defaults.max_by_key(|class| created(class))
}

/// What is shared with a cluster.
pub(super) fn terms(
    cluster: &ForeignCluster,
    classes: &[Arc<SharingClass>],
    by_default: Option<i32>,
) -> Result<Terms, Problem> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let sharing = cluster.spec.incoming.as_ref().and_then(|incoming| incoming.sharing.as_ref());
    let default = default_class(classes);
    let Some(sharing) = sharing else {
        return match (default, by_default) {
            (Some(class), _) => of_class(class),
            (None, Some(percentage)) => {
                let rule = Rule { percentage: Some(percentage.into()), fixed: Amounts::default() };
                Ok(Terms { rule, class: plain() })
            }
            (None, None) => Err(Problem {
                reason: Reason::NothingShared,
                message: format!(
                    "ForeignCluster {name} has no spec.incoming.sharing and no SharingClass is the default, so nothing is \
                     offered: `portolan share {name} 50%` offers half of this cluster"
                ),
            }),
        };
    };
    if let Some(class_name) = &sharing.class_name {
        let named = classes.iter().find(|class| class.metadata.name.as_ref() == Some(class_name));
        return named.map_or_else(
            || {
                Err(Problem {
                    reason: Reason::ClassNotFound,
                    message: format!(
                        "spec.incoming.sharing of ForeignCluster {name} names SharingClass {class_name}, which does not exist: \
                         the last offer stands"
                    ),
                })
            },
            |class| of_class(class),
        );
    }
    // What a cluster says itself is how much; everything else is as by default.
    let class = default.map_or_else(plain, |class| class.spec.clone());
    Ok(Terms { rule: rule(sharing, &format!("ForeignCluster {name}: spec.incoming.sharing"))?, class })
}

fn of_class(class: &SharingClass) -> Result<Terms, Problem> {
    let SharingClassSpec { percentage, resources, .. } = class.spec.clone();
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let sharing = Sharing { class_name: None, percentage, resources };
    if let Some(word) = refused_word(&class.spec) {
        return Err(Problem {
            reason: Reason::InvalidSharing,
            message: format!(
                "SharingClass {name}: spec.quota.{word} is not bounded there: percentage and resources say what pods request; quota \
                 takes count/*, limits.*, services.*, persistentvolumeclaims and requests.storage, also of a storage class"
            ),
        });
    }
    Ok(Terms { rule: rule(&sharing, &format!("SharingClass {name}: spec"))?, class: class.spec.clone() })
}

fn rule(sharing: &Sharing, place: &str) -> Result<Rule, Problem> {
    let fixed = Amounts::parse(&sharing.resources).map_err(|(resource, error)| Problem {
        reason: Reason::InvalidSharing,
        message: format!("{place}.resources[{resource}] cannot be read: {error}; the last offer stands"),
    })?;
    if let Some((resource, _)) = fixed.iter().find(|(resource, _)| !is_shareable(resource)) {
        return Err(Problem {
            reason: Reason::InvalidSharing,
            message: format!(
                "{place}.resources[{resource}] is no resource that a ResourceQuota bounds: name cpu, memory, pods, \
                 ephemeral-storage, hugepages-SIZE, or an extended resource with its domain, such as nvidia.com/gpu; the last \
                 offer stands"
            ),
        });
    }
    Ok(Rule { percentage: sharing.percentage.map(i64::from), fixed })
}

/// What holds where no class says otherwise.
pub(super) fn plain() -> SharingClassSpec {
    SharingClassSpec {
        default_requests: default_requests(),
        default_limits: default_limits(),
        pod_security: PodSecurity::Baseline,
        ..SharingClassSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn class(name: &str, created: &str, spec: Value) -> Arc<SharingClass> {
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass",
            "metadata": {"name": name, "creationTimestamp": created}, "spec": spec,
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn cluster(incoming: Value) -> ForeignCluster {
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "rome"},
            "spec": {"clusterIdentity": {"clusterID": "a", "clusterName": "a"}, "incoming": incoming},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_cluster_has_its_own_share_or_that_of_its_class_or_of_the_last_default() {
        let classes = [
            class("old", "2030-01-01T00:00:00Z", json!({"percentage": 10, "default": true})),
            class("new", "2030-01-02T00:00:00Z", json!({"percentage": 20, "default": true})),
            class("gold", "2030-01-03T00:00:00Z", json!({"percentage": 80, "podSecurity": "restricted"})),
        ];
        let percentage = |incoming: Value| {
            terms(&cluster(incoming), &classes, Some(7))
                .map(|terms| (terms.rule.percentage, terms.class.pod_security))
        };
        assert_eq!(percentage(json!({})), Ok((Some(20), PodSecurity::Baseline)));
        assert_eq!(percentage(json!({"sharing": {"percentage": 5}})), Ok((Some(5), PodSecurity::Baseline)));
        let gold = percentage(json!({"sharing": {"className": "gold"}}));
        assert_eq!(gold, Ok((Some(80), PodSecurity::Restricted)));
        let unknown = percentage(json!({"sharing": {"className": "silver"}})).unwrap_err();
        assert_eq!(unknown.reason, Reason::ClassNotFound);
        assert!(unknown.message.contains("silver"), "{}", unknown.message);
        let wrong =
            percentage(json!({"sharing": {"resources": {"cpu": "lots", "memory": "1Gi"}}})).unwrap_err();
        assert_eq!(wrong.reason, Reason::InvalidSharing);
        let twice =
            [class("twice", "2030-01-04T00:00:00Z", json!({"percentage": 1, "quota": {"requests.cpu": 1}}))];
        let wrong = terms(&cluster(json!({"sharing": {"className": "twice"}})), &twice, None).unwrap_err();
        assert_eq!(wrong.reason, Reason::InvalidSharing);
        assert!(wrong.message.contains("spec.quota.requests.cpu"), "{}", wrong.message);
        let unbounded =
            percentage(json!({"sharing": {"resources": {"cpu": "1", "memory": "1Gi", "gpu": "1"}}}));
        let unbounded = unbounded.unwrap_err();
        assert_eq!(unbounded.reason, Reason::InvalidSharing);
        assert!(unbounded.message.contains("resources[gpu]"), "{}", unbounded.message);
        assert_eq!(terms(&cluster(json!({})), &[], None).unwrap_err().reason, Reason::NothingShared);
        let by_default = terms(&cluster(json!({})), &[], Some(7)).unwrap();
        assert_eq!(by_default.rule.percentage, Some(7));
    }
}
