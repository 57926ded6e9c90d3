//! A pod's shape that can be told from others at little cost.

use super::PodShape;
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

/// The label that is different on every node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// A [`PodShape`] that is shared, compared and ordered by the digest of what it says, which stands beside the pointer:
/// looking for a shape among others touches none of them.
#[derive(Clone, Debug)]
pub struct Shape {
    digest: u128,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shape: PodShape,
    labels: BTreeSet<String>,
    pinned: bool,
}

impl Shape {
    /// The labels of nodes that this shape asks about, those that name a single node left out.
    pub(super) fn labels(&self) -> &BTreeSet<String> {
        &self.inner.labels
    }

    /// Whether the shape asks for nodes by name, so that nodes which are equal otherwise are not for it.
    pub(super) fn is_pinned(&self) -> bool {
        self.inner.pinned
    }
}

impl From<PodShape> for Shape {
    fn from(shape: PodShape) -> Self {
        let requirements = shape.node_terms.iter().flat_map(|term| term.match_expressions.iter().flatten());
        let mut labels: BTreeSet<String> = shape.node_selector.keys().cloned().collect();
        labels.extend(requirements.map(|each| each.key.clone()));
        let by_name = shape.node_terms.iter().any(|term| term.match_fields.is_some());
        let pinned = labels.remove(HOSTNAME) || by_name;
        let requests: Vec<_> = shape.requests.iter().collect();
        let key = serde_json::json!([requests, shape.node_selector, shape.node_terms, shape.tolerations]);
        let bytes = Sha256::digest(key.to_string());
        let digest = bytes.iter().take(16).fold(0, |digest, byte| digest << 8 | u128::from(*byte));
        Self { digest, inner: Arc::new(Inner { shape, labels, pinned }) }
    }
}

impl Deref for Shape {
    type Target = PodShape;

    fn deref(&self) -> &PodShape {
        &self.inner.shape
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Shape {}

impl PartialOrd for Shape {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Shape {
    fn cmp(&self, other: &Self) -> Ordering {
        self.digest.cmp(&other.digest)
    }
}
