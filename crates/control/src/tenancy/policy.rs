//! The admission policy of tenants: what roles cannot refuse.
//!
//! A role gives a kind as a whole. This policy bounds what tenants write of it. API servers enforce it themselves, also where
//! no controller runs, for requests of tenants and of the accounts of invitations and for nobody else's.

use crate::names::{
    PRIORITY_CLASSES_ANNOTATION, REQUEST_LABEL, SERVICE_ACCOUNTS_ANNOTATION, STORAGE_CLASSES_ANNOTATION,
};
use crate::peering::NAMESPACE;
use portolan_core::tenancy::names::{self, GROUP, LEASE};
use portolan_core::tenancy::{LONGEST_LIFE, SIGNER};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name of the policy and of its binding.
pub const TENANT_POLICY: &str = "portolan-tenants";

/// What the policy is asked about: group and resources. A test holds it against the roles of tenants; the other kinds that
/// have pod templates are there in case that an administrator gives further rights.
const RESOURCES: &[(&str, &[&str])] = &[
    ("", &["configmaps", "pods", "replicationcontrollers", "secrets", "serviceaccounts/token", "services"]),
    ("apps", &["daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("batch", &["cronjobs", "jobs"]),
    ("certificates.k8s.io", &["certificatesigningrequests"]),
    ("coordination.k8s.io", &["leases"]),
];

/// The longest text in a Lease that says who holds it.
const LONGEST_HOLDER: usize = 128;

/// The longest request for a certificate, in base64.
const LONGEST_REQUEST: usize = 8192;

/// The policy and its binding.
#[must_use]
pub fn tenant_policy() -> Vec<Value> {
    let api_version = "admissionregistration.k8s.io/v1";
    let rule = |(group, resources): &(&str, &[&str])| {
        json!({
            "apiGroups": [group], "apiVersions": ["*"], "resources": resources, "operations": ["CREATE", "UPDATE"],
        })
    };
    let variable = |(name, expression): &(&str, String)| json!({"name": name, "expression": expression});
    let validation =
        |(expression, message): &(String, String)| json!({"expression": expression, "message": message});
    vec![
        json!({
            "apiVersion": api_version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": TENANT_POLICY},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": RESOURCES.iter().map(rule).collect::<Vec<_>>()},
                "matchConditions": [{"name": "tenants", "expression": tenants()}],
                "variables": variables().iter().map(variable).collect::<Vec<_>>(),
                "validations": validations().iter().map(validation).collect::<Vec<_>>(),
            },
        }),
        json!({
            "apiVersion": api_version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": TENANT_POLICY},
            "spec": {"policyName": TENANT_POLICY, "validationActions": ["Deny"]},
        }),
    ]
}

/// Whose requests are looked at: those of tenants by certificate, of accounts of invitations, and of tenants by token. The last
/// are all service accounts in namespaces that have the name of a tenant's.
fn tenants() -> String {
    format!(
        "has(request.userInfo.groups) && '{GROUP}' in request.userInfo.groups || has(request.userInfo.username) && \
         (request.userInfo.username.startsWith('{}') || request.userInfo.username.startsWith('{}'))",
        names::account_user(NAMESPACE, ""),
        names::tenant_account_users()
    )
}

/// Whether a policy and its binding, as they are in a cluster, bound service accounts of tenants as those of this version do.
pub(super) fn bounds_accounts(policy: &Value, binding: &Value) -> bool {
    let own = tenant_policy();
    let [wanted, wanted_binding] = own.as_slice() else { return false };
    let texts = |policy: &Value| -> BTreeSet<String> {
        let all = policy["spec"]["validations"].as_array().into_iter().flatten();
        all.filter_map(|each| each["expression"].as_str()).map(str::to_owned).collect()
    };
    let rules = |policy: &Value| -> Vec<Value> {
        let all = policy["spec"]["matchConstraints"]["resourceRules"].as_array().into_iter().flatten();
        let fields = ["apiGroups", "apiVersions", "operations", "resources", "resourceNames"];
        all.map(|rule| json!(fields.map(|field| rule[field].clone()))).collect()
    };
    let looks_at = rules(policy);
    let same = |pointer: &str| policy.pointer(pointer) == wanted.pointer(pointer);
    same("/spec/matchConditions")
        && same("/spec/failurePolicy")
        && texts(policy).is_superset(&texts(wanted))
        && rules(wanted).iter().all(|rule| looks_at.contains(rule))
        && selects_all(&policy["spec"]["matchConstraints"])
        && ["policyName", "validationActions"]
            .iter()
            .all(|field| binding["spec"][*field] == wanted_binding["spec"][*field])
        && binding["spec"]["matchResources"]["resourceRules"].is_null()
        && selects_all(&binding["spec"]["matchResources"])
}

