//! Namespaces that several tenants ask for, and what their pods may do.

use super::*;
use crate::stage::pass;
use k8s_openapi::api::core::v1::Namespace;

/// Another consumer of the only member, which is to have these namespaces.
async fn join(fleet: &Fleet, name: &str, namespaces: Value) {
    let user = fleet.members[0].client("user");
    let home = format!("portolan-tenant-{name}");
    let metadata = json!({"name": home, "labels": {"portolan.dev/tenant": name}});
    apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await;
    let cluster = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": name},
        "spec": {
            "clusterIdentity": {"clusterID": name, "clusterName": name},
            "incoming": {"namespaces": namespaces, "sharing": {"percentage": 20}},
        },
    });
    apply(&user, &cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_two_tenants_ask_for_belongs_to_the_first() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let user = fleet.members[0].client("user");
    apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})).await;
    spec_of(&user, "rome", json!({"incoming": {"namespaces": ["lab"]}})).await;
    pass(10).await;
    join(&fleet, "oslo", json!(["lab"])).await;
    pass(60).await;
    let written = || {
        let all = fleet.world.calls();
        let of = all.iter().filter(|call| {
            ["patch", "create", "update"].contains(&call.verb.as_str())
                && ["resourcequotas", "limitranges"].contains(&call.resource.as_str())
        });
        of.map(|call| call.count).sum::<u64>()
    };
    let before = written();
    pass(120).await;
    assert_eq!(written(), before, "nobody fights");
    let quota = Api::<ResourceQuota>::namespaced(user.clone(), "lab").get("portolan").await.unwrap();
    assert_eq!(quota.metadata.labels.unwrap()["portolan.dev/tenant"], "rome");
    let (reason, message) = told(&user, "oslo", ConditionType::Sharing).await;
    assert_eq!(reason, "NamespaceTaken");
    assert!(message.contains("namespace lab belongs to tenant rome"), "{message}");
    spec_of(&user, "rome", json!({"incoming": {"namespaces": []}})).await;
    pass(60).await;
    let quota = Api::<ResourceQuota>::namespaced(user.clone(), "lab").get("portolan").await.unwrap();
    assert_eq!(quota.metadata.labels.unwrap()["portolan.dev/tenant"], "oslo");
    assert_eq!(told(&user, "oslo", ConditionType::Sharing).await.0, "QuotasEnforced");
}

#[tokio::test(start_paused = true)]
async fn what_pods_may_do_follows_the_class_unless_the_owner_says_it() {
    let (fleet, _providing) = peers(Value::Null).await;
    let user = fleet.members[0].client("user");
    let labels = json!({"portolan.dev/tenant": "rome", "pod-security.kubernetes.io/enforce": "privileged"});
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "labels": labels}});
    apply(&user, &own).await;
    let levels = async || {
        let api: Api<Namespace> = Api::all(user.clone());
        let mut levels = Vec::new();
        for name in [HOME, NAMESPACE, "own"] {
            let labels = api.get(name).await.unwrap().metadata.labels.unwrap();
            levels.push(labels["pod-security.kubernetes.io/enforce"].clone());
        }
        levels
    };
    for level in ["restricted", "baseline", "restricted"] {
        let spec = json!({"default": true, "percentage": 10, "podSecurity": level});
        apply(&user, &class("default", spec)).await;
        pass(10).await;
        assert_eq!(levels().await, [level, level, "privileged"]);
    }
}
