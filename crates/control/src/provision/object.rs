//! Writes to CloudProvisioners in the hub, by compare-and-swap on the version that was read.

use super::Provision;
use crate::names::{FIELD_MANAGER, PROVISIONER_FINALIZER};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use portolan_api::{CloudProvisioner, CloudProvisionerStatus};
use portolan_runtime::CallError;
use serde_json::json;

/// Whether our finalizer is on a CloudProvisioner.
pub(super) fn has_finalizer(object: &CloudProvisioner) -> bool {
    object.metadata.finalizers.iter().flatten().any(|each| each == PROVISIONER_FINALIZER)
}

impl Provision {
    /// Replaces the status; answers whether the object was still as it was read.
    ///
    /// # Errors
    /// The hub cannot be asked, or refuses the status.
    pub(super) async fn write_status(
        &self,
        object: &CloudProvisioner,
        status: &CloudProvisionerStatus,
    ) -> Result<bool, CallError> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let update = CloudProvisioner { status: Some(status.clone()), ..object.clone() };
        let what = format!("write status of CloudProvisioner {name}");
        let written = self.context.term.call(what, self.api().replace_status(name, &params, &update)).await;
        was_unchanged(written)
    }

    /// Adds our finalizer.
    ///
    /// # Errors
    /// The hub cannot be asked, or the object has changed meanwhile.
    pub(super) async fn add_finalizer(&self, object: &CloudProvisioner) -> Result<(), CallError> {
        let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(PROVISIONER_FINALIZER.to_owned());
        self.set_finalizers(object, &finalizers).await
    }

    /// Removes our finalizer.
    ///
    /// # Errors
    /// The hub cannot be asked, or the object has changed meanwhile.
    pub(super) async fn remove_finalizer(&self, object: &CloudProvisioner) -> Result<(), CallError> {
        let all = object.metadata.finalizers.iter().flatten();
        let kept: Vec<String> = all.filter(|each| *each != PROVISIONER_FINALIZER).cloned().collect();
        self.set_finalizers(object, &kept).await
    }

    async fn set_finalizers(
        &self,
        object: &CloudProvisioner,
        finalizers: &[String],
    ) -> Result<(), CallError> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let version = &object.metadata.resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("set finalizers of CloudProvisioner {name}");
        let written =
            self.context.term.call(what, self.api().patch(name, &params, &Patch::Merge(patch))).await;
        was_unchanged(written).map(|_| ())
    }

    fn api(&self) -> Api<CloudProvisioner> {
        Api::all(self.context.hub.client.clone())
    }
}

/// Whether a write found the object as it was read. One that did not is made again on what the object is by then.
fn was_unchanged<T>(written: Result<T, CallError>) -> Result<bool, CallError> {
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}
