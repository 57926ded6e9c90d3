//! What administrators try, and what is refused each time.

use super::{Story, objects};
use crate::NAMESPACE;
use crate::simulation::tally::Drawn;
use crate::simulation::tenancy::commands::PeeringByContext;
use kube::api::{DynamicObject, Patch, PatchParams};
use portolan_control::peering::NAMESPACE as OWN;
use portolan_control::tenancy::{TenancyError, invite};
use portolan_core::tenancy::InvitationLine;
use rand::RngExt;
use serde_json::json;
use std::time::Duration;

pub(super) const ACTS: &[Drawn] = &[
    Drawn::InvitationRefusedForPods,
    Drawn::InvitationTwice,
    Drawn::PeeredByContext,
    Drawn::SystemNamespaceAsked,
];

/// How long administrators wait for a command.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whether a command to invite has found that its invitation exists.
fn is_refused(made: &Result<InvitationLine, TenancyError>) -> bool {
    matches!(made, Err(TenancyError::Call(error)) if error.is_conflict())
}

impl Story {
    pub(super) async fn refusal(&mut self, drawn: Drawn) -> bool {
        match drawn {
            Drawn::InvitationRefusedForPods => self.invite_beside_pods().await,
            Drawn::InvitationTwice => self.invite_twice().await,
            Drawn::PeeredByContext => self.peer_over_invitation().await,
            _ => self.ask_for_system_namespace().await,
        }
    }

    /// `portolan invite` without `--with-pods`, into the namespace of the provider's own pods.
    async fn invite_beside_pods(&mut self) -> bool {
        let provider = self.site();
        let looking = self.stage.own_pods(self.stage.commands(provider));
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(Ok(0)) => {
                let place = self.stage.name(provider);
                self.wrong.push(format!("the command to invite finds no pods where {place} runs its own"));
                false
            }
            Ok(Ok(_)) => true,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Two invitations of one name, at the same time or one after the other: one of them is made.
    async fn invite_twice(&mut self) -> bool {
        let provider = self.site();
        let (with, by_hand) = self.describe(provider, None);
        let (client, now) = (self.stage.commands(provider), self.stage.clock(provider).now());
        let pause = Duration::from_millis(self.rng.random_range(0..=500));
        let later = async {
            tokio::time::sleep(pause).await;
            Box::pin(invite(&client, &with, now)).await
        };
        let (one, other) = futures::future::join(Box::pin(invite(&client, &with, now)), later).await;
        let any_refused = is_refused(&one) || is_refused(&other);
        if one.is_ok() && other.is_ok() {
            let place = self.stage.name(provider);
            self.wrong.push(format!("two commands have made an invitation of one name in {place}"));
        }
        for line in [one, other].into_iter().flatten() {
            self.remember(provider, line, by_hand);
        }
        any_refused
    }

    /// `portolan peer --remote-context` of a provider, by its name or by another one.
    async fn peer_over_invitation(&mut self) -> bool {
        let is_provider = |cluster: &DynamicObject| {
            cluster.data["spec"]["outgoing"].is_object() && cluster.metadata.deletion_timestamp.is_none()
        };
        let Some((site, cluster)) = self.one_of("ForeignCluster", is_provider).await else { return false };
        let Some(other) = self.stands_for(&cluster) else { return false };
        let own = cluster.metadata.name.unwrap_or_default();
        let name = if self.rng.random_bool(0.5) { own } else { "by-context".to_owned() };
        let work = Box::pin(self.stage.peer_by_context(site, other, &name));
        let result = tokio::time::timeout(PATIENCE, work).await;
        let (from, to) = (self.stage.name(site), self.stage.name(other));
        self.note(&format!("command of {from} to peer with {to} by a context: {result:?}"));
        if matches!(result, Ok(Ok(PeeringByContext::Done))) {
            self.wrong.push(format!("{from} has peered with {to} by a context over an invitation"));
        }
        matches!(result, Ok(Ok(PeeringByContext::Refused)))
    }

    /// A namespace of the system is written where those are that a consumer may use.
    async fn ask_for_system_namespace(&mut self) -> bool {
        let kind = ["ForeignCluster", "Invitation"][self.rng.random_range(0..2)];
        let is_one = |object: &DynamicObject| {
            kind == "Invitation" || object.data["spec"]["incoming"]["user"].is_string()
        };
        let Some((site, object)) = self.one_of(kind, is_one).await else { return false };
        let system = ["kube-system", OWN, "portolan-tenant-other"][self.rng.random_range(0..3)];
        let wanted = json!({"namespaces": [NAMESPACE, system]});
        let spec = if kind == "Invitation" { wanted } else { json!({"incoming": wanted}) };
        let api = objects(&self.stage, site, kind, object.metadata.namespace.as_deref());
        let name = object.metadata.name.unwrap_or_default();
        let patch = Patch::Merge(json!({"spec": spec}));
        match api.patch(&name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) => status.code == 422,
            Err(_) => false,
            Ok(_) => {
                let place = self.stage.name(site);
                self.wrong.push(format!("{kind} {name} in {place} opens namespace {system}"));
                false
            }
        }
    }
}
