//! How numbers are written.

use super::Kind;
use super::samples::{Measured, Samples, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::fmt::Write;

/// A form of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus.
    Prometheus,
    /// OpenMetrics.
    OpenMetrics,
}

impl Format {
    /// The one that suits a reader best, by the header `Accept` of the request.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let names = |part: &str| {
            part.split(';').next().is_some_and(|name| name.trim() == "application/openmetrics-text")
        };
        if accept.split(',').any(names) { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The header `Content-Type` of the answer.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Samples {
    /// All of them, written.
    ///
    /// # Errors
    /// Memory is lacking, or a number is none.
    pub fn encode(&self, format: Format) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut written = String::new();
        text::encode(&mut written, &registry)?;
        match format {
            Format::OpenMetrics => Ok(written),
            Format::Prometheus => plain(&written),
        }
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Measured { family, series } in self.0.values() {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (values, value) in series {
                if family.labels.is_empty() {
                    value.encode(&mut metric)?;
                    continue;
                }
                let labels: Vec<(&str, &str)> =
                    family.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                value.encode(&mut metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => encoder.encode_counter::<NoLabelSet, u64, f64>(count, None),
            Self::Seconds(seconds) => encoder.encode_counter::<NoLabelSet, f64, f64>(seconds, None),
            Self::Number(number) => encoder.encode_gauge(number),
            Self::Histogram(histogram) => encoder.encode_histogram::<NoLabelSet>(
                histogram.sum(),
                histogram.count(),
                &histogram.classes(),
                None,
            ),
        }
    }
}

/// OpenMetrics as the older format: a counter is called by the name of its series, and there is no mark at the end.
fn plain(written: &str) -> Result<String, fmt::Error> {
    let mut counters = Vec::new();
    for line in written.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counters.push(name);
        }
    }
    let mut plain = String::with_capacity(written.len());
    for line in written.lines().filter(|line| *line != "# EOF") {
        let comment = ["# HELP ", "# TYPE "].into_iter().find_map(|start| {
            let (name, rest) = line.strip_prefix(start)?.split_once(' ')?;
            counters.contains(&name).then_some((start, name, rest))
        });
        match comment {
            Some((start, name, rest)) => writeln!(plain, "{start}{name}_total {rest}")?,
            None => writeln!(plain, "{line}")?,
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::super::{Family, Histogram};
    use super::*;
    use std::time::Duration;

    static ADDS: Family = Family { name: "a_adds", kind: Kind::Counter, labels: &["name"], help: "Adds." };
    static DEPTH: Family = Family { name: "a_depth", kind: Kind::Gauge, labels: &[], help: "Depth." };
    static TIME: Family =
        Family { name: "a_time_seconds", kind: Kind::Histogram, labels: &["name"], help: "Time." };

    fn samples() -> Samples {
        let mut samples = Samples::default();
        samples.count(&ADDS, &["q\"1\n"], 3);
        samples.count(&ADDS, &["q\"1\n"], 1);
        samples.number(&DEPTH, &[], 0.5);
        let mut histogram = Histogram::default();
        histogram.observe(Duration::from_millis(2));
        samples.histogram(&TIME, &["x"], &histogram);
        samples
    }

    #[test]
    fn both_forms_say_the_same() {
        let open = samples().encode(Format::OpenMetrics).unwrap();
        let plain = samples().encode(Format::Prometheus).unwrap();
        assert!(
            open.starts_with(
                "# HELP a_adds Adds.\n# TYPE a_adds counter\na_adds_total{name=\"q\\\"1\\n\"} 4\n"
            )
        );
        assert!(open.ends_with("# EOF\n"), "{open}");
        assert!(
            plain.starts_with("# HELP a_adds_total Adds.\n# TYPE a_adds_total counter\na_adds_total{name=")
        );
        assert!(!plain.contains("EOF") && plain.contains("\na_depth 0.5\n"), "{plain}");
        assert!(plain.contains("a_time_seconds_bucket{le=\"0.001\",name=\"x\"} 0\n"), "{plain}");
        assert!(plain.contains("a_time_seconds_bucket{le=\"+Inf\",name=\"x\"} 1\n"), "{plain}");
        assert_eq!(plain.lines().count() + 1, open.lines().count());
    }

    #[test]
    fn readers_get_openmetrics_when_they_ask_for_it() {
        let asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(asked), Format::OpenMetrics);
        assert_eq!(Format::accepted("text/plain"), Format::Prometheus);
        assert_eq!(Format::accepted(""), Format::Prometheus);
    }

    #[test]
    fn series_are_found_by_their_labels() {
        assert_eq!(samples().get(&ADDS, &["q\"1\n"]), Some(4.0));
        assert_eq!(samples().get(&ADDS, &["other"]), None);
        assert_eq!(samples().get(&DEPTH, &[]), Some(0.5));
        assert_eq!((samples().families().count(), samples().len_of(&TIME)), (3, 1));
    }
}
