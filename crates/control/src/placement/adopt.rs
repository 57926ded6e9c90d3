//! Taking over Deployments that this hub did not place: those of a hub that was lost, and those that nobody manages.
//!
//! A user marks a workload with the annotation `portolan.dev/adopt`. Before the first decision about it, every member is
//! asked for the Deployment of its name. Those that the mark names get our labels and annotations, by a change of their
//! metadata only: no pod is restarted. While a member cannot be asked, nothing is decided, so that nothing is doubled. The
//! mark is removed when the watches show all that was taken over.
//!
//! A Deployment that nobody managed has no labels of ours in its template, and gets none until its user changes the
//! template. Its pods count in the ledger as those of others; see [`Workload::is_unlabelled`].

use super::drift::template_differences;
use super::{Placement, Workload};
use crate::copies::Copied;
use crate::copies::{digest, refusal_message};
use crate::driver::Declared;
use crate::fleet::{Member, allowed_adoption};
use crate::names::{
    ADOPT_ANNOTATION, ADOPT_UNMANAGED, ADOPTED_TEMPLATE_ANNOTATION, ALLOW_ADOPTION_ANNOTATION, FIELD_MANAGER,
    HUB_LABEL, OWNER_ANNOTATION, WORKLOAD_ID_ANNOTATION, WORKLOAD_LABEL,
};
use crate::recovery::{AWAITING_MEMBERS, annotate, is_given_up, is_identity};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::ApiResource;
use kube::{Api, ResourceExt};
use portolan_api::{ForeignCluster, Reason, selector};
use portolan_runtime::{Action, CallError, EventType, Key, chain, foreign_text};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How soon to look whether the watches show what was taken over.
const SHOWN_SOON: Duration = Duration::from_millis(250);

/// How soon to look again at an adoption that users have to mend.
const MENDED_BY_USERS: Duration = Duration::from_secs(30);

/// What a user lets a workload take over.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// What the hub of this identity placed.
    FromHub(String),
    /// What nobody placed.
    Unmanaged,
}

