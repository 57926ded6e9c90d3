//! In which units quantities are offered.

use crate::capacity::{CPU, MEMORY};

/// The smallest amount of a resource that is offered, in thousandths: 10m of CPU, 1Mi of memory or storage, one of anything
/// else.
pub(super) fn unit(name: &str) -> i64 {
    match name {
        CPU => 10,
        MEMORY | "ephemeral-storage" => (1 << 20) * 1000,
        _ if name.starts_with("hugepages-") => (1 << 20) * 1000,
        _ => 1000,
    }
}

/// The largest multiple of `step` that is no more than `milli`.
pub(super) fn down(milli: i64, step: i64) -> i64 {
    milli - milli.rem_euclid(step.max(1))
}

/// A share of an amount, rounded down: exact, however large both are.
pub(super) fn share(milli: i64, part: i64, whole: i64) -> i64 {
    let share = i128::from(milli) * i128::from(part) / i128::from(whole.max(1));
    i64::try_from(share).unwrap_or(i64::MAX)
}
