//! Bringing ConfigMaps and Secrets to a member, and taking them away again.

use super::needed::NeededBy;
use super::sources::mark;
use super::withheld::withheld;
use super::{DependencyKind, Reference, References, Sources};
use crate::copies::{ApplyMode, ApplyResult, Kind, ObjectVersion, apply_if_unchanged, delete_if_unchanged};
use crate::fleet::{Hub, Member};
use crate::names::{EPOCH_ANNOTATION, FIELD_MANAGER, HUB_LABEL, NEEDED_BY_ANNOTATION, SOURCE_ANNOTATION};
use crate::recovery::has_copy;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::Resource;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::ApiResource;
use portolan_api::Reason;
use portolan_runtime::{CallError, Key, Term, call};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What is known of a ConfigMap or Secret that was propagated into a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropagatedFacts {
    uid: String,
    version: String,
    source: String,
    pub(super) needed_by: NeededBy,
}

impl PropagatedFacts {
    pub(crate) fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        let annotation =
            |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name).cloned()).unwrap_or_default();
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            source: annotation(SOURCE_ANNOTATION),
            needed_by: NeededBy::read(&annotation(NEEDED_BY_ANNOTATION)),
        }
    }

    fn object_version(&self) -> ObjectVersion<'_> {
        ObjectVersion { uid: &self.uid, version: &self.version }
    }
}

/// What came of carrying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropagationResult {
    /// Why something could not be propagated: a word, and a sentence.
    pub problems: Vec<(Reason, String)>,
    /// Whether something is not known well enough yet, or was not as it was seen: it is to be looked at again.
    pub outdated: bool,
}

/// Brings what a workload refers to into a member, as far as it is in the hub, and keeps it current.
///
/// # Errors
/// The hub or the member cannot be asked.
pub async fn propagate(
    term: &Term,
    hub: &Hub,
    sources: &Sources,
    member: &Member,
    namespace: &str,
    workload: &str,
    references: &References,
) -> Result<PropagationResult, CallError> {
    let mut propagated = PropagationResult::default();
    if references.is_empty() {
        return Ok(propagated);
    }
    if !sources.synced() {
        return Ok(PropagationResult { outdated: true, ..propagated });
    }
    let there = member.propagated.into_namespace(namespace);
    if !there.soon_synced().await {
        let why = there.refused().unwrap_or_else(|| "they are not listed yet".to_owned());
        let problem = format!(
            "its ConfigMaps and Secrets cannot be read ({why}): the credential needs get, list, watch, create, patch and \
             delete on them in namespace {namespace}"
        );
        return Ok(PropagationResult {
            problems: vec![(Reason::DependenciesUnknown, problem)],
            ..propagated
        });
    }
    for reference in references.keys() {
        let Some(source) = sources.mark(namespace, reference) else { continue };
        let key = Key::new(namespace, &reference.name);
        let facts = there.of(reference.kind).get(&key);
        // A version that is not what we applied is somebody's change; after a restart it is applied once to be sure.
        let current = |facts: &PropagatedFacts| {
            let as_applied = || {
                let (kind, version) = (reference.kind, &facts.version);
                member.propagated.is_as_applied(kind, &key, &source, version)
            };
            facts.source == source && facts.needed_by.includes(workload) && as_applied()
        };
        if facts.as_deref().is_some_and(current) {
            continue;
        }
        let needed_by = facts.as_deref().map(|facts| facts.needed_by.clone()).unwrap_or_default();
        let (kind, needed_by) = (reference.kind, needed_by.and(workload));
        let put = Bring { term, hub, member, key: &key, kind, needed_by, facts: facts.as_deref() };
        match reference.kind {
            DependencyKind::ConfigMap => put.bring::<ConfigMap>(&mut propagated).await?,
            DependencyKind::Secret => put.bring::<Secret>(&mut propagated).await?,
        }
    }
    Ok(propagated)
}

struct Bring<'a> {
    term: &'a Term,
    hub: &'a Hub,
    member: &'a Member,
    key: &'a Key,
    kind: DependencyKind,
    needed_by: NeededBy,
    facts: Option<&'a PropagatedFacts>,
}

