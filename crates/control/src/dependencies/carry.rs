//! Bringing ConfigMaps and Secrets to a member, and taking them away again.

use super::sources::mark;
use super::{DependencyKind, Reference, References, Sources};
use crate::copy::{self, Kind, Put, Sight};
use crate::fleet::{Hub, Member};
use crate::names::{EPOCH_ANNOTATION, FIELD_MANAGER, HUB_LABEL, NEEDED_BY_ANNOTATION, SOURCE_ANNOTATION};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::Resource;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::ApiResource;
use portolan_runtime::{CallError, Key, Term, call};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What a Secret of this type holds is worth nothing in another cluster.
/// The reason of what the hub does not give to any member.
pub(crate) const NOT_CARRIED: &str = "NotCarried";

const TOKEN: &str = "kubernetes.io/service-account-token";

/// What is known of a ConfigMap or Secret that was carried into a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedFacts {
    uid: String,
    version: String,
    source: String,
    pub(super) needed_by: BTreeSet<String>,
}

impl CarriedFacts {
    pub(crate) fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        let annotation =
            |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name).cloned()).unwrap_or_default();
        let needed_by = annotation(NEEDED_BY_ANNOTATION);
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            source: annotation(SOURCE_ANNOTATION),
            needed_by: needed_by.split(',').filter(|uid| !uid.is_empty()).map(str::to_owned).collect(),
        }
    }

    fn sight(&self) -> Sight<'_> {
        Sight { uid: &self.uid, version: &self.version }
    }
}

/// What came of carrying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Why something could not be carried: a word, and a sentence.
    pub problems: Vec<(&'static str, String)>,
    /// Whether something is not known well enough yet, or was not as it was seen: it is to be looked at again.
    pub outdated: bool,
}

/// Brings what a workload refers to into a member, as far as it is in the hub, and keeps it current.
///
/// # Errors
/// The hub or the member cannot be asked.
pub async fn carry(
    term: &Term,
    hub: &Hub,
    sources: &Sources,
    member: &Member,
    namespace: &str,
    workload: &str,
    references: &References,
) -> Result<Carried, CallError> {
    let mut carried = Carried::default();
    if references.is_empty() {
        return Ok(carried);
    }
    if !sources.synced() {
        return Ok(Carried { outdated: true, ..carried });
    }
    let there = member.carried.into_namespace(namespace);
    if !there.soon_synced().await {
        let problem = "its ConfigMaps and Secrets are not listed yet: the credential needs get, list, watch, create, \
                       patch and delete on them";
        return Ok(Carried { problems: vec![("DependenciesUnknown", problem.to_owned())], ..carried });
    }
    for reference in references.keys() {
        let Some(source) = sources.mark(namespace, reference) else { continue };
        let key = Key::new(namespace, &reference.name);
        let facts = there.of(reference.kind).get(&key);
        let current = |facts: &CarriedFacts| facts.source == source && facts.needed_by.contains(workload);
        if facts.as_deref().is_some_and(current) {
            continue;
        }
        let mut needed_by = facts.as_deref().map(|facts| facts.needed_by.clone()).unwrap_or_default();
        needed_by.insert(workload.to_owned());
        let put = Bring { term, hub, member, key: &key, needed_by, facts: facts.as_deref() };
        match reference.kind {
            DependencyKind::ConfigMap => put.bring::<ConfigMap>(&mut carried).await?,
            DependencyKind::Secret => put.bring::<Secret>(&mut carried).await?,
        }
    }
    Ok(carried)
}

struct Bring<'a> {
    term: &'a Term,
    hub: &'a Hub,
    member: &'a Member,
    key: &'a Key,
    needed_by: BTreeSet<String>,
    facts: Option<&'a CarriedFacts>,
}

