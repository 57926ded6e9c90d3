//! The differences between the sandbox and a real API server that are known.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A difference, or several with one reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divergence {
    /// What differs, in a few words.
    pub what: String,
    /// Why it is so, and what one should know about it.
    pub why: String,
    /// What shall become of it.
    pub outlook: Outlook,
    /// Where it shows: steps, a trailing `*` standing for any end, and in each the pointers into the answer, `*` standing
    /// for any one part.
    pub places: BTreeMap<String, Vec<String>>,
}

/// What shall become of a difference.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Outlook {
    /// It is meant to be so: nobody who uses the sandbox needs it.
    Meant,
    /// The sandbox shall come to do as the real API server does.
    ToBeFixed,
}

/// The list that the test pins: a difference that is not in it fails, and so does an entry that is no longer true.
pub fn divergences() -> Result<Vec<Divergence>> {
    serde_saphyr::from_str(include_str!("divergences.yaml")).context("divergences.yaml cannot be read")
}
