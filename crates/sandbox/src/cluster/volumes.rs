//! Volumes: a claim that asks for any gets one of its size at once, and it goes with the claim.

use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey, at};
use crate::verbs::{DeleteOptions, Part};

const CLAIMS: &str = "/persistentvolumeclaims";
const VOLUMES: &str = "/persistentvolumes";
/// Who made a volume, as the volume tells.
const PROVISIONER: &str = "sandbox.portolan.dev";

pub(super) struct Volumes;

impl Controller for Volumes {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        if &*seen.table != CLAIMS {
            return;
        }
        if seen.kind != EventKind::Deleted {
            queue.add(Item::new(CLAIMS, &seen.key));
        } else if !text(&seen.object, "/spec/volumeName").is_empty() {
            queue.add(Item::new(VOLUMES, &ObjectKey::new("", text(&seen.object, "/spec/volumeName"))));
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, _: &View) -> Result<Option<Duration>, ApiError> {
        if &*item.table == VOLUMES { self.release(&item.key, api) } else { self.bind(&item.key, api) }
            .map(|()| None)
    }
}

impl Volumes {
    /// Makes a volume for a claim. A claim that wants a certain volume, or none made for it (an empty class), waits.
    fn bind(&self, key: &ObjectKey, api: &mut Api) -> Result<(), ApiError> {
        let Some(claim) = api.store.get(CLAIMS, key).map(|found| found.value()) else { return Ok(()) };
        let certain = ["/spec/volumeName", "/spec/selector"].iter().any(|field| at(&claim, field).is_some())
            || at(&claim, "/spec/storageClassName") == Some(&json!(""));
        if deleting(&claim) || certain || text(&claim, "/status/phase") == "Bound" {
            return Ok(());
        }
        let name = format!("pvc-{}", text(&claim, "/metadata/uid"));
        let volume_key = ObjectKey::new("", &name);
        let row = api.row("", "persistentvolumes")?;
        if api.store.get(VOLUMES, &volume_key).is_none() {
            api.create(&row, "", volume_for(&claim, &name), &Writer::named(self.name()))?;
        }
        api.modify(&row, &volume_key, Part::Status, self.name(), |volume| {
            volume["status"] = json!({"phase": "Bound"});
        })?;
        let row = api.row("", "persistentvolumeclaims")?;
        api.modify(&row, key, Part::Main, self.name(), |claim| {
            claim["spec"]["volumeName"] = json!(name);
            for annotation in ["bind-completed", "bound-by-controller"] {
                claim["metadata"]["annotations"][format!("pv.kubernetes.io/{annotation}")] = json!("yes");
            }
        })?;
        api.modify(&row, key, Part::Status, self.name(), |claim| {
            claim["status"] = json!({
                "phase": "Bound",
                "accessModes": claim["spec"]["accessModes"],
                "capacity": claim["spec"]["resources"]["requests"],
            });
        })?;
        Ok(())
    }

    /// Deletes the volume of a claim that is gone, if it was made for it.
    fn release(&self, key: &ObjectKey, api: &mut Api) -> Result<(), ApiError> {
        let Some(volume) = api.store.get(VOLUMES, key).map(|found| found.value()) else { return Ok(()) };
        let row = api.row("", "persistentvolumes")?;
        if text(&volume, "/spec/persistentVolumeReclaimPolicy") == "Delete" {
            return api.remove_object(&row, key, &DeleteOptions::default());
        }
        api.modify(&row, key, Part::Status, self.name(), |volume| {
            volume["status"]["phase"] = json!("Released");
        })?;
        Ok(())
    }
}

fn volume_for(claim: &Value, name: &str) -> Value {
    let mut spec = json!({
        "accessModes": claim["spec"]["accessModes"],
        "capacity": claim["spec"]["resources"]["requests"],
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": text(claim, "/metadata/namespace"),
            "name": text(claim, "/metadata/name"),
            "uid": text(claim, "/metadata/uid"),
        },
        "csi": {"driver": PROVISIONER, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": "Delete",
    });
    for field in ["storageClassName", "volumeMode"] {
        if let Some(value) = at(claim, &format!("/spec/{field}")) {
            spec[field] = value.clone();
        }
    }
    json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": spec,
    })
}
