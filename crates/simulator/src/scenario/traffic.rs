//! Users who send requests, more or fewer of them over time.

use portolan_api::duration::Duration;
use portolan_runtime::Seed;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Users in one cluster of one service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traffic {
    /// The name of this source.
    pub name: String,
    /// The cluster that the users are in.
    pub from: String,
    /// The Service that they send to, in every cluster that has a global one of that name.
    pub service: String,
    /// The namespace of the Service, if it is not that of the scenario.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The labels of the pods behind the Service. If they are given, the simulation makes the Service in every cluster and
    /// writes the measured requests on it, as an agent in the member does: traffic-aware placement needs that. If they are
    /// not given, the Service is that of a MultiClusterService in objects.
    #[serde(default)]
    pub selector: BTreeMap<String, String>,
    /// How many requests they send.
    pub load: Load,
    /// How often the number of requests changes.
    #[serde(default = "ten_seconds")]
    pub every: Duration,
}

const fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

/// Requests per second over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Load {
    /// Each number holds until the next one begins. There is none before the first.
    Steps(Vec<Point>),
    /// Straight lines between the points.
    Line(Vec<Point>),
    /// One wave as of a day with a rush hour, with noise.
    Wave(Wave),
}

/// A number of requests at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Point {
    /// When, from the beginning.
    pub at: Duration,
    /// Requests per second.
    pub requests_per_second: f64,
}

/// One wave: low, a smooth rise, high, a smooth fall, low.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wave {
    /// Requests per second before and after.
    pub low: f64,
    /// Requests per second at the top.
    pub high: f64,
    /// When the rise begins.
    pub rise_from: Duration,
    /// When the top is reached.
    pub rise_to: Duration,
    /// When the fall begins.
    pub fall_from: Duration,
    /// When it is low again.
    pub fall_to: Duration,
    /// By how many percent each number differs from the wave at most, up or down, drawn from the seed.
    #[serde(default)]
    pub noise_percent: f64,
}

impl Load {
    /// Requests per second at a time. The generator gives the noise: the same seed, the same numbers.
    #[must_use]
    pub fn at(&self, time: std::time::Duration, noise: &Seed) -> f64 {
        match self {
            Self::Steps(points) => {
                let begun = points.iter().take_while(|point| point.at.0 <= time).last();
                begun.map_or(0.0, |point| point.requests_per_second)
            }
            Self::Line(points) => {
                let after = points.iter().find(|point| point.at.0 > time);
                let before = points.iter().take_while(|point| point.at.0 <= time).last();
                match (before, after) {
                    (Some(from), Some(to)) => {
                        let share = (time - from.at.0).as_secs_f64() / (to.at.0 - from.at.0).as_secs_f64();
                        from.requests_per_second + share * (to.requests_per_second - from.requests_per_second)
                    }
                    (Some(only), None) | (None, Some(only)) => only.requests_per_second,
                    (None, None) => 0.0,
                }
            }
            Self::Wave(wave) => wave.at(time, noise),
        }
    }
}

impl Wave {
    fn at(&self, time: std::time::Duration, noise: &Seed) -> f64 {
        let share = |from: Duration, to: Duration| {
            let whole = to.0.saturating_sub(from.0).as_secs_f64();
            let gone = time.saturating_sub(from.0).as_secs_f64();
            if whole > 0.0 { (gone / whole).min(1.0) } else { f64::from(u8::from(time >= to.0)) }
        };
        // A polynomial, and no cosine: it is the same on every machine.
        let smooth = |x: f64| x * x * (3.0 - 2.0 * x);
        let height =
            smooth(share(self.rise_from, self.rise_to)) - smooth(share(self.fall_from, self.fall_to));
        let base = self.low + (self.high - self.low) * height;
        let drawn = noise.child(&time.as_millis().to_string()).rng().next_u32();
        let off = f64::from(drawn) / f64::from(u32::MAX) * 2.0 - 1.0;
        base * (1.0 + off * self.noise_percent / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: u64, requests_per_second: f64) -> Point {
        Point { at: Duration::from_secs(at), requests_per_second }
    }

    fn at(load: &Load, second: u64) -> f64 {
        load.at(std::time::Duration::from_secs(second), &Seed::new(1))
    }

    #[test]
    fn steps_hold_lines_rise_and_waves_come_back() {
        let steps = Load::Steps(vec![point(10, 5.0), point(20, 0.0)]);
        assert_eq!([0, 10, 19, 20].map(|second| at(&steps, second)), [0.0, 5.0, 5.0, 0.0]);
        let line = Load::Line(vec![point(10, 4.0), point(20, 8.0)]);
        assert_eq!([0, 15, 99].map(|second| at(&line, second)), [4.0, 6.0, 8.0]);
        let seconds = Duration::from_secs;
        let mut wave = Wave {
            low: 10.0,
            high: 30.0,
            rise_from: seconds(10),
            rise_to: seconds(20),
            fall_from: seconds(30),
            fall_to: seconds(40),
            noise_percent: 0.0,
        };
        let calm = Load::Wave(wave.clone());
        assert_eq!([0, 15, 25, 35, 50].map(|second| at(&calm, second)), [10.0, 20.0, 30.0, 20.0, 10.0]);
        wave.noise_percent = 10.0;
        let noisy = Load::Wave(wave);
        let drawn = at(&noisy, 25);
        assert!((27.0..=33.0).contains(&drawn) && drawn != 30.0, "{drawn}");
        assert_eq!(drawn, at(&noisy, 25), "drawn from the seed and the time alone");
    }
}
