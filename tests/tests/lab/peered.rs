//! Members that `portolan peer` made, whose rights, tokens and admission change while Portolan is at work.

use super::fleet::Fleet;
use super::peering::address;
use super::proof::shown;
use super::{admission, can_run, expiry, kubectl_apply, rights};
use anyhow::{Context, Result};
use jiff::Timestamp;
use portolan_control::peering::{Names, Peer, Sides, identity, join};
use portolan_lab::{Cluster, Lab};
use portolan_tests::{NAMESPACE, open_namespace};
use serde_json::Value;

/// A member, as `portolan peer` knows it.
pub(super) struct Peered<'a> {
    pub(super) hub: &'a Cluster,
    pub(super) member: &'a Cluster,
    pub(super) names: Names,
    sides: Sides,
}

impl<'a> Peered<'a> {
    pub(super) async fn new(hub: &'a Cluster, member: &'a Cluster) -> Result<Self> {
        let sides =
            Sides { hub: hub.client().await?, member: member.client().await?, address: address(member)? };
        let names = Names::of(&identity(&sides.hub, "the hub").await?);
        Ok(Self { hub, member, names, sides })
    }

    /// Makes it a member, or gives the hub a new token for it.
    pub(super) async fn join(&self) -> Result<()> {
        let peer = Peer {
            name: self.member.name().to_owned(),
            namespaces: vec![NAMESPACE.to_owned()],
            token_lifetime: 3600,
            ..Peer::default()
        };
        join(&self.sides, &peer, Timestamp::now(), &|_| ()).await.map(|_| ()).map_err(Into::into)
    }

    /// A condition of its ForeignCluster.
    pub(super) async fn condition(&self, type_: &str) -> Result<Value> {
        let text = self.hub.kubectl(&["get", "foreigncluster", self.member.name(), "-o", "json"]).await?;
        let object: Value = serde_json::from_str(&text)?;
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|each| each["type"] == type_).with_context(|| format!("no condition {type_}"))
    }
}

impl Fleet {
    /// Starts clusters that are members by `portolan peer`, so with the rights of its account only.
    pub(super) async fn peered(members: u32) -> Result<Self> {
        let fleet = Self { lab: Lab::builder().clusters(members + 1).start().await? };
        let joined = Box::pin(async {
            let hub = fleet.hub()?;
            for member in fleet.members() {
                Peered::new(hub, member).await?.join().await?;
            }
            kubectl_apply(hub, &[open_namespace()]).await.map(|_| ())
        });
        shown(&fleet.lab, joined).await?;
        Ok(fleet)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_takes_rights_tokens_or_templates_away_costs_only_itself() -> Result<()> {
    if !can_run("a_member_that_takes_rights_tokens_or_templates_away_costs_only_itself") {
        return Ok(());
    }
    let fleet = Fleet::peered(2).await?;
    Box::pin(fleet.prove(prove)).await
}

async fn prove(fleet: &Fleet) -> Result<()> {
    let peered = Peered::new(fleet.hub()?, fleet.member("c2")?).await?;
    admission::prove(fleet).await?;
    rights::prove(fleet, &peered).await?;
    expiry::prove(fleet, &peered).await
}
