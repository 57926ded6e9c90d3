//! How fast replicas may change.

use super::memory::{Memory, ScaleChange, is_within};
use super::ratio::{Tolerances, tolerance};
use jiff::{SignedDuration, Timestamp};
use portolan_api::autoscaling::{Behavior, ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy};

/// For how long fewer replicas must have been enough: the cool-down of mck8s. Upstream has 300.
const DOWN_WINDOW_SECONDS: i32 = 600;

const fn policy(type_: ScalingPolicyType, value: i32) -> ScalingPolicy {
    ScalingPolicy { type_, value, period_seconds: 15 }
}

const UP_POLICIES: &[ScalingPolicy] =
    &[policy(ScalingPolicyType::Pods, 4), policy(ScalingPolicyType::Percent, 100)];
const DOWN_POLICIES: &[ScalingPolicy] = &[policy(ScalingPolicyType::Percent, 100)];

/// How fast replicas may change, with all that is not given filled in.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    up: Direction,
    down: Direction,
}

#[derive(Clone, Debug)]
struct Direction {
    window: SignedDuration,
    select: SelectPolicy,
    policies: Vec<ScalingPolicy>,
    tolerance: u64,
}

impl Direction {
    fn of(rules: Option<&ScalingRules>, window_seconds: i32, policies: &[ScalingPolicy]) -> Self {
        let seconds = rules.and_then(|rules| rules.stabilization_window_seconds).unwrap_or(window_seconds);
        let given = rules.map(|rules| rules.policies.as_slice()).filter(|given| !given.is_empty());
        Self {
            window: SignedDuration::from_secs(i64::from(seconds)),
            select: rules.and_then(|rules| rules.select_policy).unwrap_or_default(),
            policies: given.unwrap_or(policies).to_vec(),
            tolerance: tolerance(rules.and_then(|rules| rules.tolerance.as_ref())),
        }
    }
}

impl Rules {
    pub(super) fn of(behavior: Option<&Behavior>) -> Self {
        let up = behavior.and_then(|behavior| behavior.scale_up.as_ref());
        let down = behavior.and_then(|behavior| behavior.scale_down.as_ref());
        Self {
            up: Direction::of(up, 0, UP_POLICIES),
            down: Direction::of(down, DOWN_WINDOW_SECONDS, DOWN_POLICIES),
        }
    }

    pub(super) fn tolerances(&self) -> Tolerances {
        Tolerances { up: self.up.tolerance, down: self.down.tolerance }
    }

    pub(super) fn up_window(&self) -> SignedDuration {
        self.up.window
    }

    pub(super) fn down_window(&self) -> SignedDuration {
        self.down.window
    }

    /// The most replicas that the policies allow now.
    pub(super) fn at_most(&self, current: u32, memory: &Memory, now: Timestamp) -> u32 {
        let allowed = self.up.policies.iter().map(|policy| {
            let start = before(policy, current, &memory.changes, now);
            match policy.type_ {
                ScalingPolicyType::Pods => start + i64::from(policy.value),
                // Rounded up: a small number would never grow otherwise.
                ScalingPolicyType::Percent => div_ceil(start * (100 + i64::from(policy.value)), 100),
            }
        });
        let limit = match self.up.select {
            SelectPolicy::Max => allowed.max(),
            SelectPolicy::Min => allowed.min(),
            SelectPolicy::Disabled => None,
        };
        limit.map_or(current, to_replicas).max(current)
    }

    /// The fewest replicas that the policies allow now.
    pub(super) fn at_least(&self, current: u32, memory: &Memory, now: Timestamp) -> u32 {
        let allowed = self.down.policies.iter().map(|policy| {
            let start = before(policy, current, &memory.changes, now);
            match policy.type_ {
                ScalingPolicyType::Pods => start - i64::from(policy.value),
                ScalingPolicyType::Percent => start * (100 - i64::from(policy.value)).max(0) / 100,
            }
        });
        let limit = match self.down.select {
            SelectPolicy::Max => allowed.min(),
            SelectPolicy::Min => allowed.max(),
            SelectPolicy::Disabled => None,
        };
        limit.map_or(current, to_replicas).min(current)
    }

