//! A pod's shape that can be told from others at little cost.

use super::{Amounts, PodShape};
use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The label that is different on every node.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// The field of a node that node affinity can ask for.
pub(super) const NAME_FIELD: &str = "metadata.name";

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
    nodes: SingleNodes,
}

/// Which template made a pod, as far as room is concerned: a digest of what the template asks of nodes.
///
/// Pods carry it as the label [`TemplateHash::LABEL`]. It stays the same when a template changes in what does not
/// concern room, and whatever admission in a member does to the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateHash(u64);

/// The single nodes that shapes ask about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SingleNodes {
    /// Whether the label with the host name is asked about at all.
    pub(super) by_hostname: bool,
    /// The host names that are asked about.
    pub(super) hostnames: BTreeSet<String>,
    /// The names that are asked about.
    pub(super) names: BTreeSet<String>,
    /// Whether names are compared as numbers, so that every one of them may matter.
    pub(super) all: bool,
}

impl SingleNodes {
    /// Adds the nodes that others ask about; answers whether any was new.
    pub(super) fn extend(&mut self, others: &Self) -> bool {
        let before = (self.by_hostname, self.all, self.hostnames.len(), self.names.len());
        self.by_hostname |= others.by_hostname;
        self.all |= others.all;
        self.hostnames.extend(others.hostnames.iter().cloned());
        self.names.extend(others.names.iter().cloned());
        before != (self.by_hostname, self.all, self.hostnames.len(), self.names.len())
    }

    /// Whether any single node is asked about.
    pub(super) fn are_any(&self) -> bool {
        *self != Self::default()
    }

    fn of(shape: &PodShape) -> Self {
        let mut nodes = Self::default();
        if let Some(hostname) = shape.node_selector.get(HOSTNAME) {
            nodes.by_hostname = true;
            nodes.hostnames.insert(hostname.clone());
        }
        for term in &shape.node_terms {
            for wanted in term.match_expressions.iter().flatten().filter(|wanted| wanted.key == HOSTNAME) {
                nodes.by_hostname = true;
                nodes.all |= compares_numbers(wanted);
                nodes.hostnames.extend(wanted.values.iter().flatten().cloned());
            }
            for wanted in term.match_fields.iter().flatten().filter(|wanted| wanted.key == NAME_FIELD) {
                nodes.all |= compares_numbers(wanted);
                nodes.names.extend(wanted.values.iter().flatten().cloned());
            }
        }
        nodes
    }
}

fn compares_numbers(wanted: &NodeSelectorRequirement) -> bool {
    matches!(wanted.operator.as_str(), "Gt" | "Lt")
}

impl Shape {
    /// The labels of nodes that this shape asks about, the one that names a single node left out.
    pub(super) fn labels(&self) -> &BTreeSet<String> {
        &self.inner.labels
    }

    /// The single nodes that this shape asks about.
    pub(super) fn nodes(&self) -> &SingleNodes {
        &self.inner.nodes
    }

    /// What pods of a template with this shape carry as label.
    #[must_use]
    pub fn template_hash(&self) -> TemplateHash {
        TemplateHash((self.digest >> 64) as u64)
    }

    /// What tells it from other shapes.
    pub(super) fn digest(&self) -> u128 {
        self.digest
    }

    /// The same shape with other requests.
    #[must_use]
    pub(super) fn with_requests(&self, requests: Amounts) -> Self {
        PodShape { requests, ..self.inner.shape.clone() }.into()
    }
}

impl TemplateHash {
    /// The label of pods that holds it.
    pub const LABEL: &str = "portolan.dev/pod-template-hash";

    /// Reads the value of the label; what Portolan did not write is none.
    #[must_use]
    pub fn parse(label: &str) -> Option<Self> {
        let digits = label.len() == 16 && label.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(label, 16).ok().filter(|_| digits).map(Self)
    }
}

impl fmt::Display for TemplateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<PodShape> for Shape {
    fn from(shape: PodShape) -> Self {
        let requirements = shape.node_terms.iter().flat_map(|term| term.match_expressions.iter().flatten());
        let mut labels: BTreeSet<String> = shape.node_selector.keys().cloned().collect();
        labels.extend(requirements.map(|each| each.key.clone()));
        labels.remove(HOSTNAME);
        let nodes = SingleNodes::of(&shape);
        // Pods in members carry the beginning of this digest: another way to compute it would roll every copy out anew.
        let requests: Vec<_> = shape.requests.iter().collect();
        let key = serde_json::json!([requests, shape.node_selector, shape.node_terms, shape.tolerations]);
        let bytes = Sha256::digest(key.to_string());
        let digest = bytes.iter().take(16).fold(0, |digest, byte| digest << 8 | u128::from(*byte));
        Self { digest, inner: Arc::new(Inner { shape, labels, nodes }) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape(spec: serde_json::Value) -> Shape {
        PodShape::of_spec(&serde_json::from_value(spec).unwrap()).unwrap().into()
    }

    #[test]
    fn the_template_hash_is_the_same_in_every_version_of_portolan() {
        let of = |cpu: &str| {
            json!({
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
                "nodeSelector": {"zone": "a"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
            })
        };
        let hash = shape(of("1")).template_hash();
        assert_eq!(
            hash.to_string(),
            "0ace494c3dde882e",
            "pods in members carry it: a change rolls all of them"
        );
        assert_eq!(TemplateHash::parse(&hash.to_string()), Some(hash));
        assert_eq!(shape(of("1000m")).template_hash(), hash, "the same amount, written otherwise");
        assert_ne!(shape(of("2")).template_hash(), hash);
        for strange in ["", "1", "+123456789abcdef", "0123456789abcdeg", "0123456789abcdef0"] {
            assert_eq!(TemplateHash::parse(strange), None, "{strange}");
        }
    }
}
