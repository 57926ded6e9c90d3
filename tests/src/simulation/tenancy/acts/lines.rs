//! Invitations are used, as they should be and otherwise.

use super::{Finished, Line, Story, Use, objects};
use crate::simulation::tally::Drawn;
use kube::api::{ListParams, Patch, PatchParams};
use portolan_control::peering::NAMESPACE as OWN;
use rand::RngExt;
use serde_json::json;
use std::time::Duration;

pub(super) const ACTS: &[Drawn] = &[
    Drawn::LineUsed,
    Drawn::LineUsed,
    Drawn::LineUsed,
    Drawn::LineUsed,
    Drawn::InvitationMade,
    Drawn::InvitationOpens,
    Drawn::InvitationShort,
    Drawn::InvitationByHand,
    Drawn::InvitationShares,
    Drawn::InvitationInterrupted,
    Drawn::InvitationWithPods,
    Drawn::InvitationAccepted,
    Drawn::InvitationAccepted,
    Drawn::LineUsedAgain,
    Drawn::LineUsedByTwo,
    Drawn::LineStolen,
    Drawn::LineLate,
    Drawn::LineMisnamed,
    Drawn::LineRevoked,
    Drawn::LineUnserved,
    Drawn::LineUsedAtHome,
    Drawn::LineSecond,
    Drawn::LineInterrupted,
    Drawn::RenewedEarly,
];

impl Story {
    pub(super) async fn line(&mut self, drawn: Drawn) -> bool {
        let (provider, consumer) = self.two();
        match drawn {
            Drawn::InvitationMade
            | Drawn::InvitationOpens
            | Drawn::InvitationShort
            | Drawn::InvitationByHand
            | Drawn::InvitationShares => self.invite(provider, Some(drawn)).await.is_some(),
            Drawn::InvitationInterrupted => self.interrupted(provider).await,
            Drawn::InvitationWithPods => self.with_pods(provider, consumer).await,
            Drawn::InvitationAccepted => self.accept().await,
            Drawn::LineUsed => {
                let Some(line) = self.fresh(provider).await else { return false };
                self.use_line(line, consumer, |_| ());
                true
            }
            Drawn::LineUsedAgain => self.again(),
            Drawn::LineUsedByTwo => {
                let count = self.stage.sites.len();
                let Some(third) = (0..count).find(|site| ![provider, consumer].contains(site)) else {
                    return self.stolen(provider, consumer).await;
                };
                let Some(line) = self.fresh(provider).await else { return false };
                self.use_line(line, consumer, |_| ());
                self.use_line(line, third, |_| ());
                true
            }
            Drawn::LineStolen => self.stolen(provider, consumer).await,
            Drawn::LineLate => {
                let now = self.stage.world.clock().now();
                let late = |line: &Line| line.line.expires < now && !line.used;
                let line = match self.lines.iter().position(late) {
                    Some(found) => Some(found),
                    None => self.expired(provider).await,
                };
                let Some(line) = line else { return false };
                let consumer = if consumer == self.lines[line].provider { provider } else { consumer };
                self.use_line(line, consumer, |_| ());
                true
            }
            Drawn::LineMisnamed => self.misnamed(provider, consumer).await,
            Drawn::LineRevoked => self.revoked(provider, consumer).await,
            Drawn::LineUnserved => {
                let Some(line) = self.fresh(provider).await else { return false };
                if !self.stage.end(provider) {
                    return false;
                }
                self.tally.add(Drawn::ControllerDown);
                self.broken.down.insert(provider, 1);
                self.use_line(line, consumer, |_| ());
                true
            }
            Drawn::LineUsedAtHome => {
                let Some(line) = self.fresh(provider).await else { return false };
                self.use_line(line, provider, |with| with.name = "myself".to_owned());
                true
            }
            Drawn::LineSecond => {
                let Some((consumer, provider)) = self.peered.iter().next().copied() else { return false };
                let Some(line) = self.fresh(provider).await else { return false };
                self.use_line(line, consumer, |_| ());
                true
            }
            Drawn::LineInterrupted => {
                let Some(line) = self.fresh(provider).await else { return false };
                let patience = Duration::from_millis(self.rng.random_range(1..=600));
                self.use_line(line, consumer, |with| with.patience = Some(patience));
                true
            }
            _ => self.renew_early().await,
        }
    }