    /// The changes that policies still look at.
    pub(super) fn relevant(&self, changes: &[ScaleChange], now: Timestamp) -> Vec<ScaleChange> {
        let periods = self.up.policies.iter().chain(&self.down.policies).map(|policy| policy.period_seconds);
        let longest = SignedDuration::from_secs(i64::from(periods.max().unwrap_or(0)));
        changes.iter().filter(|change| is_within(change.at, longest, now)).copied().collect()
    }
}

/// How many replicas there were when the period of a policy began.
fn before(policy: &ScalingPolicy, current: u32, changes: &[ScaleChange], now: Timestamp) -> i64 {
    let period = SignedDuration::from_secs(i64::from(policy.period_seconds));
    let changed: i64 =
        changes.iter().filter(|each| is_within(each.at, period, now)).map(|each| each.change).sum();
    (i64::from(current) - changed).max(0)
}

fn div_ceil(value: i64, divisor: i64) -> i64 {
    (value + divisor - 1) / divisor
}

fn to_replicas(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::test_support::at;
    use ScalingPolicyType::{Percent, Pods};
    use SelectPolicy::{Disabled, Max, Min};

    fn rules(select: SelectPolicy, policies: &[(ScalingPolicyType, i32, i32)]) -> Rules {
        let policies = policies
            .iter()
            .map(|(type_, value, period_seconds)| ScalingPolicy {
                type_: *type_,
                value: *value,
                period_seconds: *period_seconds,
            })
            .collect();
        let rules = Some(ScalingRules { select_policy: Some(select), policies, ..ScalingRules::default() });
        Rules::of(Some(&Behavior { scale_up: rules.clone(), scale_down: rules }))
    }

    fn memory(changes: &[(i64, i64)]) -> Memory {
        let changes = changes.iter().map(|(second, change)| ScaleChange { change: *change, at: at(*second) });
        Memory { changes: changes.collect(), ..Memory::default() }
    }

    #[test]
    fn policies_bound_both_directions() {
        type Case<'a> =
            (SelectPolicy, &'a [(ScalingPolicyType, i32, i32)], u32, &'a [(i64, i64)], (u32, u32));
        // At second 100: the current number, past changes, and the most and the fewest that are allowed.
        let cases: [Case<'_>; 11] = [
            (Max, &[], 3, &[], (7, 0)), // by default 4 more, or 100 percent more; all fewer
            (Max, &[], 10, &[], (20, 0)),
            (Max, &[(Pods, 4, 60)], 10, &[], (14, 6)),
            (Max, &[(Pods, 4, 60)], 13, &[(50, 3)], (14, 6)), // it was 10 a minute ago
            (Max, &[(Pods, 4, 60)], 13, &[(30, 3)], (17, 9)), // 13 already a minute ago
            (Max, &[(Pods, 4, 60)], 8, &[(50, 2), (60, -4)], (14, 6)),
            (Max, &[(Percent, 10, 60)], 5, &[], (6, 4)), // 5.5 rounded up, 4.5 rounded down
            (Max, &[(Pods, 4, 60), (Percent, 50, 60)], 20, &[], (30, 10)),
            (Min, &[(Pods, 4, 60), (Percent, 50, 60)], 20, &[], (24, 16)),
            (Disabled, &[(Pods, 4, 60)], 20, &[], (20, 20)),
            (Max, &[(Pods, 4, 60)], 30, &[(90, 10)], (30, 16)), // more than allowed already
        ];
        for (select, policies, current, changes, expected) in cases {
            let (rules, memory) = (rules(select, policies), memory(changes));
            let found = (rules.at_most(current, &memory, at(100)), rules.at_least(current, &memory, at(100)));
            assert_eq!(found, expected, "{select:?} {policies:?} {current} {changes:?}");
        }
    }

    #[test]
    fn what_is_not_given_is_filled_in() {
        let rules = Rules::of(None);
        assert_eq!((rules.up_window().as_secs(), rules.down_window().as_secs()), (0, 600));
        assert_eq!(rules.tolerances(), Tolerances { up: 100, down: 100 });
    }

    #[test]
    fn changes_are_kept_as_long_as_the_longest_period() {
        let rules = rules(Max, &[(Pods, 4, 60), (Pods, 9, 300)]);
        let changes = memory(&[(0, 1), (200, 2), (400, 3)]).changes;
        assert_eq!(rules.relevant(&changes, at(499)).len(), 2);
    }
}