impl Bring<'_> {
    async fn bring<K: Kind>(self, propagated: &mut PropagationResult) -> Result<(), CallError> {
        let (kind, key) = (K::kind(&()), self.key);
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.hub.client.clone(), &key.namespace, &resource);
        let what = format!("read {kind} {key} of the hub");
        let Some(source) = call(what, api.get_opt(&key.name)).await? else { return Ok(()) };
        if let Some(why) = withheld(&key.namespace, &source) {
            propagated
                .problems
                .push((Reason::NotPropagated, format!("{kind} {key} never leaves the hub: {why}")));
            return Ok(());
        }
        let object = self.object::<K>(&source);
        match apply_if_unchanged::<K>(
            self.term,
            self.member,
            &object,
            self.facts.map(PropagatedFacts::object_version),
            ApplyMode::ForReal,
        )
        .await?
        {
            ApplyResult::Applied(applied) => {
                let version = applied.meta().resource_version.clone().unwrap_or_default();
                self.member.propagated.applied(self.kind, key, mark(&source), version);
            }
            ApplyResult::Conflict => propagated.outdated = true,
            ApplyResult::NotOwned(message) => propagated.problems.push((Reason::NameTaken, message)),
            ApplyResult::Refused(message) => match self.facts {
                // What is immutable cannot be made current; what was made anew in the hub is made anew here.
                Some(facts) if message.contains("immutable") => {
                    delete_if_unchanged::<K>(self.term, self.member, key, facts.object_version()).await?;
                    propagated.outdated = true;
                }
                _ => propagated.problems.push((Reason::DependencyRefused, message)),
            },
        }
        Ok(())
    }

    fn object<K: Kind>(&self, source: &DynamicObject) -> Value {
        let needed_by = self.needed_by.text();
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

/// Releases what a workload no longer needs in a member that is on record as holding something of it; what nobody needs is
/// deleted. Answers whether there was any, or may be. Also a namespace that was closed since is asked; one that does not
/// let the hub see what it holds delays nothing.
///
/// # Errors
/// The member cannot be asked.
pub async fn release_recorded(
    term: &Term,
    member: &Member,
    namespace: &str,
    workload: &str,
    kept: &References,
) -> Result<bool, CallError> {
    if is_missing(member, namespace) {
        return Ok(false);
    }
    let there = member.propagated.into_namespace(namespace);
    let released = release_seen(term, member, namespace, workload, kept).await?;
    Ok(released || !there.settled())
}

/// Like [`release_recorded`], of what is known without asking for more: it costs nothing where nothing was ever propagated. Answers
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
    let Some(there) = member.propagated.watched(namespace) else { return Ok(false) };
    let mut any = false;
    for kind in [DependencyKind::ConfigMap, DependencyKind::Secret] {
        let mut let_go = Vec::new();
        there.of(kind).for_each(|key, facts| {
            let needed = kept.contains_key(&Reference { kind, name: key.name.clone() });
            // What many need is let go when the hub knows of nobody who does.
            if facts.needed_by.names(workload) && !needed {
                let_go.push((key.clone(), facts.clone()));
            }
        });
        for (key, facts) in let_go {
            any = true;
            let gone = BTreeSet::from([workload]);
            let_go_of(term, member, &key, kind, &facts, &gone).await?;
        }
    }
    Ok(any)
}

/// Whether something was propagated into a member for a workload that it does not need there any more, or may have been:
/// what exists in a namespace that is on record is not known yet.
#[must_use]
pub fn is_left(member: &Member, namespace: &str, workload: &str, kept: &References, recorded: bool) -> bool {
    if recorded && is_missing(member, namespace) {
        return false;
    }
    let asked = || Some(member.propagated.into_namespace(namespace));
    let there = if recorded { asked() } else { member.propagated.watched(namespace) };
    let Some(there) = there else { return false };
    let mut any = recorded && !there.settled();
    for kind in [DependencyKind::ConfigMap, DependencyKind::Secret] {
        there.of(kind).for_each(|key, facts| {
            let needed = kept.contains_key(&Reference { kind, name: key.name.clone() });
            any |= facts.needed_by.names(workload) && !needed;
        });
    }
    any
}

/// Lets go, of one ConfigMap or Secret in a member, all workloads that are not there any more, in one request.
///
/// `is_there` tells whether the hub has a workload of this uid, `is_used` whether any workload there needs the object in
/// this member.
pub(super) async fn release_gone(
    term: &Term,
    member: &Member,
    key: &Key,
    kind: DependencyKind,
    is_there: impl Fn(&str) -> bool,
    is_used: impl Fn() -> bool,
) -> Result<(), CallError> {
    let facts = member.propagated.watched(&key.namespace).and_then(|there| there.of(kind).get(key));
    let Some(facts) = facts else { return Ok(()) };
    // What an orphan needs stays with it.
    let runs = |uid: &str| has_copy(member, &key.namespace, |each| each == uid);
    let gone = facts.needed_by.named().filter(|uid| !is_there(uid) && !runs(uid));
    let gone: BTreeSet<&str> = gone.collect();
    let orphans = || has_copy(member, &key.namespace, |each| !is_there(each));
    let unused = facts.needed_by == NeededBy::Many && !is_used() && !orphans();
    if unused || !gone.is_empty() {
        let_go_of(term, member, key, kind, &facts, &gone).await?;
    }
    Ok(())
}

async fn let_go_of(
    term: &Term,
    member: &Member,
    key: &Key,
    kind: DependencyKind,
    facts: &PropagatedFacts,
    gone: &BTreeSet<&str>,
) -> Result<(), CallError> {
    match kind {
        DependencyKind::ConfigMap => let_go_of_kind::<ConfigMap>(term, member, key, facts, gone).await,
        DependencyKind::Secret => let_go_of_kind::<Secret>(term, member, key, facts, gone).await,
    }
}

async fn let_go_of_kind<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    facts: &PropagatedFacts,
    gone: &BTreeSet<&str>,
) -> Result<(), CallError> {
    let others: Vec<&str> = facts.needed_by.named().filter(|uid| !gone.contains(uid)).collect();
    if others.is_empty() {
        return delete_if_unchanged::<K>(term, member, key, facts.object_version()).await;
    }
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": facts.uid,
        "resourceVersion": facts.version,
        "annotations": { NEEDED_BY_ANNOTATION: others.join(",") },
    }});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("release {} {key} in {}", K::kind(&()), member.name);
    match member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Whether a workload needs anything that was propagated to a member which is on record as holding something of it, or may:
/// what is there is not known yet.
#[must_use]
pub fn needs_recorded(member: &Member, namespace: &str, workload: &str) -> bool {
    if is_missing(member, namespace) {
        return false;
    }
    let there = member.propagated.into_namespace(namespace);
    let mut any = !there.settled();
    for kind in [DependencyKind::ConfigMap, DependencyKind::Secret] {
        there.of(kind).for_each(|_, facts| any |= facts.needed_by.names(workload));
    }
    any
}

fn is_missing(member: &Member, namespace: &str) -> bool {
    member.index::<Namespace>().synced()
        && member.index::<Namespace>().get(&Key::cluster(namespace)).is_none()
}
