//! What a watch tells.

use crate::Key;
use std::collections::BTreeMap;

/// What a watch tells.
#[derive(Debug)]
pub enum Change<T> {
    /// An object is new or has changed.
    Set(Key, T),
    /// An object is gone.
    Gone(Key),
    /// These are all objects that there are.
    Listed(BTreeMap<Key, T>),
}
