//! An amount over time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;
use crate::quantity;

/// An amount over time: `100m`, or points with straight lines between them (`0s=100m,10s=2,repeat=1m`). Before the first
/// point it is as there, after the last one as there, unless it begins anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Curve {
    written: String,
    /// Time and amount in thousandths.
    points: Vec<(Duration, i128)>,
    repeat: Option<Duration>,
}

/// Why a text is no curve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// Not a number with a unit.
    #[error("{0:?} is not a quantity: write it as 100m, 2 or 64Mi")]
    Quantity(String),
    /// Not a time.
    #[error("{0:?} is not a duration: write it as 2s or 1m30s")]
    Duration(String),
    /// Points go on in time.
    #[error("the point {0:?} is not later than the one before")]
    Order(String),
    /// No point at all.
    #[error("a curve needs a point, such as 0s=100m")]
    Empty,
}

impl Curve {
    /// The amount at an age, in thousandths.
    #[must_use]
    pub fn at(&self, age: Duration) -> i128 {
        let age = match self.repeat {
            Some(repeat) if !repeat.is_zero() => {
                Duration::from_nanos(u64::try_from(age.as_nanos() % repeat.as_nanos()).unwrap_or(u64::MAX))
            }
            _ => age,
        };
        let after = self.points.iter().position(|(at, _)| *at > age);
        match after {
            Some(0) => self.points[0].1,
            None => self.points.last().map_or(0, |(_, amount)| *amount),
            Some(index) => {
                let ((from, low), (to, high)) = (self.points[index - 1], self.points[index]);
                let (gone, whole) = ((age - from).as_micros(), (to - from).as_micros().max(1));
                let share = |amount: i128| i128::try_from(gone).unwrap_or(0) * amount;
                low + share(high - low) / i128::try_from(whole).unwrap_or(1)
            }
        }
    }
}

impl FromStr for Curve {
    type Err = CurveError;

    fn from_str(text: &str) -> Result<Self, CurveError> {
        let amount = |text: &str| quantity::parse(text).ok_or_else(|| CurveError::Quantity(text.to_owned()));
        let time = |text: &str| duration::parse(text).ok_or_else(|| CurveError::Duration(text.to_owned()));
        let mut curve = Self { written: text.to_owned(), points: Vec::new(), repeat: None };
        if !text.contains('=') {
            curve.points.push((Duration::ZERO, amount(text.trim())?));
            return Ok(curve);
        }
        for part in text.split(',').map(str::trim) {
            let (at, value) = part.split_once('=').ok_or_else(|| CurveError::Quantity(part.to_owned()))?;
            if at == "repeat" {
                curve.repeat = Some(time(value)?);
                continue;
            }
            let at = time(at)?;
            if curve.points.last().is_some_and(|(before, _)| *before >= at) {
                return Err(CurveError::Order(part.to_owned()));
            }
            curve.points.push((at, amount(value)?));
        }
        if curve.points.is_empty() { Err(CurveError::Empty) } else { Ok(curve) }
    }
}

impl TryFrom<String> for Curve {
    type Error = CurveError;

    fn try_from(text: String) -> Result<Self, CurveError> {
        text.parse()
    }
}

impl From<Curve> for String {
    fn from(curve: Curve) -> Self {
        curve.written
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_goes_straight_from_point_to_point_and_begins_anew() {
        let curve: Curve = "5s=100m,15s=1100m,repeat=20s".parse().unwrap();
        let at = |seconds: u64| curve.at(Duration::from_secs(seconds));
        assert_eq!([at(0), at(5), at(10), at(15), at(19), at(30)], [100, 100, 600, 1100, 1100, 600]);
        assert_eq!("64Mi".parse::<Curve>().unwrap().at(Duration::MAX), (64 << 20) * 1000);
        assert_eq!("repeat=5s".parse::<Curve>(), Err(CurveError::Empty));
    }
}
