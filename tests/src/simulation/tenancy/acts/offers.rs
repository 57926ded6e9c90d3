//! Providers say what they share, consumers what they accept.

use super::{Story, objects};
use crate::simulation::tally::Drawn;
use crate::simulation::try_apply;
use crate::workload;
use kube::api::{DynamicObject, Patch, PatchParams};
use rand::RngExt;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const ACTS: &[Drawn] = &[
    Drawn::SharedPercentage,
    Drawn::SharedQuantities,
    Drawn::SharedClass,
    Drawn::ClassToZero,
    Drawn::SharedNoClass,
    Drawn::SharedNothing,
    Drawn::SharedByDefault,
    Drawn::DefaultChanged,
    Drawn::OfferManual,
    Drawn::OfferAcceptedByHand,
    Drawn::OfferMinimum,
    Drawn::TenantWorks,
    Drawn::TenantWorks,
];

/// A class that administrators name when they share.
fn gold(percentage: i32) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": "gold"},
        "spec": {"percentage": percentage, "defaultRequests": {"cpu": "50m", "memory": "32Mi"}},
    })
}

impl Story {
    pub(super) async fn offer(&mut self, drawn: Drawn) -> bool {
        let sharing = match drawn {
            Drawn::SharedPercentage => json!({"percentage": self.rng.random_range(1..=100)}),
            Drawn::SharedQuantities => {
                let cpu = self.rng.random_range(1..=9) * 500;
                json!({"resources": {"cpu": format!("{cpu}m"), "memory": "2Gi"}})
            }
            Drawn::SharedNothing => json!({"percentage": 0}),
            Drawn::SharedByDefault => Value::Null,
            Drawn::SharedNoClass => json!({"className": "nobody-made-it"}),
            Drawn::SharedClass => return self.share_class().await.is_some(),
            Drawn::ClassToZero => return self.class_to_zero().await,
            Drawn::DefaultChanged => return self.change_default().await,
            Drawn::TenantWorks => return self.work().await,
            _ => return self.accept_offer(drawn).await,
        };
        self.share(sharing).await
    }

    /// What `portolan share` writes: nothing of what was said before stays.
    async fn share(&mut self, sharing: Value) -> bool {
        let is_tenant = |cluster: &DynamicObject| cluster.data["spec"]["incoming"].is_object();
        let Some((site, cluster)) = self.one_of("ForeignCluster", is_tenant).await else { return false };
        self.write_sharing(site, &cluster, &sharing).await
    }

    async fn write_sharing(&self, site: usize, cluster: &DynamicObject, sharing: &Value) -> bool {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let mut whole = sharing.clone();
        if let Some(fields) = whole.as_object_mut() {
            for field in ["className", "percentage", "resources"] {
                fields.entry(field).or_insert(Value::Null);
            }
        }
        let patch = Patch::Merge(json!({"spec": {"incoming": {"sharing": whole}}}));
        let api = objects(&self.stage, site, "ForeignCluster", None);
        api.patch(name, &PatchParams::default(), &patch).await.is_ok()
    }

    /// Shares by a class; answers where, and how much.
    async fn share_class(&mut self) -> Option<(usize, i32)> {
        let is_tenant = |cluster: &DynamicObject| cluster.data["spec"]["incoming"].is_object();
        let (site, cluster) = self.one_of("ForeignCluster", is_tenant).await?;
        let percentage = self.rng.random_range(5..=90);
        let _ = try_apply(&self.stage.admin(site), &gold(percentage)).await;
        let is_written = self.write_sharing(site, &cluster, &json!({"className": "gold"})).await;
        is_written.then_some((site, percentage))
    }

    /// A class that is in use shares nothing for a while, and then as much as before.
    async fn class_to_zero(&mut self) -> bool {
        let Some((site, before)) = self.share_class().await else { return false };
        for percentage in [0, before] {
            tokio::time::sleep(Duration::from_secs(self.rng.random_range(1..=40))).await;
            if try_apply(&self.stage.admin(site), &gold(percentage)).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn change_default(&mut self) -> bool {
        let site = self.site();
        if self.rng.random_bool(0.3) {
            let classes = objects(&self.stage, site, "SharingClass", None);
            return classes.delete("default", &Default::default()).await.is_ok();
        }
        let class = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": "default"},
            "spec": {"default": true, "percentage": self.rng.random_range(5..=60)},
        });
        try_apply(&self.stage.admin(site), &class).await.is_ok()
    }

    /// A consumer decides about the offer of its provider.
    async fn accept_offer(&mut self, drawn: Drawn) -> bool {
        let is_provider = |cluster: &DynamicObject| cluster.data["spec"]["outgoing"].is_object();
        let Some((site, cluster)) = self.one_of("ForeignCluster", is_provider).await else { return false };
        let outgoing = match drawn {
            Drawn::OfferManual => {
                let how = ["Manual", "Automatic"][self.rng.random_range(0..2)];
                json!({"acceptance": how})
            }
            Drawn::OfferAcceptedByHand => {
                let offer = &cluster.data["status"]["outgoing"]["offer"];
                if !offer.is_string() {
                    return false;
                }
                json!({"acceptedOffer": offer})
            }
            _ => {
                let cpu = ["100m", "2", "50"][self.rng.random_range(0..3)];
                json!({"minimum": {"cpu": cpu}})
            }
        };
        let api = objects(&self.stage, site, "ForeignCluster", None);
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({"spec": {"outgoing": outgoing}}));
        api.patch(name, &PatchParams::default(), &patch).await.is_ok()
    }

    /// A consumer places pods, more or fewer.
    async fn work(&mut self) -> bool {
        let site = self.site();
        let mut web =
            workload(&format!("web-{}", self.stage.name(site)), self.rng.random_range(0..=5), json!({}));
        let cpu = self.rng.random_range(1..=6) * 250;
        let container = &mut web["spec"]["template"]["spec"]["containers"][0];
        container["resources"]["requests"] = json!({"cpu": format!("{cpu}m"), "memory": "64Mi"});
        try_apply(&self.stage.admin(site), &web).await.is_ok()
    }
}