/// Whether nothing is left out by selectors or exceptions, whatever API servers fill in.
fn selects_all(resources: &Value) -> bool {
    let Some(fields) = resources.as_object() else { return resources.is_null() };
    let is_empty = |value: &Value| *value == Value::Null || *value == json!({}) || *value == json!([]);
    fields
        .iter()
        .all(|(name, value)| ["matchPolicy", "resourceRules"].contains(&name.as_str()) || is_empty(value))
}

/// Parts of the object, and what the namespace allows.
fn variables() -> Vec<(&'static str, String)> {
    vec![
        (
            "oldFinalizers",
            "request.operation == 'UPDATE' && has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : []".to_owned(),
        ),
        (
            "oldOwners",
            "request.operation == 'UPDATE' && has(oldObject.metadata.ownerReferences) ? \
             oldObject.metadata.ownerReferences.map(owner, owner.uid) : []"
                .to_owned(),
        ),
        // A pod is its own template.
        (
            "template",
            "has(object.spec) && has(object.spec.containers) ? object : \
             has(object.spec) && has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec.template : \
             has(object.spec) && has(object.spec.template) ? object.spec.template : {}"
                .to_owned(),
        ),
        ("pod", "has(variables.template.spec) ? variables.template.spec : {}".to_owned()),
        ("priorityClasses", listed(PRIORITY_CLASSES_ANNOTATION)),
        ("storageClasses", listed(STORAGE_CLASSES_ANNOTATION)),
        ("serviceAccounts", listed(SERVICE_ACCOUNTS_ANNOTATION)),
    ]
}

/// What an annotation of the namespace lists, separated by commas.
fn listed(annotation: &str) -> String {
    format!(
        "has(namespaceObject.metadata.annotations) && '{annotation}' in namespaceObject.metadata.annotations ? \
         namespaceObject.metadata.annotations['{annotation}'].split(',') : []"
    )
}

/// What must hold, and what is said where it does not.
fn validations() -> Vec<(String, String)> {
    [metadata(), objects(), pods(), peering()].concat()
}

fn metadata() -> Vec<(String, String)> {
    vec![
        (
            "!has(object.metadata.finalizers) || object.metadata.finalizers.all(each, each in variables.oldFinalizers)".to_owned(),
            "metadata.finalizers: a tenant adds none, since the object could then not be deleted".to_owned(),
        ),
        (
            "!has(object.metadata.ownerReferences) || object.metadata.ownerReferences.all(each, each.uid in variables.oldOwners)"
                .to_owned(),
            "metadata.ownerReferences: a tenant adds none".to_owned(),
        ),
        (
            "request.resource.resource == 'pods' || !has(variables.template.metadata) || \
             !has(variables.template.metadata.finalizers) || size(variables.template.metadata.finalizers) == 0"
                .to_owned(),
            "finalizers of the pod template: a tenant adds none, since the pods could then not be deleted".to_owned(),
        ),
    ]
}

fn objects() -> Vec<(String, String)> {
    vec![
        (
            "request.resource.resource != 'secrets' || !has(object.type) || object.type != 'kubernetes.io/service-account-token'"
                .to_owned(),
            "type kubernetes.io/service-account-token: a tenant creates no credentials of service accounts".to_owned(),
        ),
        (
            "request.resource.resource != 'services' || !has(object.spec) || !has(object.spec.externalIPs) || \
             size(object.spec.externalIPs) == 0"
                .to_owned(),
            "spec.externalIPs: a tenant takes no traffic to addresses of others".to_owned(),
        ),
    ]
}

