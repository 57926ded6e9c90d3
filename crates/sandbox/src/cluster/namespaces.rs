//! Namespaces get what every namespace has, and are emptied before they go.

use std::time::Duration;

use serde_json::json;

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey};
use crate::verbs::{DeleteOptions, Part, Propagation};

/// How long until a namespace with contents that do not go is looked at again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Namespaces;

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        if &*seen.table == "/namespaces" && seen.kind != EventKind::Deleted {
            queue.add(Item::new("/namespaces", &seen.key));
        }
        // What every namespace has comes back when somebody deletes it.
        let furniture = match &*seen.table {
            "/serviceaccounts" => &*seen.key.name == "default",
            "/configmaps" => &*seen.key.name == "kube-root-ca.crt",
            _ => false,
        };
        if furniture && seen.kind == EventKind::Deleted {
            queue.add(Item::new("/namespaces", &ObjectKey::new("", &seen.key.namespace)));
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, _: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get("/namespaces", &item.key) else { return Ok(None) };
        let name = &*item.key.name;
        if !deleting(&found.value()) {
            self.furnish(api, name)?;
            return Ok(None);
        }
        if self.empty(api, name)? {
            let row = api.row("", "namespaces")?;
            api.modify(&row, &item.key, Part::Finalize, self.name(), |object| {
                object["spec"]["finalizers"] = json!([]);
            })?;
            return Ok(None);
        }
        Ok(Some(AGAIN))
    }
}

impl Namespaces {
    fn furnish(&self, api: &mut Api, namespace: &str) -> Result<(), ApiError> {
        let writer = Writer::named(self.name());
        let account = json!({"metadata": {"name": "default"}});
        let roots = json!({
            "metadata": {"name": "kube-root-ca.crt", "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver."}},
            "data": {"ca.crt": api.authority()?.pem()},
        });
        for (plural, name, object) in
            [("serviceaccounts", "default", account), ("configmaps", "kube-root-ca.crt", roots)]
        {
            let row = api.row("", plural)?;
            if api.store.get(&row.table, &ObjectKey::new(namespace, name)).is_none() {
                api.create(&row, namespace, object, &writer)?;
            }
        }
        Ok(())
    }

    /// Deletes all that is in a namespace; true if nothing is left.
    fn empty(&self, api: &mut Api, namespace: &str) -> Result<bool, ApiError> {
        let options =
            DeleteOptions { propagation_policy: Some(Propagation::Background), ..DeleteOptions::default() };
        let mut left = false;
        for table in api.store.tables() {
            let Some(row) = api.registry.of_table(&table).filter(|row| row.namespaced) else { continue };
            let keys: Vec<ObjectKey> =
                api.store.scan(&table, Some(namespace), None).map(|object| object.key.clone()).collect();
            for key in keys {
                api.remove_object(&row, &key, &options)?;
                left |= api.store.get(&table, &key).is_some();
            }
        }
        Ok(!left)
    }
}
