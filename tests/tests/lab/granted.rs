//! The rights of the account of an installed controller, held against the audit logs of API servers: the cluster gives those of
//! the table and no others, and each of them is used.

use anyhow::{Context, Result, ensure};
use portolan_control::peering::{CONTROLLER, NAMESPACE, Need, hub_needs};
use portolan_lab::Cluster;
use serde_json::Value;
use std::collections::BTreeSet;

/// Rights of which no audit log of these tests tells, with the reason: verb, resource, reason.
const UNSEEN: &[(&str, &str, &str)] = &[
    ("approve", "signers", "API servers ask for it when a request is approved"),
    ("bind", "clusterroles", "API servers ask for it when a tenant gets one of these roles"),
    ("create", "certificatesigningrequests", "API servers ask for it when a tenant gets the right to renew"),
    ("delete", "clusterprofiles", "the plugin OwnerReferencesPermissionEnforcement asks for it"),
    ("delete", "invitations", "it is done a day after an invitation is over"),
    ("delete", "placementreviews", "it is done five minutes after a review is answered"),
    ("patch", "machinedeployments", "it is done where a cluster that is made from templates grows"),
    ("delete", "resourceoffers", "the namespace of the tenant may be gone before, and the offer with it"),
];

/// What all API servers together have seen of the account of the controller.
#[derive(Debug, Default)]
pub(super) struct Used(BTreeSet<Need>);

impl Used {
    /// What the API servers of these clusters have seen so far.
    pub(super) fn in_all<'a>(clusters: impl IntoIterator<Item = &'a Cluster>) -> Result<Self> {
        let mut all = BTreeSet::new();
        for cluster in clusters {
            let log = cluster.audit_log().context("the audit log")?;
            all.extend(of_controller(&log)?.iter().flat_map(requests));
        }
        Ok(Self(all))
    }

    /// Each of these rights is used, but for those that no audit log tells of.
    pub(super) fn covers(&self, rights: impl IntoIterator<Item = Need>) -> Result<()> {
        let is_unseen = |right: &Need| {
            UNSEEN.iter().any(|(verb, resource, _)| right.verb == *verb && right.resource == *resource)
        };
        let unused = rights.into_iter().filter(|right| !is_unseen(right) && !self.has(right));
        let unused: Vec<String> = unused.map(|right| right.text()).collect();
        ensure!(unused.is_empty(), "granted to the controller, but not used: {unused:#?}");
        Ok(())
    }

    fn has(&self, right: &Need) -> bool {
        let is_in = |given: &Option<String>, seen: &Option<String>| given.is_none() || given == seen;
        self.0.iter().any(|seen| {
            (&seen.verb, &seen.group, &seen.resource) == (&right.verb, &right.group, &right.resource)
                && is_in(&right.namespace, &seen.namespace)
                && is_in(&right.name, &seen.name)
        })
    }
}

/// Whether a right is needed for clusters that are made by Cluster API, and for nothing else.
pub(super) fn is_for_clouds(right: &Need) -> bool {
    let makes_credentials = right.verb == "create" && right.resource == "secrets";
    let writes = ["patch", "update"].contains(&right.verb.as_str());
    let writes_provisioners = right.resource.starts_with("cloudprovisioners") && writes;
    right.group == "cluster.x-k8s.io" || makes_credentials || writes_provisioners
}

/// The cluster gives the account the rights of the table, and nothing else.
pub(super) async fn are_those_of_the_table(cluster: &Cluster) -> Result<()> {
    let (given, table): (BTreeSet<Need>, BTreeSet<Need>) =
        (given(cluster).await?, hub_needs().into_iter().collect());
    let texts = |needs: Vec<&Need>| needs.into_iter().map(Need::text).collect::<Vec<_>>();
    let beyond = texts(given.difference(&table).collect());
    ensure!(beyond.is_empty(), "{} gives the controller more: {beyond:#?}", cluster.name());
    let missing = texts(table.difference(&given).collect());
    ensure!(missing.is_empty(), "{} gives the controller less: {missing:#?}", cluster.name());
    Ok(())
}

/// The requests of the controller's account in an audit log.
pub(super) fn of_controller(log: &str) -> Result<Vec<Value>> {
    let account = format!("system:serviceaccount:{NAMESPACE}:{CONTROLLER}");
    let events = log.lines().map(serde_json::from_str::<Value>).filter_map(Result::ok);
    let own: Vec<Value> = events.filter(|event| event["user"]["username"] == *account).collect();
    ensure!(!own.is_empty(), "the audit log has no request of {account}");
    Ok(own)
}

/// What a request that was not refused has used.
fn requests(event: &Value) -> Vec<Need> {
    let object = &event["objectRef"];
    if object.is_null() || event["annotations"]["authorization.k8s.io/decision"] == "forbid" {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let given = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let subresource = given(&object["subresource"]).map(|name| format!("/{name}")).unwrap_or_default();
    let seen = Need {
        verb: text(&event["verb"]),
        group: text(&object["apiGroup"]),
        resource: format!("{}{subresource}", text(&object["resource"])),
        namespace: given(&object["namespace"]),
        name: given(&object["name"]),
    };
    // Applying what is not there yet takes the right to create it, which the log does not show as a verb.
    let creates = seen.verb == "patch" && event["responseStatus"]["code"] == 201;
    let created = creates.then(|| Need { verb: "create".to_owned(), ..seen.clone() });
    created.into_iter().chain([seen]).collect()
}

/// The rights of the account by all bindings of the cluster that name it.
async fn given(cluster: &Cluster) -> Result<BTreeSet<Need>> {
    let kinds = "clusterrolebindings,rolebindings,clusterroles,roles";
    let text = cluster.kubectl(&["get", kinds, "--all-namespaces", "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&text)?;
    let all = list["items"].as_array().context("a list")?;
    let is_controller = |subject: &Value| subject["name"] == CONTROLLER && subject["namespace"] == NAMESPACE;
    let mut given = BTreeSet::new();
    for binding in all.iter().filter(|each| elements(&each["subjects"]).any(is_controller)) {
        let (to, place) = (&binding["roleRef"], &binding["metadata"]["namespace"]);
        let is_it = |each: &&Value| {
            let here = to["kind"] == "ClusterRole" || each["metadata"]["namespace"] == *place;
            here && each["kind"] == to["kind"] && each["metadata"]["name"] == to["name"]
        };
        let role = all.iter().find(is_it).with_context(|| format!("{to} is bound and not there"))?;
        elements(&role["rules"]).for_each(|rule| given.extend(allowed(rule, place.as_str())));
    }
    Ok(given)
}

/// What a rule allows where it is bound, right by right.
fn allowed(rule: &Value, namespace: Option<&str>) -> Vec<Need> {
    let words = |field: &str| -> Vec<String> {
        elements(&rule[field]).filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let names: Vec<Option<String>> = match words("resourceNames") {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    let mut allowed = Vec::new();
    for group in words("apiGroups") {
        for resource in words("resources") {
            for verb in words("verbs") {
                allowed.extend(names.iter().map(|name| Need {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: name.clone(),
                }));
            }
        }
    }
    allowed
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
