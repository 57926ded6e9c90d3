//! The parameters of a request.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{FieldSelector, LabelSelector, Selector};

/// Watches without a time-out of their own end after half an hour.
const LONGEST_WATCH: Duration = Duration::from_secs(1800);

/// The query of a request.
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// A parameter that is not empty.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, ApiError> {
        match self.0.get(key).map(String::as_str) {
            None | Some("false" | "0" | "False" | "FALSE" | "f" | "F") => Ok(false),
            Some("true" | "1" | "" | "True" | "TRUE" | "t" | "T") => Ok(true),
            Some(other) => Err(ApiError::bad_request(format!("{key}: {other:?} is neither true nor false"))),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let bad = |_| ApiError::bad_request(format!("{key}: {text:?} is not a whole number of at least 0"));
        text.parse().map(Some).map_err(bad)
    }

    pub(super) fn dry_run(&self) -> bool {
        match self.text("dryRun") {
            None => false,
            // Others are refused before.
            Some(value) => value == "All",
        }
    }

    pub(super) fn selector(&self, row: &Resource) -> Result<Selector, ApiError> {
        let bad = |error: crate::store::SelectorError| ApiError::bad_request(error.to_string());
        Ok(Selector {
            labels: LabelSelector::parse(self.text("labelSelector").unwrap_or_default()).map_err(bad)?,
            fields: FieldSelector::parse(self.text("fieldSelector").unwrap_or_default(), &row.selectable)
                .map_err(bad)?,
        })
    }

    pub(super) fn watch_time(&self) -> Result<Duration, ApiError> {
        Ok(self.number("timeoutSeconds")?.map_or(LONGEST_WATCH, Duration::from_secs))
    }
}
