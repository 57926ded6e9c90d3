//! Dependents follow their owners.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, at};
use crate::verbs::{DeleteOptions, Part, Propagation};

/// The garbage collector: who is whose, by uid.
#[derive(Default)]
pub(super) struct Garbage {
    /// The uid of each object, and the uids of its owners.
    known: BTreeMap<Item, (String, Vec<String>)>,
    by_uid: BTreeMap<String, Item>,
    dependents: BTreeMap<String, BTreeSet<Item>>,
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        let item = Item { table: seen.table.clone(), key: seen.key.clone() };
        let owners = owner_uids(&seen.object);
        let before = self.forget(&item);
        if seen.kind == EventKind::Deleted {
            let uid = text(&seen.object, "/metadata/uid");
            for dependent in self.dependents.get(uid).into_iter().flatten() {
                queue.add(dependent.clone());
            }
            for owner in &owners {
                if let Some(owner) = self.by_uid.get(owner) {
                    queue.add(owner.clone());
                }
            }
            return;
        }
        let uid = text(&seen.object, "/metadata/uid").to_owned();
        for owner in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(item.clone());
        }
        self.by_uid.insert(uid.clone(), item.clone());
        let new_owners = !owners.is_empty() && before.is_none_or(|(_, old)| old != owners);
        let waits =
            has_finalizer(&seen.object, "foregroundDeletion") || has_finalizer(&seen.object, "orphan");
        if new_owners || deleting(&seen.object) && waits {
            queue.add(item.clone());
        }
        self.known.insert(item, (uid, owners));
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, _: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(&item.table, &item.key) else { return Ok(None) };
        let object = found.value();
        if deleting(&object) {
            if has_finalizer(&object, "orphan") {
                self.orphan_dependents(item, &object, api)?;
            } else if has_finalizer(&object, "foregroundDeletion") {
                self.delete_dependents(item, &object, api)?;
            }
            return Ok(None);
        }
        self.follow_owners(item, &object, api)?;
        Ok(None)
    }
}

impl Garbage {
    fn forget(&mut self, item: &Item) -> Option<(String, Vec<String>)> {
        let (uid, owners) = self.known.remove(item)?;
        self.by_uid.remove(&uid);
        for owner in &owners {
            if let Some(items) = self.dependents.get_mut(owner) {
                items.remove(item);
                if items.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        Some((uid, owners))
    }

    fn dependents_of(&self, object: &Value) -> Vec<Item> {
        let uid = text(object, "/metadata/uid");
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    fn orphan_dependents(&self, item: &Item, object: &Value, api: &mut Api) -> Result<(), ApiError> {
        let uid = text(object, "/metadata/uid");
        for dependent in self.dependents_of(object) {
            self.drop_owners(&dependent, api, |owner| text(owner, "/uid") == uid)?;
        }
        self.drop_finalizer(item, api, "orphan")
    }

    fn delete_dependents(&self, item: &Item, object: &Value, api: &mut Api) -> Result<(), ApiError> {
        let uid = text(object, "/metadata/uid");
        let mut blocked = false;
        for dependent in self.dependents_of(object) {
            let Some(found) = api.store.get(&dependent.table, &dependent.key) else { continue };
            let value = found.value();
            let owners = at(&value, "/metadata/ownerReferences").and_then(Value::as_array);
            blocked |= owners.into_iter().flatten().any(|owner| {
                text(owner, "/uid") == uid && owner.get("blockOwnerDeletion") == Some(&json!(true))
            });
            if !deleting(&value) {
                let policy = if self.dependents_of(&value).is_empty() {
                    Propagation::Background
                } else {
                    Propagation::Foreground
                };
                self.delete(&dependent, api, policy)?;
                blocked &= api.store.get(&dependent.table, &dependent.key).is_some();
            }
        }
        if blocked { Ok(()) } else { self.drop_finalizer(item, api, "foregroundDeletion") }
    }

    /// An object goes with the last of its owners; references to owners that are gone are dropped.
    fn follow_owners(&self, item: &Item, object: &Value, api: &mut Api) -> Result<(), ApiError> {
        let owners = owner_uids(object);
        if owners.is_empty() {
            return Ok(());
        }
        let state = |uid: &String| -> Option<bool> {
            let owner = self.by_uid.get(uid)?;
            let value = api.store.get(&owner.table, &owner.key)?.value();
            Some(deleting(&value) && has_finalizer(&value, "foregroundDeletion"))
        };
        let states: BTreeMap<&String, Option<bool>> = owners.iter().map(|uid| (uid, state(uid))).collect();
        let waiting = states.values().any(|state| *state == Some(true));
        let solid = states.values().any(|state| *state == Some(false));
        let leaving: Vec<String> = states
            .iter()
            .filter(|(_, state)| **state != Some(false))
            .map(|(uid, _)| (*uid).clone())
            .collect();
        if solid {
            if leaving.is_empty() {
                return Ok(());
            }
            return self
                .drop_owners(item, api, |owner| leaving.iter().any(|uid| *uid == text(owner, "/uid")));
        }
        let policy = if has_finalizer(object, "orphan") {
            Propagation::Orphan
        } else if has_finalizer(object, "foregroundDeletion")
            || waiting && !self.dependents_of(object).is_empty()
        {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        self.delete(item, api, policy)
    }

    fn delete(&self, item: &Item, api: &mut Api, policy: Propagation) -> Result<(), ApiError> {
        let Some(row) = api.registry.of_table(&item.table) else { return Ok(()) };
        let options = DeleteOptions { propagation_policy: Some(policy), ..DeleteOptions::default() };
        api.remove_object(&row, &item.key, &options)
    }

    fn drop_owners(&self, item: &Item, api: &mut Api, gone: impl Fn(&Value) -> bool) -> Result<(), ApiError> {
        let Some(row) = api.registry.of_table(&item.table) else { return Ok(()) };
        api.modify(&row, &item.key, Part::Main, self.name(), |object| {
            if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|owner| !gone(owner));
                if owners.is_empty() {
                    object["metadata"].as_object_mut().map(|metadata| metadata.remove("ownerReferences"));
                }
            }
        })?;
        Ok(())
    }

    fn drop_finalizer(&self, item: &Item, api: &mut Api, finalizer: &str) -> Result<(), ApiError> {
        let Some(row) = api.registry.of_table(&item.table) else { return Ok(()) };
        api.modify(&row, &item.key, Part::Main, self.name(), |object| {
            if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|found| found.as_str() != Some(finalizer));
                if finalizers.is_empty() {
                    object["metadata"].as_object_mut().map(|metadata| metadata.remove("finalizers"));
                }
            }
        })?;
        Ok(())
    }
}

fn owner_uids(object: &Value) -> Vec<String> {
    let owners = at(object, "/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().map(|owner| text(owner, "/uid").to_owned()).collect()
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let finalizers = at(object, "/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().any(|found| found.as_str() == Some(finalizer))
}
