//! What quotas admit.

use super::{Happened, Live, text};
use jiff::{SignedDuration, Timestamp};
use portolan_core::capacity::milli;
use serde_json::Value;
use std::collections::BTreeMap;

const QUOTAS: &str = "/resourcequotas";
const CLUSTERS: &str = "portolan.dev/foreignclusters";
const CLASSES: &str = "portolan.dev/sharingclasses";

/// How old what a controller goes by may be: as long as its watches may fail.
const WINDOW: SignedDuration = SignedDuration::from_secs(300);

/// Cluster and ForeignCluster.
type Consumer = (String, String);

#[derive(Default)]
pub(super) struct Quotas {
    /// How many thousandths of a CPU each cluster has.
    pub(super) whole: BTreeMap<String, i64>,
    /// What may be shared of CPU, in thousandths, by consumer: each value holds until the next one begins.
    limits: BTreeMap<Consumer, Vec<(Timestamp, Limit)>>,
}

/// How much of the CPUs is shared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Percent(i64),
    Milli(i64),
}

impl Limit {
    fn milli(self, whole: i64) -> i64 {
        match self {
            Self::Percent(percent) => whole * percent / 100,
            Self::Milli(milli) => milli,
        }
    }
}

/// What a rule says; nothing if it cannot be told, and then the last one stands.
fn limit(live: &Live, cluster: &str, sharing: &Value) -> Option<Limit> {
    let classes = || live.all(CLASSES, cluster).map(|(_, class)| class);
    let rule = match (&sharing["className"], sharing.is_null()) {
        (_, true) => match classes().find(|class| class["spec"]["default"] == true) {
            Some(class) => &class["spec"],
            None => return Some(Limit::Milli(0)),
        },
        (Value::String(name), _) => {
            &classes().find(|class| class["metadata"]["name"] == name.as_str())?["spec"]
        }
        _ => sharing,
    };
    if let Some(cpu) = rule["resources"]["cpu"].as_str() {
        return milli(cpu).ok().map(Limit::Milli);
    }
    Some(Limit::Percent(rule["percentage"].as_i64().unwrap_or(0)))
}

impl Quotas {
    /// A ForeignCluster or a class is changed: other rules may hold.
    pub(super) fn shared(&mut self, what: &Happened<'_>) -> Vec<String> {
        for ((cluster, _, name), object) in what.live.all(CLUSTERS, what.cluster()) {
            let incoming = &object["spec"]["incoming"];
            let found = if incoming.is_null() {
                Some(Limit::Milli(0))
            } else {
                limit(what.live, cluster, &incoming["sharing"])
            };
            let Some(found) = found else { continue };
            let all = self.limits.entry((cluster.clone(), name.clone())).or_default();
            if all.last().is_none_or(|(_, last)| *last != found) {
                all.push((what.now, found));
            }
        }
        Vec::new()
    }

    /// A quota is written or deleted.
    pub(super) fn written(&mut self, what: &Happened<'_>) -> Vec<String> {
        let (cluster, namespace, name) = what.place;
        let tenant = text(&what.object["metadata"]["labels"]["portolan.dev/tenant"]);
        if name != "portolan" || !what.by_controller || tenant.is_empty() {
            return Vec::new();
        }
        if what.gone {
            return given_up(what.live, cluster, namespace, &tenant);
        }
        let own = what.live.all(QUOTAS, cluster).filter(|((_, _, name), quota)| {
            name == "portolan" && quota["metadata"]["labels"]["portolan.dev/tenant"] == tenant.as_str()
        });
        let cpu = |quota: &Value| {
            quota["spec"]["hard"]["requests.cpu"].as_str().and_then(|cpu| milli(cpu).ok()).unwrap_or(0)
        };
        let sum: i64 = own.map(|(_, quota)| cpu(quota)).sum();
        let most = self.most((cluster.clone(), tenant.clone()), what.now);
        if most.is_none_or(|most| sum <= most) {
            return Vec::new();
        }
        vec![format!("the quotas of {tenant} admit {sum}m of CPU, and {most:?}m are shared")]
    }

    /// The most that was shared within the last moments.
    fn most(&self, consumer: Consumer, now: Timestamp) -> Option<i64> {
        let all = self.limits.get(&consumer)?;
        let whole = self.whole.get(&consumer.0).copied().unwrap_or(0);
        let next = all.iter().skip(1).map(|(time, _)| Some(*time)).chain([None]);
        let recent =
            all.iter().zip(next).filter(|(_, end)| end.is_none_or(|end| now.duration_since(end) <= WINDOW));
        recent.map(|((_, limit), _)| limit.milli(whole)).max()
    }
}

/// A quota of a tenant is deleted by a controller: the tenant must have no right left there.
fn given_up(live: &Live, cluster: &str, namespace: &str, tenant: &str) -> Vec<String> {
    let ends = |name: &str| {
        live.find("/namespaces", cluster, "", name)
            .is_none_or(|found| found["metadata"]["deletionTimestamp"].is_string())
    };
    let bound =
        live.all("rbac.authorization.k8s.io/rolebindings", cluster).find(|((_, place, _), binding)| {
            place == namespace && binding["metadata"]["labels"]["portolan.dev/tenant"] == tenant
        });
    match bound {
        Some(((_, _, binding), _)) if !ends(namespace) => {
            vec![format!(
                "the quota of {tenant} in {namespace} is deleted while binding {binding} holds there"
            )]
        }
        _ => Vec::new(),
    }
}