impl Mode {
    fn text(&self) -> String {
        match self {
            Self::FromHub(hub) => format!("hub/{hub}"),
            Self::Unmanaged => ADOPT_UNMANAGED.to_owned(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        if text == ADOPT_UNMANAGED {
            return Some(Self::Unmanaged);
        }
        let hub = text.strip_prefix("hub/").filter(|hub| is_identity(hub))?;
        Some(Self::FromHub(hub.to_owned()))
    }
}

/// A Deployment that is to be taken over.
struct Found {
    member: Arc<Member>,
    object: DynamicObject,
    /// The workload that it says it belongs to.
    identity: Option<String>,
}

/// What came of taking over one Deployment.
enum Taken {
    /// The watch shows that it is ours.
    Shown,
    /// It soon will.
    NotShown,
    /// The member refuses it: why.
    Refused(String),
}

/// Whether an administrator lets workloads take over Deployments in a cluster: whoever may write workloads could otherwise
/// take those of others.
fn is_allowed(cluster: &ForeignCluster, mode: &Mode) -> bool {
    allowed_adoption(cluster).is_some_and(|allowed| allowed.split(',').any(|each| each.trim() == mode.text()))
}

/// What came of asking all members.
#[derive(Default)]
struct Asked {
    found: Vec<Found>,
    away: Vec<String>,
    problems: Vec<String>,
}

impl Placement {
    /// Takes over what a mark on the workload names; answers when to look again if nothing may be decided yet.
    pub(super) async fn adopt(&self, key: &Key, workload: &Workload) -> Result<Option<Action>, CallError> {
        let Some(text) = workload.object.annotations().get(ADOPT_ANNOTATION) else { return Ok(None) };
        let Some(mode) = Mode::read(text) else {
            let message = format!(
                "annotation {ADOPT_ANNOTATION} is {text:?}: hub/ID takes over what the hub of this id placed, unmanaged \
                 what nobody placed"
            );
            return self.not_adopted(workload, Reason::InvalidAdoption, &message, MENDED_BY_USERS).await;
        };
        if !self.base.context.fleet.clusters.synced() {
            return Ok(Some(Action::RequeueAfter(SHOWN_SOON)));
        }
        if self.is_placed(key, workload) {
            let undone = json!({ ADOPT_ANNOTATION: null });
            annotate(&self.base.context.term, &self.base.context.hub.client, &workload.object, undone)
                .await?;
            let note = format!("annotation {ADOPT_ANNOTATION} was removed: the workload is placed already");
            self.base.recorder.record(&workload.object, EventType::Warning, Reason::NotAdopted, &note).await;
            return Ok(Some(Action::AwaitChange));
        }
        let locations = &workload.object.spec.placement.locations;
        if mode == Mode::Unmanaged && locations.is_empty() {
            let message = "name the clusters whose Deployment is to be taken over in spec.locations: those of the same \
                           name elsewhere stay as they are";
            return self.not_adopted(workload, Reason::NotAdopted, message, MENDED_BY_USERS).await;
        }
        let mut asked = self.ask_all(key, &mode, locations).await?;
        if !asked.away.is_empty() {
            let message = format!(
                "{} cannot be asked for Deployment {key}: nothing is placed until then, so that nothing is doubled",
                asked.away.join(", ")
            );
            return self.not_adopted(workload, Reason::AwaitingMembers, &message, AWAITING_MEMBERS).await;
        }
        let identity = match &mode {
            Mode::Unmanaged => workload.uid().to_owned(),
            Mode::FromHub(_) => {
                let theirs = asked.found.iter().find_map(|found| found.identity.clone());
                theirs.unwrap_or_else(|| workload.uid().to_owned())
            }
        };
        let unlabelled = mode == Mode::Unmanaged;
        for found in &asked.found {
            if found.identity.as_ref().is_some_and(|theirs| *theirs != identity) {
                let told = format!(
                    "{}: Deployment {key} belongs to another workload of that hub",
                    found.member.name
                );
                asked.problems.push(told);
            }
            let wanted = self.desired_as(workload, &identity, unlabelled);
            let differences = template_differences(&wanted, &found.object.data);
            if !differences.is_empty() {
                asked.problems.push(format!(
                    "{}: the template of Deployment {key} differs, and a rollout would follow: {}",
                    found.member.name,
                    differences.join("; ")
                ));
            }
        }
        if unlabelled && asked.found.is_empty() && asked.problems.is_empty() {
            asked.problems.push(format!("no member has a Deployment {key} in an open namespace"));
        }
        if !asked.problems.is_empty() {
            let message = format!("nothing is taken over: {}", asked.problems.join(". "));
            return self.not_adopted(workload, Reason::NotAdopted, &message, MENDED_BY_USERS).await;
        }
        let mut shown = true;
        for found in &asked.found {
            match self.take_over(key, &identity, found).await? {
                Taken::Shown => {}
                Taken::NotShown => shown = false,
                Taken::Refused(why) => asked.problems.push(why),
            }
        }
        if !asked.problems.is_empty() {
            let message = format!("not all could be taken over: {}", asked.problems.join(". "));
            return self.not_adopted(workload, Reason::NotAdopted, &message, MENDED_BY_USERS).await;
        }
        if !shown {
            return Ok(Some(Action::RequeueAfter(SHOWN_SOON)));
        }
        let template = unlabelled.then(|| digest(&workload.object.spec.template.0));
        let known_by =
            Some(&identity).filter(|identity| Some(*identity) != workload.object.metadata.uid.as_ref());
        let done = json!({
            ADOPT_ANNOTATION: null, WORKLOAD_ID_ANNOTATION: known_by, ADOPTED_TEMPLATE_ANNOTATION: template,
        });
        annotate(&self.base.context.term, &self.base.context.hub.client, &workload.object, done).await?;
        let clusters =
            asked.found.iter().map(|found| found.member.name.as_str()).collect::<Vec<_>>().join(", ");
        let note = match clusters.as_str() {
            "" => format!("no member has a Deployment {key}: it is placed as a new one"),
            clusters => format!("took over Deployment {key} in {clusters}, with its pods"),
        };
        self.base.recorder.record(&workload.object, EventType::Normal, Reason::Adopted, &note).await;
        Ok(Some(Action::AwaitChange))
    }

    /// Whether a workload is marked, and the mark is removed without anything being taken over.
    pub(super) fn loses_mark(&self, key: &Key, workload: &Workload) -> bool {
        let mark = workload.object.annotations().get(ADOPT_ANNOTATION);
        mark.is_some_and(|text| Mode::read(text).is_some()) && self.is_placed(key, workload)
    }

    /// Whether the workload runs in all clusters where its status says so: then there is nothing to take over.
    fn is_placed(&self, key: &Key, workload: &Workload) -> bool {
        let is_there = |cluster: &str| {
            let member = self.base.context.fleet.member(cluster);
            let copy = member.and_then(|member| member.index::<Deployment>().get(key));
            copy.is_some_and(|copy| copy.meta.is_of(workload.uid()))
        };
        let mut held = workload.held().filter(|(_, replicas)| *replicas > 0).peekable();
        held.peek().is_some() && held.all(|(cluster, _)| is_there(cluster))
    }

    async fn not_adopted(
        &self,
        workload: &Workload,
        reason: Reason,
        message: &str,
        again: Duration,
    ) -> Result<Option<Action>, CallError> {
        self.base.report_undecided(workload, reason, message).await?;
        Ok(Some(Action::RequeueAfter(again)))
    }

    /// Asks every member whose namespace is open for the Deployment.
    async fn ask_all(&self, key: &Key, mode: &Mode, locations: &[String]) -> Result<Asked, CallError> {
        let mut asked = Asked::default();
        let mut members = Vec::new();
        for (name, cluster) in self.base.context.fleet.clusters.all() {
            // What nobody manages is taken over only where the workload is to be.
            if *mode == Mode::Unmanaged && !locations.contains(&name.name) {
                continue;
            }
            let member = self.base.context.fleet.member(&name.name);
            match member.filter(|member| member.is_known(Deployment::NEEDS)) {
                Some(member) => members.push((member, cluster)),
                None if is_given_up(&cluster) => {}
                None => asked.away.push(name.name),
            }
        }
        if !asked.away.is_empty() {
            return Ok(asked);
        }
        for (member, cluster) in members {
            let open =
                member.index::<Namespace>().get(&Key::cluster(&key.namespace)).is_some_and(|open| *open);
            if !open {
                continue;
            }
            let resource = ApiResource::erase::<Deployment>(&());
            let api: Api<DynamicObject> =
                Api::namespaced_with(member.client.clone(), &key.namespace, &resource);
            let what = format!("look for Deployment {key} in {}", member.name);
            let object = match member.gate.ask(what, api.get_opt(&key.name)).await {
                Ok(Some(object)) => object,
                Ok(None) => continue,
                Err(error) => {
                    asked.away.push(format!("{} ({})", member.name, foreign_text(&chain(&error))));
                    continue;
                }
            };
            let label = |name: &str| object.labels().get(name).map(String::as_str);
            let (hub, identity) = (label(HUB_LABEL), label(WORKLOAD_LABEL).map(str::to_owned));
            if identity.as_ref().is_some_and(|identity| !is_identity(identity)) {
                asked.problems.push(format!("{}: Deployment {key} names no workload", member.name));
                continue;
            }
            let labels = &object.data["spec"]["template"]["metadata"]["labels"];
            let placed_by_us = labels[WORKLOAD_LABEL].is_string();
            let may = match (hub, mode) {
                (Some(hub), Mode::FromHub(_)) if hub == self.base.context.hub.id => true,
                // It was taken over a moment ago, and its pods are as they were.
                (Some(hub), Mode::Unmanaged) if hub == self.base.context.hub.id => !placed_by_us,
                (Some(hub), Mode::FromHub(from)) => hub == from,
                (None, Mode::Unmanaged) => identity.is_none() && !placed_by_us,
                _ => false,
            };
            if may && !is_allowed(&cluster, mode) {
                let mode = mode.text();
                asked.problems.push(format!(
                    "{}: its ForeignCluster does not allow to take over Deployments of {mode}: `kubectl annotate \
                     foreigncluster {} {ALLOW_ADOPTION_ANNOTATION}={mode}` allows it",
                    member.name, member.name
                ));
            } else if may {
                asked.found.push(Found { member, object, identity });
            } else if hub == Some(self.base.context.hub.id.as_str()) {
                asked.problems.push(format!(
                    "{}: Deployment {key} was placed by this hub already: remove the annotation {ADOPT_ANNOTATION}",
                    member.name
                ));
            } else if let Some(hub) = hub {
                asked.problems.push(format!(
                    "{}: Deployment {key} belongs to the hub {hub}: `portolan adopt deployment {} -n {} --from-hub {hub}` \
                     takes it over",
                    member.name, key.name, key.namespace
                ));
            } else {
                asked.problems.push(format!(
                    "{}: nobody manages Deployment {key}: `portolan adopt deployment {} -n {} --unmanaged` takes it over",
                    member.name, key.name, key.namespace
                ));
            }
        }
        Ok(asked)
    }

    /// Puts our marks on a Deployment; answers whether the watch shows them.
    async fn take_over(&self, key: &Key, identity: &str, found: &Found) -> Result<Taken, CallError> {
        let Found { member, object, .. } = found;
        let uid = object.metadata.uid.clone().unwrap_or_default();
        // It was there before anything was decided: what it runs counts as placed.
        self.base.context.fleet.initial_copies.add(&member.name, Deployment::NAME, &uid);
        let ours = object.labels().get(HUB_LABEL) == Some(&self.base.context.hub.id)
            && object.labels().get(WORKLOAD_LABEL).map(String::as_str) == Some(identity);
        if ours {
            let shown = member.index::<Deployment>().get(key);
            let is_shown = shown.is_some_and(|copy| copy.meta.uid == uid && copy.meta.is_of(identity));
            return Ok(if is_shown { Taken::Shown } else { Taken::NotShown });
        }
        let patch = json!({"metadata": {
            "uid": uid,
            "resourceVersion": object.metadata.resource_version,
            "labels": { HUB_LABEL: self.base.context.hub.id, WORKLOAD_LABEL: identity },
            "annotations": { OWNER_ANNOTATION: key.to_string() },
        }});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let api: Api<Deployment> = Api::namespaced(member.client.clone(), &key.namespace);
        let what = format!("take over Deployment {key} in {}", member.name);
        match member
            .gate
            .call(&self.base.context.term, what, api.patch(&key.name, &params, &Patch::Merge(patch)))
            .await
        {
            // It has changed meanwhile, or is gone: all are asked again.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Taken::NotShown),
            Err(error) if error.is_final() => {
                Ok(Taken::Refused(format!("{}: {}", member.name, refusal_message(&error, &key.namespace))))
            }
            other => other.map(|_| Taken::NotShown),
        }
    }

    /// What a member would hold of a workload by another identity.
    fn desired_as(&self, workload: &Workload, identity: &str, unlabelled: bool) -> Value {
        let mut object = workload.object.clone();
        let annotations = object.metadata.annotations.get_or_insert_default();
        if unlabelled {
            let template = digest(&object.spec.template.0);
            annotations.insert(ADOPTED_TEMPLATE_ANNOTATION.to_owned(), template);
        } else {
            annotations.remove(ADOPTED_TEMPLATE_ANNOTATION);
        }
        super::desired::deployment(&object, identity, &self.base.context.hub.id, None, 1).0
    }
}

impl Workload {
    /// Whether its pods carry no labels of ours, since it was taken over from nobody and its template is still the same.
    ///
    /// The ledger knows its pods as those of others then. So it holds no room for replicas whose pods run, and the pods
    /// that are ready count as settled.
    pub(super) fn is_unlabelled(&self) -> bool {
        super::desired::is_unlabelled(&self.object)
    }

    /// What selects the pods of the workload in members, and no pods of others that have the same labels.
    pub(crate) fn pod_selector(&self) -> String {
        let own = (!self.is_unlabelled()).then(|| format!("{WORKLOAD_LABEL}={}", self.uid()));
        let selector = selector::to_text(&self.object.spec.selector);
        Some(selector).filter(|text| !text.is_empty()).into_iter().chain(own).collect::<Vec<_>>().join(",")
    }

    /// How much of what was decided for a cluster holds room beside the pods that the ledger sees: all of it, unless the
    /// ledger takes pods of the workload for those of others.
    pub(super) fn reserves(&self, replicas: u32, ready: i32) -> u32 {
        let counted_already = if self.is_unlabelled() { u32::try_from(ready).unwrap_or(0) } else { 0 };
        replicas.saturating_sub(counted_already)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_whose_deployments_are_taken_over() {
        assert_eq!(Mode::read("unmanaged"), Some(Mode::Unmanaged));
        assert_eq!(Mode::read("hub/a1-b2"), Some(Mode::FromHub("a1-b2".to_owned())));
        for bad in ["", "hub/", "hub/a b", "hub", "Unmanaged", "a1-b2"] {
            assert_eq!(Mode::read(bad), None, "{bad}");
        }
    }
    #[test]
    fn pods_of_others_with_the_same_labels_are_not_selected() {
        let workload = |annotations: Value| {
            let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
            let object = json!({
                "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment",
                "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "annotations": annotations},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
            });
            Workload::of(serde_json::from_value(object).unwrap())
        };
        let ours = workload(json!({}));
        assert_eq!(ours.pod_selector(), format!("app=web,{WORKLOAD_LABEL}=u1"));
        let template = digest(&ours.object.spec.template.0);
        let adopted = workload(json!({ADOPTED_TEMPLATE_ANNOTATION: template}));
        assert_eq!(adopted.pod_selector(), "app=web", "its pods have no labels of ours");
    }
}
