//! How far a rollout may go at once: pure arithmetic.

use crate::store::at;
use serde_json::Value;

/// A replica set in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) wanted: i64,
    pub(super) available: i64,
}

/// How a deployment replaces its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) surge: i64,
    pub(super) unavailable: i64,
}

impl Limits {
    /// From the deployment's strategy; percentages of surge round up, of unavailability down.
    pub(super) fn of(spec: &Value, replicas: i64) -> Self {
        let value = |name: &str| at(spec, &format!("/strategy/rollingUpdate/{name}"));
        let surge = resolve(value("maxSurge"), replicas, true);
        let mut unavailable = resolve(value("maxUnavailable"), replicas, false).min(replicas);
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self { surge, unavailable }
    }
}

/// A number, or a percentage of all replicas, rounded up or down.
pub(super) fn resolve(value: Option<&Value>, replicas: i64, up: bool) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = percent * replicas;
            if up { (product + 99) / 100 } else { product / 100 }
        }
        Some(number) => number.as_i64().unwrap_or(0),
        None => 0,
    }
}

/// What the new replica set should be scaled to.
pub(super) fn new_size(replicas: i64, limits: Limits, new: Size, old_total: i64) -> i64 {
    if new.wanted >= replicas {
        return replicas;
    }
    let room = replicas + limits.surge - (new.wanted + old_total);
    if room <= 0 { new.wanted } else { (new.wanted + room).min(replicas) }
}

/// What the old replica sets (oldest first) should be scaled to.
pub(super) fn old_sizes(replicas: i64, limits: Limits, new: Size, old: &[Size]) -> Vec<i64> {
    let total: i64 = new.wanted + old.iter().map(|size| size.wanted).sum::<i64>();
    let least_available = replicas - limits.unavailable;
    let new_unavailable = new.wanted - new.available;
    let mut spare = total - least_available - new_unavailable;
    let mut sizes: Vec<i64> = old.iter().map(|size| size.wanted).collect();
    // What was scaled down already still counts as available until its pods are gone.
    if spare <= 0 {
        return sizes;
    }
    // Pods that do not serve anyway go first.
    for (index, size) in old.iter().enumerate() {
        let broken = (size.wanted - size.available).min(spare).max(0);
        sizes[index] -= broken;
        spare -= broken;
    }
    let available: i64 = new.available + old.iter().map(|size| size.available.min(size.wanted)).sum::<i64>();
    let mut spare = available - least_available;
    for size in &mut sizes {
        let taken = (*size).min(spare).max(0);
        *size -= taken;
        spare -= taken;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn size(wanted: i64, available: i64) -> Size {
        Size { wanted, available }
    }

    #[test]
    fn percentages_round_as_kubernetes_rounds() {
        let spec = json!({"strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}});
        assert_eq!(Limits::of(&spec, 10), Limits { surge: 3, unavailable: 2 });
        assert_eq!(Limits::of(&spec, 1), Limits { surge: 1, unavailable: 0 });
        assert_eq!(Limits::of(&json!({}), 3), Limits { surge: 0, unavailable: 1 });
    }

    #[test]
    fn a_late_status_does_not_take_more() {
        let limits = Limits { surge: 1, unavailable: 1 };
        assert_eq!(old_sizes(4, limits, size(1, 0), &[size(4, 4)]), [3]);
        assert_eq!(old_sizes(4, limits, size(1, 0), &[size(3, 4)]), [3]);
    }

    #[test]
    fn a_rollout_keeps_its_limits_and_ends() {
        let limits = Limits { surge: 1, unavailable: 0 };
        let (mut new, mut old) = (size(0, 0), size(3, 3));
        for _ in 0..20 {
            new.wanted = new_size(3, limits, new, old.wanted);
            assert!(new.wanted + old.wanted <= 4, "surge kept");
            new.available = new.wanted;
            old.wanted = old_sizes(3, limits, new, &[old])[0];
            old.available = old.wanted;
            assert!(new.available + old.available >= 3, "availability kept");
        }
        assert_eq!((new.wanted, old.wanted), (3, 0));
    }
}