    /// Begins to use a line.
    pub(super) fn use_line(&mut self, line: usize, consumer: usize, edit: impl FnOnce(&mut Use)) {
        let (provider, line) = {
            let known = &mut self.lines[line];
            known.used = true;
            (known.provider, known.line.clone())
        };
        let name = self.stage.name(consumer);
        let mut with = Use {
            world: self.stage.world.clone(),
            clock: self.stage.clock(consumer),
            consumer: name,
            name: line.provider.name.clone(),
            key: format!("{name} uses {}", line.invitation),
            line,
            lifetime: self.stage.lifetime,
            patience: None,
        };
        edit(&mut with);
        let pair = (consumer, provider);
        let ended = self.ended.get(&pair).copied().unwrap_or(0);
        self.uses.spawn(async move { Finished { pair, ended, result: with.run().await } });
    }

    /// A cluster uses a line that it has used before.
    fn again(&mut self) -> bool {
        let pairs: Vec<(usize, usize)> = self.peered.iter().copied().collect();
        let used = self.lines.iter().rposition(|line| line.used);
        let Some(used) = used else { return false };
        let provider = self.lines[used].provider;
        let pair = pairs.into_iter().find(|pair| pair.1 == provider);
        let consumer = pair.map_or((provider + 1) % self.stage.sites.len(), |pair| pair.0);
        self.use_line(used, consumer, |_| ());
        true
    }

    /// Somebody in the same cluster has the line and makes a key of their own, before or after the owner.
    async fn stolen(&mut self, provider: usize, consumer: usize) -> bool {
        let Some(line) = self.fresh(provider).await else { return false };
        let invitation = self.lines[line].line.invitation.clone();
        self.use_line(line, consumer, |_| ());
        if self.rng.random_bool(0.5) {
            let pause = Duration::from_millis(self.rng.random_range(5..=3000));
            tokio::time::sleep(pause).await;
        }
        // The key that the owner keeps is lost, so that the next run makes another one.
        let secrets = objects(&self.stage, consumer, "Secret", Some(OWN));
        let _ = secrets.delete(&format!("invitation-{invitation}"), &Default::default()).await;
        self.named += 1;
        let key = format!("thief {}", self.named);
        self.doubt((consumer, provider));
        self.use_line(line, consumer, |with| with.key = key);
        true
    }

    /// The consumer calls the provider by a name that is taken, or that can be no name.
    async fn misnamed(&mut self, provider: usize, consumer: usize) -> bool {
        let Some(line) = self.fresh(provider).await else { return false };
        let count = self.stage.sites.len();
        let other = (0..count).find(|site| ![provider, consumer].contains(site));
        let wrong = match other {
            Some(other) if self.rng.random_bool(0.6) => self.stage.name(other).to_owned(),
            _ => "Not_A_Name".to_owned(),
        };
        self.use_line(line, consumer, |with| with.name = wrong);
        true
    }

    async fn revoked(&mut self, provider: usize, consumer: usize) -> bool {
        let Some(line) = self.fresh(provider).await else { return false };
        let name = self.lines[line].line.invitation.clone();
        self.lines[line].deleted = true;
        let invitations = objects(&self.stage, provider, "Invitation", Some(OWN));
        if invitations.delete(&name, &Default::default()).await.is_err() {
            return false;
        }
        self.doubt((consumer, provider));
        let pause = Duration::from_millis(self.rng.random_range(0..=4000));
        tokio::time::sleep(pause).await;
        self.use_line(line, consumer, |_| ());
        true
    }

    /// Somebody says that a certificate is due.
    async fn renew_early(&mut self) -> bool {
        let (first, count) = (self.site(), self.stage.sites.len());
        for site in (0..count).map(|each| (first + each) % count) {
            let secrets = objects(&self.stage, site, "Secret", Some(OWN));
            let list = secrets.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
            let due = "portolan.dev/renew-certificate-at";
            let held = list.into_iter().find(|secret| {
                secret.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(due))
            });
            let Some(name) = held.and_then(|secret| secret.metadata.name) else { continue };
            let patch = Patch::Merge(json!({"metadata": {"annotations": {due: "2020-01-01T00:00:00Z"}}}));
            return secrets.patch(&name, &PatchParams::default(), &patch).await.is_ok();
        }
        false
    }
}
