//! Invitations are made, and accepted by hand.

use super::{Line, Story, objects};
use crate::NAMESPACE;
use crate::simulation::tally::Drawn;
use crate::simulation::tenancy::commands::inviting;
use crate::simulation::tenancy::own_work::OWN_WORK;
use jiff::SignedDuration;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::invitation::Acceptance;
use portolan_api::sharing::Sharing;
use portolan_control::peering::NAMESPACE as OWN;
use portolan_control::tenancy::{Inviting, TENANT_POLICY, invite};
use portolan_core::tenancy::InvitationLine;
use rand::RngExt;
use serde_json::json;
use std::time::Duration;

impl Story {
    /// An invitation of a cluster that nobody has used, or a new one.
    pub(super) async fn fresh(&mut self, provider: usize) -> Option<usize> {
        let now = self.stage.world.clock().now();
        let open =
            |line: &Line| line.provider == provider && !line.used && !line.deleted && line.line.expires > now;
        match self.lines.iter().position(open) {
            Some(found) => Some(found),
            None => Box::pin(self.invite(provider, None)).await,
        }
    }

    pub(super) async fn invite(&mut self, provider: usize, asked: Option<Drawn>) -> Option<usize> {
        let (with, by_hand) = self.describe(provider, asked);
        let line = self.make(provider, &with, by_hand).await?;
        if asked.is_none() {
            self.tally.add(Drawn::InvitationMade);
        }
        Some(line)
    }

    async fn make(&mut self, provider: usize, with: &Inviting, by_hand: bool) -> Option<usize> {
        let (client, now) = (self.stage.commands(provider), self.stage.clock(provider).now());
        let line = match Box::pin(invite(&client, with, now)).await {
            Ok(made) => made,
            Err(error) => {
                self.note(&format!("the command to invite failed: {error}"));
                return None;
            }
        };
        self.check_policy(provider).await;
        Some(self.remember(provider, line, by_hand))
    }

    /// Remembers an invitation that was made; answers its place.
    pub(super) fn remember(&mut self, provider: usize, mut line: InvitationLine, by_hand: bool) -> usize {
        // Times of the world, for those who ask whether it has expired.
        line.expires = line.expires.saturating_sub(self.stage.sites[provider].ahead).unwrap_or(line.expires);
        self.lines.push(Line { provider, line, by_hand, deleted: false, used: false });
        self.lines.len() - 1
    }

    /// Whoever invites finds the admission policy of tenants there, or creates it again.
    async fn check_policy(&mut self, provider: usize) {
        let admin = self.stage.admin(provider);
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(admin.clone());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(admin);
        let policy = policies.get_metadata_opt(TENANT_POLICY).await;
        let binding = bindings.get_metadata_opt(TENANT_POLICY).await;
        if !matches!((policy, binding), (Ok(Some(_)), Ok(Some(_)))) {
            let place = self.stage.name(provider);
            self.wrong.push(format!("{place} has invited, and there no admission policy bounds tenants"));
        }
    }

    /// A new invitation that nobody has used until it has expired.
    pub(super) async fn expired(&mut self, provider: usize) -> Option<usize> {
        let line = self.invite(provider, Some(Drawn::InvitationShort)).await?;
        self.tally.add(Drawn::InvitationShort);
        tokio::time::sleep(Duration::from_secs(65)).await;
        Some(line)
    }

    /// A cluster asks by a new invitation, and waits to be accepted.
    pub(super) async fn wait_for_acceptance(&mut self) {
        let (provider, consumer) = self.two();
        let Some(line) = self.invite(provider, Some(Drawn::InvitationByHand)).await else { return };
        self.tally.add(Drawn::InvitationByHand);
        self.use_line(line, consumer, |_| ());
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    /// The namespace in which the provider's own pods run is opened, by `--with-pods`, and the line is used.
    pub(super) async fn with_pods(&mut self, provider: usize, consumer: usize) -> bool {
        let (mut with, by_hand) = self.describe(provider, None);
        with.namespaces.push(OWN_WORK.to_owned());
        let Some(line) = self.make(provider, &with, by_hand).await else { return false };
        self.use_line(line, consumer, |_| ());
        true
    }

    /// What the administrator says who invites.
    pub(super) fn describe(&mut self, provider: usize, asked: Option<Drawn>) -> (Inviting, bool) {
        let mut drawn = |what: Drawn, chance: f64| {
            let yes = asked == Some(what) || self.rng.random_bool(chance);
            if yes && asked != Some(what) {
                self.tally.add(what);
            }
            yes
        };
        let opens = drawn(Drawn::InvitationOpens, 0.6);
        let short = drawn(Drawn::InvitationShort, 0.15);
        let by_hand = drawn(Drawn::InvitationByHand, 0.15);
        let shares = drawn(Drawn::InvitationShares, 0.5);
        let life = SignedDuration::from_secs(if short { 60 } else { self.rng.random_range(300..=1800) });
        let (now, random) = (self.stage.clock(provider).now(), self.rng.random::<[u8; 10]>());
        let mut with = inviting(self.stage.name(provider), now, life, random);
        if opens {
            with.namespaces.push(NAMESPACE.to_owned());
        }
        if by_hand {
            with.acceptance = Acceptance::Manual;
        }
        if shares {
            let percentage = Some(self.rng.random_range(0..=100));
            with.sharing = Some(Sharing { percentage, ..Sharing::default() });
        }
        (with, by_hand)
    }

    /// The command to invite ends in the middle.
    pub(super) async fn interrupted(&mut self, provider: usize) -> bool {
        let (with, _) = self.describe(provider, None);
        let (client, now) = (self.stage.commands(provider), self.stage.clock(provider).now());
        let patience = Duration::from_millis(self.rng.random_range(5..=250));
        let _ = tokio::time::timeout(patience, Box::pin(invite(&client, &with, now))).await;
        true
    }

    /// `portolan accept` for one that waits, or will.
    pub(super) async fn accept(&mut self) -> bool {
        // Also others wait: those that say that they are a cluster that is known.
        let waits = |line: &Line| (line.by_hand || line.used) && !line.deleted;
        let Some(line) = self.lines.iter().rposition(waits) else { return false };
        self.accept_line(line).await
    }

    pub(super) async fn accept_line(&self, line: usize) -> bool {
        let line = &self.lines[line];
        let (provider, name) = (line.provider, line.line.invitation.clone());
        let invitations = objects(&self.stage, provider, "Invitation", Some(OWN));
        let patch = Patch::Merge(json!({"spec": {"accepted": true}}));
        invitations.patch(&name, &PatchParams::default(), &patch).await.is_ok()
    }
}
