//! The admission policy that bounds what tenants write.

use super::Finding;
use super::words::{count, listed};

/// The admission policy of tenants in a hub.
#[derive(Clone, Debug, Default)]
pub struct TenantPolicy {
    /// How many clusters consume from this one.
    pub consumers: usize,
    /// The parts of it that do not exist, such as `ValidatingAdmissionPolicyBinding portolan-tenants`.
    pub missing: Vec<String>,
    /// The parts that refuse nothing, and why.
    pub idle: Vec<(String, String)>,
}

impl TenantPolicy {
    pub(super) fn judge(&self) -> Finding {
        let mut wrong = Vec::new();
        if !self.missing.is_empty() {
            wrong.push(format!("not installed: {}", listed(&self.missing)));
        }
        wrong.extend(self.idle.iter().map(|(name, why)| format!("{name} refuses nothing: {why}")));
        let consumers = count(self.consumers, "consumer");
        if wrong.is_empty() {
            return Finding::healthy(
                "what tenants write is bounded by the policy portolan-tenants".to_owned(),
            );
        }
        let wrong = wrong.join("; ");
        if self.consumers == 0 {
            return Finding::healthy(format!(
                "no cluster consumes from this one, and none has to be bounded ({wrong})"
            ));
        }
        Finding::problem(
            format!(
                "{wrong}: what the tenants of {consumers} write is bounded by their roles and quotas alone"
            ),
            "`portolan crds --roles | kubectl apply --server-side -f -` installs the policy and its binding",
        )
    }
}
