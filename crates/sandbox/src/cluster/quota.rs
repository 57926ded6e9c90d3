//! Resource quotas: what of them is used.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen};
use crate::admission::quota_status;
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey};
use crate::verbs::Part;

const TABLE: &str = "/resourcequotas";

/// The quotas of each namespace.
#[derive(Default)]
pub(super) struct Quotas {
    quotas: BTreeSet<ObjectKey>,
}

impl Controller for Quotas {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        if &*seen.table == TABLE {
            if seen.kind == EventKind::Deleted {
                self.quotas.remove(&seen.key);
            } else {
                self.quotas.insert(seen.key.clone());
                queue.add(Item::new(TABLE, &seen.key));
            }
        } else if &*seen.table != "/events" {
            for key in self.quotas.iter().filter(|key| key.namespace == seen.key.namespace) {
                queue.add(Item::new(TABLE, key));
            }
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, _: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let status = quota_status(api, &item.key.namespace, &found.value());
        let row = api.row("", "resourcequotas")?;
        api.modify(&row, &item.key, Part::Status, self.name(), |quota: &mut Value| quota["status"] = status)?;
        Ok(None)
    }
}
