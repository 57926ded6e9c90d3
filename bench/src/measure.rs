//! What a measurement tells.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::time::Duration;

/// Something that can be measured at several sizes.
pub(crate) struct Measurement {
    pub(crate) name: &'static str,
    pub(crate) of: &'static str,
    pub(crate) sizes: &'static [usize],
    pub(crate) run: fn(usize) -> Result<Report>,
}

/// One figure, and what it shall be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    what: String,
    value: f64,
    unit: String,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

/// Something that is a text, what it shall be, and whether it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fact {
    what: String,
    value: String,
    expected: String,
    holds: bool,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    figures: Vec<Figure>,
    facts: Vec<Fact>,
    /// What the work took, for the growth with its size.
    seconds: f64,
    memory_mib: f64,
}

impl Report {
    /// A report on work that took this long, with the memory of this process.
    pub(crate) fn new(took: Duration) -> Result<Self> {
        Ok(Self {
            figures: Vec::new(),
            facts: Vec::new(),
            seconds: took.as_secs_f64(),
            memory_mib: memory_mib(std::process::id())?,
        })
    }

    /// Adds a figure that has no target.
    pub(crate) fn figure(mut self, what: &str, value: f64, unit: &str) -> Self {
        self.push(what, value, unit, None, None);
        self
    }

    /// Adds a figure that shall be at most this.
    pub(crate) fn at_most(mut self, what: &str, value: f64, unit: &str, limit: f64) -> Self {
        self.push(what, value, unit, None, Some(limit));
        self
    }

    /// Adds a figure that shall be at least this.
    pub(crate) fn at_least(mut self, what: &str, value: f64, unit: &str, limit: f64) -> Self {
        self.push(what, value, unit, Some(limit), None);
        self
    }

    /// Adds a figure that shall be neither less nor more than these.
    pub(crate) fn between(mut self, what: &str, value: f64, unit: &str, (least, most): (f64, f64)) -> Self {
        self.push(what, value, unit, Some(least), Some(most));
        self
    }

    /// Adds a text that shall be as expected.
    pub(crate) fn fact(
        mut self,
        what: &str,
        value: &str,
        expected: &str,
        is: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let holds = is(value, expected);
        let [what, value, expected] = [what, value, expected].map(str::to_owned);
        self.facts.push(Fact { what, value, expected, holds });
        self
    }

    fn push(&mut self, what: &str, value: f64, unit: &str, at_least: Option<f64>, at_most: Option<f64>) {
        let (what, unit) = (what.to_owned(), unit.to_owned());
        self.figures.push(Figure { what, value, unit, at_least, at_most });
    }

    /// The figures that are not what they shall be.
    pub(crate) fn missed(&self) -> impl Iterator<Item = String> {
        let figures = self.figures.iter().filter(|figure| !figure.holds()).map(Figure::text);
        figures.chain(self.facts.iter().filter(|fact| !fact.holds).map(Fact::text))
    }

    /// All figures, a line each, with the growth since a tenth of the work.
    pub(crate) fn text(&self, size: usize, smaller: Option<&Self>) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {size:>7}  {text}");
        };
        for figure in &self.figures {
            line(figure.text());
        }
        for fact in &self.facts {
            line(fact.text());
        }
        line(format!("{:<40} {:>10.0} MiB", "memory of the process", self.memory_mib));
        if let Some(smaller) = smaller {
            let times = |now: f64, before: f64| if before > 0.0 { now / before } else { 0.0 };
            line(format!(
                "{:<40} {:>9.1}x time, {:.1}x memory",
                "growth with ten times the work",
                times(self.seconds, smaller.seconds),
                times(self.memory_mib, smaller.memory_mib)
            ));
        }
        out
    }
}

impl Figure {
    fn holds(&self) -> bool {
        self.at_least.is_none_or(|limit| self.value >= limit)
            && self.at_most.is_none_or(|limit| self.value <= limit)
    }

    fn text(&self) -> String {
        let target = match (self.at_least, self.at_most) {
            (Some(least), Some(most)) => {
                format!("  ({least} to {most}{})", if self.holds() { "" } else { ": MISSED" })
            }
            (Some(limit), _) => format!("  (at least {limit}{})", if self.holds() { "" } else { ": MISSED" }),
            (_, Some(limit)) => format!("  (at most {limit}{})", if self.holds() { "" } else { ": MISSED" }),
            _ => String::new(),
        };
        format!("{:<40} {:>10.1} {}{target}", self.what, self.value, self.unit)
    }
}

impl Fact {
    fn text(&self) -> String {
        let missed = if self.holds { String::new() } else { format!("  ({}: MISSED)", self.expected) };
        format!("{:<40} {}{missed}", self.what, self.value)
    }
}

/// What a process holds in memory.
pub(crate) fn memory_mib(process: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm"))?;
    let pages: f64 = text.split(' ').nth(1).unwrap_or("0").parse()?;
    Ok(pages * 4096.0 / f64::from(1 << 20))
}

/// The value below which this share of them lies, in milliseconds.
pub(crate) fn quantile_ms(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let index = ((times.len() as f64 * share).ceil() as usize).saturating_sub(1).min(last);
    times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_it_shall_be_is_missed() {
        let is = |value: &str, expected: &str| value == expected;
        let report = Report::default()
            .at_most("few", 7.0, "", 6.0)
            .at_least("many", 7.0, "", 6.0)
            .between("less", 59.0, "%", (60.0, 70.0))
            .between("more", 71.0, "%", (60.0, 70.0))
            .between("within", 60.0, "%", (60.0, 70.0))
            .fact("order", "a, b", "b, a", is)
            .fact("lost", "0", "0", is);
        let first = |text: String| text.split_whitespace().next().map(str::to_owned);
        let missed: Vec<String> = report.missed().filter_map(first).collect();
        assert_eq!(missed, ["few", "less", "more", "order"]);
        let text = report.text(1, None);
        assert!(text.contains("a, b  (b, a: MISSED)") && text.contains("(60 to 70: MISSED)"), "{text}");
    }
}