impl Bring<'_> {
    async fn bring<K: Kind>(self, carried: &mut Carried) -> Result<(), CallError> {
        let (kind, key) = (K::kind(&()), self.key);
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.hub.client.clone(), &key.namespace, &resource);
        let what = format!("read {kind} {key} of the hub");
        let Some(source) = call(what, api.get_opt(&key.name)).await? else { return Ok(()) };
        if source.data["type"] == TOKEN {
            let why = "a token of a service account is of no use in another cluster";
            carried.problems.push((NOT_CARRIED, format!("{kind} {key} is not carried: {why}")));
            return Ok(());
        }
        let object = self.object::<K>(&source);
        match copy::put::<K>(self.term, self.member, &object, self.facts.map(CarriedFacts::sight)).await? {
            Put::Applied(_) => {}
            Put::Outdated => carried.outdated = true,
            Put::Taken(message) => carried.problems.push(("NameTaken", message)),
            Put::Refused(message) => match self.facts {
                // What is immutable cannot be made current; what was made anew in the hub is made anew here.
                Some(facts) if message.contains("immutable") => {
                    copy::take_away::<K>(self.term, self.member, key, facts.sight()).await?;
                    carried.outdated = true;
                }
                _ => carried.problems.push(("DependencyRefused", message)),
            },
        }
        Ok(())
    }

    fn object<K: Kind>(&self, source: &DynamicObject) -> Value {
        let needed_by = self.needed_by.iter().cloned().collect::<Vec<_>>().join(",");
        let mut object = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {
                "name": self.key.name,
                "namespace": self.key.namespace,
                "labels": { HUB_LABEL: self.hub.id },
                "annotations": { SOURCE_ANNOTATION: mark(source), NEEDED_BY_ANNOTATION: needed_by },
            },
        });
        if let Some(epoch) = self.term.epoch() {
            object["metadata"]["annotations"][EPOCH_ANNOTATION] = json!(epoch.to_string());
        }
        let empty = Map::new();
        let fields = source.data.as_object().unwrap_or(&empty);
        for field in ["data", "binaryData", "type", "immutable"] {
            if let Some(value) = fields.get(field) {
                object[field] = value.clone();
            }
        }
        object
    }
}

/// Lets go what a workload no longer needs in a member; what nobody needs is deleted. Answers whether there was any, or
/// may be: what is there is not known yet.
///
/// # Errors
/// The member cannot be asked.
pub async fn release(
    term: &Term,
    member: &Member,
    namespace: &str,
    workload: &str,
    kept: &References,
) -> Result<bool, CallError> {
    let there = member.carried.into_namespace(namespace);
    let released = release_seen(term, member, namespace, workload, kept).await?;
    Ok(released || !there.synced())
}

/// Like [`release`], of what is known without asking for more: it costs nothing where nothing was ever carried. Answers
/// whether there was any.
///
/// # Errors
/// The member cannot be asked.
pub async fn release_seen(
    term: &Term,
    member: &Member,
    namespace: &str,
    workload: &str,
    kept: &References,
) -> Result<bool, CallError> {
    let Some(there) = member.carried.watched(namespace) else { return Ok(false) };
    let mut any = false;
    for kind in [DependencyKind::ConfigMap, DependencyKind::Secret] {
        let mut let_go = Vec::new();
        there.of(kind).for_each(|key, facts| {
            let needed = kept.contains_key(&Reference { kind, name: key.name.clone() });
            if facts.needed_by.contains(workload) && !needed {
                let_go.push((key.clone(), facts.clone()));
            }
        });
        for (key, facts) in let_go {
            any = true;
            match kind {
                DependencyKind::ConfigMap => {
                    let_go_of::<ConfigMap>(term, member, &key, &facts, workload).await?
                }
                DependencyKind::Secret => let_go_of::<Secret>(term, member, &key, &facts, workload).await?,
            }
        }
    }
    Ok(any)
}

/// Lets go, of one ConfigMap or Secret in a member, a workload that is not there any more.
pub(super) async fn release_gone(
    term: &Term,
    member: &Member,
    key: &Key,
    kind: DependencyKind,
    is_there: impl Fn(&str) -> bool,
) -> Result<(), CallError> {
    let facts = member.carried.watched(&key.namespace).and_then(|there| there.of(kind).get(key));
    let Some(facts) = facts else { return Ok(()) };
    if let Some(gone) = facts.needed_by.iter().find(|uid| !is_there(uid)) {
        match kind {
            DependencyKind::ConfigMap => let_go_of::<ConfigMap>(term, member, key, &facts, gone).await?,
            DependencyKind::Secret => let_go_of::<Secret>(term, member, key, &facts, gone).await?,
        }
    }
    Ok(())
}

async fn let_go_of<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    facts: &CarriedFacts,
    workload: &str,
) -> Result<(), CallError> {
    let others: Vec<&str> =
        facts.needed_by.iter().map(String::as_str).filter(|uid| *uid != workload).collect();
    if others.is_empty() {
        return copy::take_away::<K>(term, member, key, facts.sight()).await;
    }
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": facts.uid,
        "resourceVersion": facts.version,
        "annotations": { NEEDED_BY_ANNOTATION: others.join(",") },
    }});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("release {} {key} in {}", K::kind(&()), member.name);
    match term.call(what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Whether a workload needs anything that was carried into a member, or may: what is there is not known yet.
#[must_use]
pub fn needs(member: &Member, namespace: &str, workload: &str) -> bool {
    if member.namespaces.synced() && member.namespaces.get(&Key::cluster(namespace)).is_none() {
        return false;
    }
    let there = member.carried.into_namespace(namespace);
    let mut any = !there.synced();
    for kind in [DependencyKind::ConfigMap, DependencyKind::Secret] {
        there.of(kind).for_each(|_, facts| any |= facts.needed_by.contains(workload));
    }
    any
}
