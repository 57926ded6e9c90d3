//! What is told of a metric beside its numbers.

/// A metric: its series differ in the values of their labels.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name. The series of a counter have the suffix `_total` to it.
    pub name: &'static str,
    /// What its numbers are.
    pub kind: Kind,
    /// The labels that each of its series has. Their values are bounded: nothing that a tenant or a member writes is one.
    pub labels: &'static [&'static str],
    /// What it means: a sentence.
    pub help: &'static str,
}

/// What the numbers of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How often something happened since the process began.
    Counter,
    /// How much of something there is.
    Gauge,
    /// How long things took.
    Histogram,
}

impl Kind {
    /// The name, as Prometheus writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Family {
    /// The name in queries.
    #[must_use]
    pub fn series(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}