fn pods() -> Vec<(String, String)> {
    let account = |field: &str| {
        format!(
            "(!has(variables.pod.{field}) || variables.pod.{field} in ['', 'default'] || variables.pod.{field} in \
             variables.serviceAccounts)"
        )
    };
    vec![
        (
            "!has(variables.pod.priorityClassName) || variables.pod.priorityClassName == '' || \
             variables.pod.priorityClassName in variables.priorityClasses"
                .to_owned(),
            "priorityClassName of pods: it is not offered; the provider offers it by spec.priorityClasses of a SharingClass".to_owned(),
        ),
        // That of a pod that runs is the scheduler's.
        (
            "!has(variables.pod.nodeName) || variables.pod.nodeName == '' || \
             request.resource.resource == 'pods' && request.operation == 'UPDATE'"
                .to_owned(),
            "nodeName of pods: a tenant leaves the choice of a node to the scheduler".to_owned(),
        ),
        // What Kubernetes itself adds to pods, and the taints of nodes with a resource that the pod asks for, as offers count.
        (
            "!has(variables.pod.tolerations) || variables.pod.tolerations.all(each, has(each.key) && \
             (each.key in ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] || \
             variables.pod.containers.exists(container, has(container.resources) && \
             (has(container.resources.limits) && each.key in container.resources.limits || \
             has(container.resources.requests) && each.key in container.resources.requests))))"
                .to_owned(),
            "tolerations of pods: a tenant tolerates taints only that have the name of a resource which a container requests; nodes \
             with other taints are not offered"
                .to_owned(),
        ),
        (
            format!("{} && {}", account("serviceAccountName"), account("serviceAccount")),
            format!(
                "serviceAccountName of pods: a tenant uses the account default, and those that the annotation \
                 {SERVICE_ACCOUNTS_ANNOTATION} of the namespace lists"
            ),
        ),
        (
            "!has(variables.pod.volumes) || variables.pod.volumes.all(each, !has(each.ephemeral) || \
             !has(each.ephemeral.volumeClaimTemplate) || !has(each.ephemeral.volumeClaimTemplate.spec) || \
             !has(each.ephemeral.volumeClaimTemplate.spec.volumeName) && \
             !has(each.ephemeral.volumeClaimTemplate.spec.selector) && \
             (!has(each.ephemeral.volumeClaimTemplate.spec.storageClassName) || \
             each.ephemeral.volumeClaimTemplate.spec.storageClassName in variables.storageClasses))"
                .to_owned(),
            "ephemeral volumes: storageClassName must be a storage class that is offered, and no volume may be chosen".to_owned(),
        ),
    ]
}

