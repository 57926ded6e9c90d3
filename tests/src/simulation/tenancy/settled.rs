//! What must hold when nothing has gone wrong for a while.

use super::acts::Story;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Secret};
use kube::Api;
use kube::api::ListParams;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, ResourceOffer};
use portolan_control::peering::NAMESPACE;
use portolan_control::tenancy::Held;
use portolan_core::capacity::{Amounts, milli};
use std::collections::BTreeMap;

/// So often may a controller write one object while nothing happens.
const WRITES_AT_MOST: usize = 12;
/// So often may it read one.
const READS_AT_MOST: usize = 240;

impl Story {
    /// Peerings that nobody ended are Ready; of others it is said what is wrong.
    pub(super) async fn settled(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut clusters = Vec::new();
        for site in 0..self.stage.sites.len() {
            let api: Api<ForeignCluster> = Api::all(self.stage.admin(site));
            let list = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
            let deleted = list.iter().filter(|each| each.metadata.deletion_timestamp.is_some());
            problems.extend(deleted.map(|each| {
                let name = each.metadata.name.as_deref().unwrap_or_default();
                let finalizers = each.metadata.finalizers.as_deref().unwrap_or_default();
                format!(
                    "the deletion of ForeignCluster {name} in {} hangs: {finalizers:?}",
                    self.stage.name(site)
                )
            }));
            clusters.push(list);
        }
        for consumer in 0..self.stage.sites.len() {
            for provider in 0..self.stage.sites.len() {
                if consumer != provider {
                    problems.extend(self.pair(&clusters, consumer, provider).await);
                }
            }
            problems.extend(self.enforced(consumer, &clusters[consumer]).await);
            problems.extend(self.stage.own_work_lost(consumer).await);
        }
        problems
    }

    /// One consumer and one provider.
    async fn pair(&self, clusters: &[Vec<ForeignCluster>], consumer: usize, provider: usize) -> Vec<String> {
        let (from, to) = (self.stage.name(consumer), self.stage.name(provider));
        let id = |site: usize| self.identities.get(site).cloned().unwrap_or_default();
        let of = |site: usize, other: usize| {
            let id = id(other);
            clusters[site].iter().find(move |each| each.spec.cluster_identity.cluster_id == id)
        };
        let theirs = of(consumer, provider).filter(|each| each.spec.outgoing.is_some());
        let tenant = of(provider, consumer);
        let user = tenant.and_then(|tenant| tenant.spec.incoming.as_ref()?.user.clone());
        let held = match theirs {
            Some(theirs) => self.credential(consumer, theirs).await,
            None => None,
        };
        let now = self.stage.clock(provider).now();
        // Whoever deletes the namespace of a tenant by token has revoked its tokens, which the provider says.
        let is_revoked = tenant.is_some_and(|tenant| {
            let conditions = tenant.status.as_ref().map(|status| status.conditions.as_slice());
            let incoming = conditions::find(conditions.unwrap_or_default(), ConditionType::IncomingPeering);
            incoming.is_some_and(|incoming| incoming.reason == "PeeringRevoked")
        });
        let holds = !is_revoked
            && held.as_ref().is_some_and(|held| Some(held.user()) == user.as_deref() && held.expires() > now);
        let mut problems = Vec::new();
        if self.peered.contains(&(consumer, provider)) && !(held.is_some() && user.is_some()) {
            problems.push(format!(
                "{from} had peered with {to}, nobody has ended it, and now the credential is {held:?} and the user {user:?}"
            ));
        }
        let is = |cluster: &ForeignCluster, type_| {
            let status = cluster.status.clone().unwrap_or_default();
            conditions::find(&status.conditions, type_)
                .map(|found| (found.status.clone(), found.reason.clone(), found.message.clone()))
        };
        let is_true =
            |found: &Option<(String, String, String)>| found.as_ref().is_some_and(|found| found.0 == "True");
        if let (Some(theirs), Some(tenant), true) = (theirs, tenant, holds) {
            let types = [ConditionType::Ready, ConditionType::Authenticated, ConditionType::OutgoingPeering];
            for type_ in types {
                let found = is(theirs, type_);
                if !is_true(&found) {
                    problems.push(format!("{from} is a tenant of {to}, and {type_:?} is {found:?}"));
                }
            }
            let found = is(tenant, ConditionType::IncomingPeering);
            if !is_true(&found) {
                problems.push(format!("{from} is a tenant of {to}, and there IncomingPeering is {found:?}"));
            }
        } else if let Some(theirs) = theirs {
            let found = is(theirs, ConditionType::OutgoingPeering);
            if found.as_ref().is_none_or(|(status, reason, _)| status == "True" || reason.is_empty()) {
                problems.push(format!(
                    "{from} has no valid credential of {to} ({held:?}, there it is {user:?}), and OutgoingPeering is {found:?}"
                ));
            }
        }
        problems
    }

