//! ControllerRevisions: the templates that a StatefulSet or a DaemonSet has had, to tell its pods apart and to roll back.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::deployment::short_hash;
use super::events::fnv;
use super::view::View;
use super::{control_reference, controller_of, number, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{ObjectKey, at};
use crate::verbs::{DeleteOptions, Part};

const TABLE: &str = "apps/controllerrevisions";
const MANAGER: &str = "kube-controller-manager";
/// The label of pods that tells their revision.
pub(super) const REVISION: &str = "controller-revision-hash";

/// One template of a set.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    key: ObjectKey,
    number: i64,
    /// The pod template, as the set had it.
    pub(super) template: Value,
}

impl Revision {
    fn of(key: &ObjectKey, object: &Value) -> Self {
        let mut template = at(object, "/data/spec/template").cloned().unwrap_or_default();
        if let Some(fields) = template.as_object_mut() {
            fields.remove("$patch");
        }
        Self { key: key.clone(), number: number(object, "/revision"), template }
    }

    /// The name of the ControllerRevision: that of its set, and a hash.
    pub(super) fn name(&self) -> &str {
        &self.key.name
    }

    /// The hash alone.
    pub(super) fn hash(&self) -> &str {
        self.key.name.rsplit('-').next().unwrap_or_default()
    }
}

/// The revisions of a set.
pub(super) struct History {
    /// Oldest first, without the newest.
    older: Vec<Revision>,
    /// That of the present template.
    pub(super) newest: Revision,
    /// How often a hash was already taken by another template.
    pub(super) collisions: i64,
}

impl History {
    /// Reads the revisions of a set; makes one of its present template if there is none, or the newest of an older one.
    ///
    /// `hash_label` is the label by which the revisions themselves tell their hash.
    pub(super) fn keep(api: &mut Api, view: &View, set: &Value, hash_label: &str) -> Result<Self, ApiError> {
        let mut known: Vec<Revision> = view
            .revisions
            .of(text(set, "/metadata/uid"))
            .filter_map(|key| Some(Revision::of(key, &api.store.get(TABLE, key)?.value())))
            .collect();
        known.sort_by(|a, b| (a.number, &a.key).cmp(&(b.number, &b.key)));
        let template = set.pointer("/spec/template").cloned().unwrap_or_default();
        let next = known.last().map_or(0, |last| last.number) + 1;
        let collisions = number(set, "/status/collisionCount");
        let Some(index) = known.iter().rposition(|revision| revision.template == template) else {
            let (newest, collisions) = create(api, set, template, next, hash_label)?;
            return Ok(Self { older: known, newest, collisions });
        };
        let mut newest = known.remove(index);
        if index < known.len() {
            let row = api.row("apps", "controllerrevisions")?;
            api.modify(&row, &newest.key, Part::Main, MANAGER, |object| object["revision"] = json!(next))?;
            newest.number = next;
        }
        Ok(Self { older: known, newest, collisions })
    }

    /// The revision of that name, if it is still there.
    pub(super) fn find(&self, name: &str) -> Option<&Revision> {
        self.older.iter().chain([&self.newest]).find(|revision| revision.name() == name)
    }

    /// Deletes the oldest revisions beyond the set's `revisionHistoryLimit`, apart from the newest and those `in_use`.
    pub(super) fn truncate(
        &self,
        api: &mut Api,
        set: &Value,
        in_use: &BTreeSet<&str>,
    ) -> Result<(), ApiError> {
        let limit = usize::try_from(number(set, "/spec/revisionHistoryLimit")).unwrap_or(0);
        let used = |revision: &Revision| in_use.contains(revision.name()) || in_use.contains(revision.hash());
        let idle: Vec<&Revision> = self.older.iter().filter(|revision| !used(revision)).collect();
        let row = api.row("apps", "controllerrevisions")?;
        for revision in idle.iter().take(idle.len().saturating_sub(limit)) {
            api.remove_object(&row, &revision.key, &DeleteOptions::default())?;
        }
        Ok(())
    }
}

/// Creates a revision. A name that another template has is left alone; one that nobody controls any more is taken over.
fn create(
    api: &mut Api,
    set: &Value,
    template: Value,
    revision: i64,
    hash_label: &str,
) -> Result<(Revision, i64), ApiError> {
    let row = api.row("apps", "controllerrevisions")?;
    let namespace = text(set, "/metadata/namespace");
    let written = template.to_string();
    let mut data = json!({"spec": {"template": template}});
    data["spec"]["template"]["$patch"] = json!("replace");
    let mut collisions = number(set, "/status/collisionCount");
    loop {
        let hash = short_hash(fnv(&[&written, &collisions.to_string()]));
        let name = format!("{}-{hash}", text(set, "/metadata/name"));
        let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        labels[hash_label] = json!(hash);
        let mut metadata =
            json!({"name": name, "labels": labels, "ownerReferences": [control_reference(set)]});
        if let Some(annotations) = at(set, "/metadata/annotations") {
            metadata["annotations"] = annotations.clone();
        }
        let object = json!({"metadata": metadata, "data": data, "revision": revision});
        let key = ObjectKey::new(namespace, &name);
        match api.create(&row, namespace, object, &Writer::named(MANAGER)) {
            Ok(made) => return Ok((Revision::of(&key, &made.value()), collisions)),
            Err(error) if error.reason == "AlreadyExists" => {
                let found = api.store.get(TABLE, &key).map(|found| found.value());
                let free = found.filter(|found| controller_of(found).is_none() && found["data"] == data);
                if free.is_some() {
                    api.modify(&row, &key, Part::Main, MANAGER, |object| {
                        object["metadata"]["ownerReferences"] = json!([control_reference(set)]);
                        object["revision"] = json!(revision);
                    })?;
                    return Ok((Revision { key, number: revision, template }, collisions));
                }
                collisions += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
