//! Ticks at round numbers, with labels of exact decimals.
//!
//! A step is a whole number times a power of ten, and a tick a whole number of steps, so that labels are made from whole
//! numbers and have no floating-point noise.

/// One tick: its value and its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Which distances between ticks are round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// 1, 2, 5 and their decades.
    Decimal,
    /// Fractions of a minute as `Decimal`, then 1, 2, 5, 10, 15, 30 minutes and multiples of hours.
    Minutes,
}

/// A distance between ticks: `mantissa` times ten to the power of `exponent`.
#[derive(Debug, Clone, Copy)]
struct Step {
    mantissa: i64,
    exponent: i32,
}

/// The smallest and largest exponents of a step; data beyond ±10¹⁵ is not drawn.
const EXPONENTS: std::ops::RangeInclusive<i32> = -9..=18;
const WHOLE_MINUTES: [i64; 11] = [1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440];

/// The ticks within a range, at most `most` + 1.
pub(crate) fn ticks(first: f64, last: f64, most: usize, steps: Steps) -> Vec<Tick> {
    let step = Step::round(last - first, most, steps);
    let unit = Unit::of(first.abs().max(last.abs()));
    (step.above(first)..=step.below(last))
        .map(|count| Tick { at: step.times(count), label: step.label(count, unit) })
        .collect()
}

/// The smallest range of whole steps around a range.
pub(crate) fn widened(first: f64, last: f64, most: usize, steps: Steps) -> (f64, f64) {
    let step = Step::round(last - first, most, steps);
    (step.times(step.below(first)), step.times(step.above(last)))
}

/// A value of the data as a label, with three digits that matter.
pub(crate) fn value(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Step {
    /// The smallest round step that makes at most `most` of a span.
    fn round(span: f64, most: usize, steps: Steps) -> Step {
        let decimal = EXPONENTS.flat_map(|exponent| [1, 2, 5].map(|mantissa| Step { mantissa, exponent }));
        let minutes = WHOLE_MINUTES.map(|mantissa| Step { mantissa, exponent: 0 });
        let fits = |step: &Step| span <= step.times(1) * most.max(1) as f64 * (1.0 + 1e-9);
        let found = match steps {
            Steps::Decimal => decimal.clone().find(fits),
            Steps::Minutes => decimal
                .clone()
                .take_while(|step| step.exponent < 0)
                .chain(minutes)
                .find(fits)
                .or_else(|| (0..18).map(|exponent| Step { mantissa: 2880, exponent }).find(fits)),
        };
        found.unwrap_or(Step { mantissa: 1, exponent: *EXPONENTS.end() })
    }

    fn times(self, count: i64) -> f64 {
        let whole = count.saturating_mul(self.mantissa) as f64;
        let power = (0..self.exponent.unsigned_abs()).fold(1.0_f64, |power, _| power * 10.0);
        if self.exponent < 0 { whole / power } else { whole * power }
    }

    /// The number of steps at or below a value.
    fn below(self, value: f64) -> i64 {
        (value / self.times(1) + 1e-9).floor() as i64
    }

    /// The number of steps at or above a value.
    fn above(self, value: f64) -> i64 {
        (value / self.times(1) - 1e-9).ceil() as i64
    }

    fn label(self, count: i64, unit: Unit) -> String {
        let whole = i128::from(count) * i128::from(self.mantissa);
        let exponent = self.exponent - unit.exponent;
        if whole == 0 {
            return "0".to_owned();
        }
        let sign = if whole < 0 { "-" } else { "" };
        let digits = whole.unsigned_abs().to_string();
        let (whole, fraction) = if exponent >= 0 {
            (format!("{digits}{}", "0".repeat(exponent as usize)), String::new())
        } else {
            let decimals = exponent.unsigned_abs() as usize;
            let padded = format!("{digits:0>width$}", width = decimals + 1);
            let (whole, fraction) = padded.split_at(padded.len() - decimals);
            (whole.to_owned(), format!(".{fraction}"))
        };
        format!("{sign}{}{fraction}{}", grouped(&whole), unit.suffix)
    }
}

/// What large labels are counted in.
#[derive(Debug, Clone, Copy)]
struct Unit {
    exponent: i32,
    suffix: &'static str,
}

impl Unit {
    fn of(largest: f64) -> Unit {
        let (exponent, suffix) = match largest {
            size if size >= 1e12 => (12, "T"),
            size if size >= 1e9 => (9, "G"),
            size if size >= 1e6 => (6, "M"),
            _ => (0, ""),
        };
        Unit { exponent, suffix }
    }
}

/// Digits with commas between the thousands, from five digits on.
fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let after = digits.len() - index;
        if index > 0 && digits.len() > 4 && after.is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_at_round_numbers() {
        use Steps::{Decimal, Minutes};
        #[rustfmt::skip]
        let cases: &[(f64, f64, usize, Steps, &[&str])] = &[
            (0.0, 100.0, 5, Decimal, &["0", "20", "40", "60", "80", "100"]),
            (0.0, 1.0, 5, Decimal, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (0.1, 0.7, 6, Decimal, &["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"]),
            (-3.0, 7.0, 5, Decimal, &["-2", "0", "2", "4", "6"]),
            (0.0, 23_000.0, 5, Decimal, &["0", "5000", "10,000", "15,000", "20,000"]),
            (0.0, 2.5e6, 5, Decimal, &["0", "0.5M", "1.0M", "1.5M", "2.0M", "2.5M"]),
            (0.0, 2e13, 2, Decimal, &["0", "10T", "20T"]),
            (0.0, 3e-3, 3, Decimal, &["0", "0.001", "0.002", "0.003"]),
            (0.0, 90.0, 9, Minutes, &["0", "10", "20", "30", "40", "50", "60", "70", "80", "90"]),
            (0.0, 90.0, 6, Minutes, &["0", "15", "30", "45", "60", "75", "90"]),
            (0.0, 23.0, 5, Minutes, &["0", "5", "10", "15", "20"]),
            (0.0, 0.4, 4, Minutes, &["0", "0.1", "0.2", "0.3", "0.4"]),
            (0.0, 500.0, 5, Minutes, &["0", "120", "240", "360", "480"]),
            (0.0, 10_000.0, 4, Minutes, &["0", "2880", "5760", "8640"]),
        ];
        for (first, last, most, steps, labels) in cases {
            let found = ticks(*first, *last, *most, *steps);
            let found: Vec<_> = found.iter().map(|tick| tick.label.as_str()).collect();
            assert_eq!(&found, labels, "{first} to {last}");
        }
    }

    #[test]
    fn a_range_is_widened_to_whole_steps() {
        assert_eq!(widened(0.0, 93.0, 5, Steps::Decimal), (0.0, 100.0));
        assert_eq!(widened(-0.1, 0.3, 5, Steps::Decimal), (-0.1, 0.3));
        assert_eq!(widened(0.0, 100.0, 5, Steps::Decimal), (0.0, 100.0));
    }

    #[test]
    fn values_have_three_digits() {
        let cases =
            [(0.0, "0"), (-0.001, "0"), (1.5, "1.5"), (12.34, "12.3"), (100.0, "100"), (1234.5, "1234")];
        for (number, label) in cases {
            assert_eq!(value(number), label);
        }
    }
}
