//! CloudProvisioners: what they cost, and what they cannot do.

use super::families as family;
use portolan_api::money::Money;
use portolan_api::{CloudProvisioner, Reason};
use portolan_runtime::Index;
use portolan_runtime::metrics::Samples;

pub(super) fn collect(provisioners: &Index<CloudProvisioner>, samples: &mut Samples) {
    provisioners.for_each(|key, object| {
        let name = key.name.as_str();
        let status = object.status.clone().unwrap_or_default();
        samples.number(&family::CLOUD_COST, &[name], units(status.cost_per_hour));
        samples.number(&family::CLOUD_COST_SO_FAR, &[name], units(status.cost_so_far));
        if let Some(limit) = object.spec.max_cost_per_hour {
            samples.number(&family::CLOUD_BUDGET, &[name], units(limit));
        }
        samples.number(&family::CLOUD_FAILURES, &[name], f64::from(status.failures));
        let states =
            [("desired", status.desired_nodes), ("existing", status.nodes), ("ready", status.ready_nodes)];
        for (state, nodes) in states {
            samples.number(&family::CLOUD_NODES, &[name, state], f64::from(nodes));
        }
        for left in &status.left_out {
            let reason = Reason::parse(&left.reason).map_or("Unknown", Reason::as_str);
            samples.number(&family::CLOUD_LEFT_OUT, &[name, reason], f64::from(left.pods));
        }
    });
}

fn units(money: Money) -> f64 {
    money.micros as f64 / 1e6
}
