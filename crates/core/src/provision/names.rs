//! CloudProvisioners that ask for the same name.

use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

/// The name that a CloudProvisioner asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The name of the CloudProvisioner.
    pub provisioner: String,
    /// Its `cloudClusterName`.
    pub cluster_name: String,
    /// Whether it has a cluster already.
    pub begun: bool,
    /// When it was created.
    pub created_at: Option<Timestamp>,
}

/// The CloudProvisioners whose name another one has, each with that one: one with a cluster comes first, then the older.
#[must_use]
pub fn rivals(claims: &[Claim]) -> BTreeMap<String, String> {
    let rank = |claim: &Claim| (!claim.begun, claim.created_at, claim.provisioner.clone());
    let mut first: BTreeMap<&str, &Claim> = BTreeMap::new();
    for claim in claims {
        let holder = first.entry(&claim.cluster_name).or_insert(claim);
        if rank(claim) < rank(holder) {
            *holder = claim;
        }
    }
    let beaten = claims.iter().filter_map(|claim| {
        let holder = first.get(claim.cluster_name.as_str())?;
        let lost = holder.provisioner != claim.provisioner;
        lost.then(|| (claim.provisioner.clone(), holder.provisioner.clone()))
    });
    beaten.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_with_a_cluster_has_the_name_and_then_the_older() {
        let claim = |provisioner: &str, name: &str, begun, second| Claim {
            provisioner: provisioner.into(),
            cluster_name: name.into(),
            begun,
            created_at: Timestamp::from_second(second).ok(),
        };
        let found = rivals(&[
            claim("a", "cloud1", false, 30),
            claim("b", "cloud1", false, 20),
            claim("c", "cloud1", true, 40),
            claim("d", "cloud2", false, 50),
        ]);
        assert_eq!(found, BTreeMap::from([("a".into(), "c".into()), ("b".into(), "c".into())]));
        let found = rivals(&[claim("a", "cloud1", false, 30), claim("b", "cloud1", false, 20)]);
        assert_eq!(found, BTreeMap::from([("a".into(), "b".into())]));
    }
}
