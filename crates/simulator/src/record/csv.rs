//! A record as CSV.

use super::Record;
use std::fmt::Write;

impl Record {
    /// The series: a line for each sample, a column for each series.
    #[must_use]
    pub fn series_csv(&self) -> String {
        let mut text = String::from("seconds");
        self.series.iter().for_each(|series| {
            text.push(',');
            text.push_str(&series.name);
        });
        text.push('\n');
        for (index, seconds) in self.seconds.iter().enumerate() {
            text.push_str(&number(*seconds));
            for series in &self.series {
                text.push(',');
                text.push_str(&series.values.get(index).copied().map(number).unwrap_or_default());
            }
            text.push('\n');
        }
        text
    }

    /// The summary: a line for each figure.
    #[must_use]
    pub fn summary_csv(&self) -> String {
        let mut text = String::from("name,value\n");
        for figure in &self.summary {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{},\"{}\"", figure.name, figure.value.replace('"', "\"\""));
        }
        text
    }
}

/// At most four digits behind the point, without zeros at the end.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Figure, Series};

    #[test]
    fn columns_are_series_and_lines_are_samples() {
        let series =
            |name: &str, values: &[f64]| Series { name: name.into(), unit: "cores", values: values.into() };
        let record = Record {
            scenario: "x".into(),
            label: "x".into(),
            title: "X".into(),
            seed: 1,
            seconds: vec![0.0, 15.0],
            series: vec![series("a", &[0.0, 1.5]), series("b", &[10.0, 0.33333])],
            summary: vec![Figure { name: "n".into(), label: "N".into(), value: "1, 2".into() }],
        };
        assert_eq!(record.series_csv(), "seconds,a,b\n0,0,10\n15,1.5,0.3333\n");
        assert_eq!(record.summary_csv(), "name,value\nn,\"1, 2\"\n");
    }
}