/// The objects by which consumers speak with the provider.
fn peering() -> Vec<(String, String)> {
    let short = |field: &str| {
        format!(
            "(!has(object.spec) || !has(object.spec.{field}) || size(object.spec.{field}) <= {LONGEST_HOLDER})"
        )
    };
    let label = format!("object.metadata.labels['{REQUEST_LABEL}']");
    vec![
        (
            format!(
                "request.resource.resource != 'leases' || has(object.metadata.name) && object.metadata.name == '{LEASE}' && {} && {} && \
                 (!has(object.metadata.labels) || size(object.metadata.labels) <= 8) && \
                 (!has(object.metadata.annotations) || size(object.metadata.annotations) <= 8 && \
                 object.metadata.annotations.all(key, size(object.metadata.annotations[key]) <= 1024))",
                short("holderIdentity"),
                short("preferredHolder")
            ),
            format!(
                "a tenant writes the Lease {LEASE} only, with a holder of at most {LONGEST_HOLDER} characters and at most 8 labels and \
                 annotations"
            ),
        ),
        (
            format!(
                "request.resource.resource != 'certificatesigningrequests' || object.spec.signerName == '{SIGNER}' && \
                 size(object.spec.request) <= {LONGEST_REQUEST} && has(object.metadata.labels) && \
                 '{REQUEST_LABEL}' in object.metadata.labels && has(object.metadata.name) && \
                 object.metadata.name in ['{}' + {label}, '{}' + {label}]",
                names::request(""),
                names::renewal("")
            ),
            format!(
                "a consumer asks the signer {SIGNER} only, with the label {REQUEST_LABEL} and the name of its invitation, by at most \
                 {LONGEST_REQUEST} characters"
            ),
        ),
        (
            format!(
                "request.resource.resource != 'serviceaccounts' || !has(object.spec) || !has(object.spec.expirationSeconds) || \
                 object.spec.expirationSeconds <= {LONGEST_LIFE}"
            ),
            format!(
                "spec.expirationSeconds of a token: a tenant asks for tokens of at most {LONGEST_LIFE} s"
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenancy::provider_roles;

    #[test]
    fn everything_that_tenants_may_write_is_looked_at() {
        let writes = ["create", "update", "patch"];
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let roles = provider_roles();
        let of_tenants = roles.iter().filter(|role| {
            let name = role["metadata"]["name"].as_str().unwrap();
            name.starts_with("portolan-tenant")
        });
        let mut looked_at = 0;
        for rule in of_tenants.flat_map(|role| role["rules"].as_array().unwrap()) {
            if !texts(&rule["verbs"]).iter().any(|verb| writes.contains(&verb.as_str())) {
                continue;
            }
            // Statuses carry nothing that the policy is about.
            for resource in texts(&rule["resources"]).iter().filter(|resource| !resource.contains('/')) {
                let group = &texts(&rule["apiGroups"])[0];
                let found = RESOURCES
                    .iter()
                    .any(|(known, resources)| known == group && resources.contains(&resource.as_str()));
                assert!(found, "tenants may write {resource} of group {group:?}, and no policy looks at it");
                looked_at += 1;
            }
        }
        assert!(looked_at >= 6, "{looked_at}");
    }

    #[test]
    fn a_policy_of_another_version_or_one_that_was_weakened_bounds_no_account() {
        let [policy, binding] = tenant_policy().try_into().unwrap();
        assert!(bounds_accounts(&policy, &binding));
        // What API servers fill in changes nothing.
        let mut stored = (policy.clone(), binding.clone());
        stored.0["spec"]["matchConstraints"]["matchPolicy"] = json!("Equivalent");
        stored.1["spec"]["matchResources"] =
            json!({"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}});
        assert!(bounds_accounts(&stored.0, &stored.1));
        let weaker: [fn(&mut Value, &mut Value); 8] = [
            |policy, _| policy["spec"]["matchConstraints"]["resourceRules"] = json!([]),
            |policy, _| {
                policy["spec"]["matchConstraints"]["excludeResourceRules"] = json!([{"resources": ["pods"]}])
            },
            |policy, _| *policy = Value::Null,
            |_, binding| *binding = Value::Null,
            |policy, _| policy["spec"]["matchConditions"][0]["expression"] = json!("false"),
            |policy, _| policy["spec"]["failurePolicy"] = json!("Ignore"),
            |policy, _| drop(policy["spec"]["validations"].as_array_mut().unwrap().pop()),
            |_, binding| {
                binding["spec"]["matchResources"] = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}})
            },
        ];
        for (number, edit) in weaker.iter().enumerate() {
            let (mut policy, mut binding) = (policy.clone(), binding.clone());
            edit(&mut policy, &mut binding);
            assert!(!bounds_accounts(&policy, &binding), "{number}");
        }
    }

    #[test]
    fn the_policy_is_about_tenants_and_fails_closed() {
        let [policy, binding] = tenant_policy().try_into().unwrap();
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        let whose = policy["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
        assert!(
            whose.contains("'portolan:tenants' in")
                && whose.contains("'system:serviceaccount:portolan:invitation-'")
                && whose.contains("'system:serviceaccount:portolan-tenant-'"),
            "{whose}"
        );
        for validation in policy["spec"]["validations"].as_array().unwrap() {
            assert!(!validation["message"].as_str().unwrap().contains('\n'), "{validation}");
        }
    }
}
