//! Writes to CloudProvisioners in the hub, by compare-and-swap on the version that was read.

use super::Provision;
use crate::driver::{replace_status_by, set_finalizer_by};
use crate::names::PROVISIONER_FINALIZER;
use kube::Api;
use portolan_api::{CloudProvisioner, CloudProvisionerStatus};
use portolan_runtime::CallError;

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
        let written = replace_status_by(&self.context.term, &self.api(), object, status).await?;
        Ok(written.is_some())
    }

    /// Adds our finalizer, or removes it. If the object has changed meanwhile, the next round does it.
    ///
    /// # Errors
    /// The hub cannot be asked.
    pub(super) async fn set_finalizer(
        &self,
        object: &CloudProvisioner,
        is_on: bool,
    ) -> Result<(), CallError> {
        let api = self.api();
        match set_finalizer_by(&self.context.term, &api, object, PROVISIONER_FINALIZER, is_on).await {
            Err(error) if error.is_conflict() => Ok(()),
            other => other,
        }
    }

    fn api(&self) -> Api<CloudProvisioner> {
        Api::all(self.context.hub.client.clone())
    }
}
