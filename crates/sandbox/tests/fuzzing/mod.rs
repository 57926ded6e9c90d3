//! Requests that nobody should send, what becomes of them, and how new ones are made of old ones.
//!
//! A [`Case`] is a few requests to a fresh cluster, written in a file that a person can read. [`check`] sends them and says
//! what was wrong with the answers; [`Mutator`] makes new cases.

#![allow(dead_code, reason = "the test and the fuzzer each use a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod check;
mod mutate;

use std::path::{Path, PathBuf};

pub(crate) use case::Case;
pub(crate) use check::{check, listen_for_panics};
#[allow(unused_imports, reason = "only the fuzzer makes new cases")]
pub(crate) use mutate::Mutator;

/// Where cases are kept.
pub(crate) fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// All kept cases, with their files, in order.
pub(crate) fn corpus() -> Vec<(PathBuf, Case)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus_folder())
        .unwrap_or_else(|error| panic!("{}: {error}", corpus_folder().display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "case"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let case = Case::read(&path);
            (path, case)
        })
        .collect()
}