    /// The credential that a consumer holds for a provider.
    async fn credential(&self, site: usize, cluster: &ForeignCluster) -> Option<Held> {
        let secrets: Api<Secret> = Api::namespaced(self.stage.admin(site), NAMESPACE);
        let secret = secrets.get_opt(cluster.metadata.name.as_deref()?).await.ok()??;
        Held::read(&secret.metadata.annotations.unwrap_or_default())
    }

    /// Every namespace of a tenant has its quota, and all of them together admit what is offered.
    async fn enforced(&self, site: usize, clusters: &[ForeignCluster]) -> Vec<String> {
        let client = self.stage.admin(site);
        let place = self.stage.name(site);
        let everything = ListParams::default();
        let quotas: Api<ResourceQuota> = Api::all(client.clone());
        let quotas = quotas.list(&everything).await.map(|list| list.items).unwrap_or_default();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespaces = namespaces.list(&everything).await.map(|list| list.items).unwrap_or_default();
        let mut cpu: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for quota in quotas.iter().filter(|quota| quota.metadata.name.as_deref() == Some("portolan")) {
            let labels = quota.metadata.labels.clone().unwrap_or_default();
            let tenant = labels.get("portolan.dev/tenant").cloned().unwrap_or_default();
            let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
            let hard = hard.and_then(|hard| hard.get("requests.cpu")).and_then(|cpu| milli(&cpu.0).ok());
            let namespace = quota.metadata.namespace.clone().unwrap_or_default();
            cpu.entry(tenant).or_default().insert(namespace, hard.unwrap_or(0));
        }
        let mut problems = Vec::new();
        for cluster in clusters {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            let Some(incoming) = &cluster.spec.incoming else { continue };
            let home = format!("portolan-tenant-{name}");
            let offers: Api<ResourceOffer> = Api::namespaced(client.clone(), &home);
            let offered = offers.get_opt("offer").await.ok().flatten();
            let Some(offered) = offered else {
                problems.push(format!("{place} has made no offer to {name}"));
                continue;
            };
            let offered = Amounts::parse(&offered.spec.resources).unwrap_or_default().get("cpu");
            let given: i64 = cpu.get(&name).into_iter().flatten().map(|(_, milli)| milli).sum();
            if given > offered {
                problems.push(format!(
                    "quotas in {place} give {given}m of CPU to {name}, and {offered}m are offered"
                ));
            }
            for namespace in incoming.namespaces.iter().chain([&home]) {
                let exists = namespaces.iter().any(|each| each.metadata.name.as_ref() == Some(namespace));
                let enforced = cpu.values().any(|all| all.contains_key(namespace));
                if exists && !enforced {
                    problems.push(format!("no quota bounds {name} in namespace {namespace} of {place}"));
                }
            }
        }
        problems
    }
}

/// The objects that controllers write or read again and again, in the lines of a time in which nothing happens.
pub(super) fn busy(lines: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str, &str, &str), usize> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, cluster, party, _, method, path, ..] = words[..] else { continue };
        if crate::simulation::is_controller(party) && path.starts_with('/') {
            let path = path.split('?').next().unwrap_or(path);
            *counts.entry((cluster, party, method, path)).or_default() += 1;
        }
    }
    let busy = counts.into_iter().filter(|((_, _, method, _), count)| {
        *count > if *method == "GET" { READS_AT_MOST } else { WRITES_AT_MOST }
    });
    busy.map(|((cluster, party, method, path), count)| {
        format!("nothing happens, and {party} sends {method} {path} to {cluster} {count} times")
    })
    .collect()
}
