//! New cases out of old ones: mostly almost right, because only those get far.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use super::case::{Call, Case};

const LONGEST: usize = 24;
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "WATCH"];
const TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;charset=utf-8",
    "text/plain",
    "",
];
const ACCEPTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "*/*",
    "",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/vnd.kubernetes.protobuf",
];
const QUERIES: &[&str] = &[
    "limit=1",
    "limit=-1",
    "limit=18446744073709551615",
    "continue=abc",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIifQ==",
    "resourceVersion=0",
    "resourceVersion=1",
    "resourceVersion=99999999999999999999",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "watch=true",
    "watch=1&resourceVersion=0",
    "sendInitialEvents=true",
    "allowWatchBookmarks=true",
    "timeoutSeconds=1",
    "fieldSelector=metadata.name%3Dx",
    "fieldSelector=%3D",
    "labelSelector=a%20in%20(b,c)",
    "labelSelector=%21a",
    "labelSelector=a%3E1",
    "dryRun=All",
    "dryRun=x",
    "fieldManager=m",
    "force=true",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "propagationPolicy=Foreground",
    "propagationPolicy=Orphan",
    "gracePeriodSeconds=0",
    "includeObject=Object",
    "container=c",
];
const HEADERS: &[(&str, &str)] = &[
    ("impersonate-user", "ann"),
    ("impersonate-user", "system:serviceaccount:default:default"),
    ("impersonate-group", "system:masters"),
    ("impersonate-extra-%zz", "x"),
    ("authorization", "Bearer x.y.z"),
    ("authorization", "Basic eA=="),
    ("user-agent", "\u{e4}/1"),
];
const SEGMENTS: &[&str] = &[
    "status",
    "scale",
    "binding",
    "eviction",
    "token",
    "approval",
    "finalize",
    "log",
    "default",
    "x",
    "..",
    "%2f",
    "%00",
    "",
    "namespaces",
    "pods",
    "configmaps",
    "nodes",
    "c1-1",
    "watch",
    "v1",
    "api",
    "apis",
    "apps",
    "batch",
];

/// Makes cases, always the same ones from the same seed.
pub(crate) struct Mutator {
    random: ChaCha8Rng,
}

impl Mutator {
    pub(crate) fn new(random: ChaCha8Rng) -> Self {
        Self { random }
    }

    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { self.random.next_u64() as usize % end }
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &'a [&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// A new case, from one or two of those there are.
    pub(crate) fn next(&mut self, pool: &[Case]) -> Case {
        let mut case = pool[self.below(pool.len())].clone();
        // A long story is cut: what comes early prepares what comes late.
        if case.calls.len() > 4 && self.below(2) == 0 {
            let keep = 1 + self.below(case.calls.len());
            case.calls.truncate(keep);
        }
        for _ in 0..=self.below(4) {
            self.change(&mut case, pool);
        }
        case.calls.truncate(LONGEST);
        case
    }

    fn change(&mut self, case: &mut Case, pool: &[Case]) {
        let other = &pool[self.below(pool.len())].calls;
        if case.calls.is_empty() || self.below(8) == 0 {
            let at = self.below(case.calls.len() + 1);
            if !other.is_empty() {
                case.calls.insert(at, other[self.below(other.len())].clone());
            }
            return;
        }
        // The last requests matter most: the others have been tried before.
        let at = case.calls.len() - 1 - self.below(case.calls.len().min(4));
        match self.below(12) {
            0 => {
                case.calls.remove(at);
            }
            1 => {
                let again = case.calls[at].clone();
                case.calls.push(again);
            }
            2 => case.calls[at].method = self.pick(METHODS).as_bytes().to_vec(),
            3 => self.path(&mut case.calls[at]),
            4 => self.query(&mut case.calls[at]),
            5 => self.header(&mut case.calls[at]),
            6 => self.bytes(&mut case.calls[at].body),
            7 => {
                if let Some(donor) = (!other.is_empty()).then(|| &other[self.below(other.len())]) {
                    case.calls[at].body = donor.body.clone();
                }
            }
            _ => self.body(&mut case.calls[at]),
        }
    }

    fn path(&mut self, call: &mut Call) {
        let text = String::from_utf8_lossy(&call.target).into_owned();
        let (path, query) = text.split_once('?').unwrap_or((&text, ""));
        let mut parts: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
        let at = self.below(parts.len());
        match self.below(4) {
            0 if !parts.is_empty() => {
                parts.remove(at);
            }
            1 => parts.push(self.pick(SEGMENTS).to_owned()),
            2 => parts.insert(at, self.pick(SEGMENTS).to_owned()),
            _ if !parts.is_empty() => parts[at] = self.pick(SEGMENTS).to_owned(),
            _ => {}
        }
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        call.target = format!("/{}{query}", parts.join("/")).into_bytes();
    }

    fn query(&mut self, call: &mut Call) {
        let text = String::from_utf8_lossy(&call.target).into_owned();
        let (path, query) = text.split_once('?').unwrap_or((&text, ""));
        let mut parts: Vec<String> =
            query.split('&').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let at = self.below(parts.len());
        match self.below(3) {
            0 if !parts.is_empty() => {
                parts.remove(at);
            }
            1 if !parts.is_empty() => parts[at] = self.pick(QUERIES).to_owned(),
            _ => parts.push(self.pick(QUERIES).to_owned()),
        }
        call.target = format!("{path}?{}", parts.join("&")).into_bytes();
    }

    fn header(&mut self, call: &mut Call) {
        let (name, value) = match self.below(3) {
            0 => ("content-type", self.pick(TYPES)),
            1 => ("accept", self.pick(ACCEPTS)),
            _ => HEADERS[self.below(HEADERS.len())],
        };
        call.headers.retain(|(found, _)| found != name.as_bytes());
        call.headers.push((name.into(), value.into()));
    }

    fn bytes(&mut self, body: &mut Vec<u8>) {
        let at = self.below(body.len());
        match self.below(4) {
            0 => body.truncate(at),
            1 if !body.is_empty() => body[at] = self.random.next_u32() as u8,
            2 if !body.is_empty() => body[at] ^= 1 << self.below(8),
            _ => {
                let piece: Vec<u8> = body.iter().skip(at).take(1 + self.below(16)).copied().collect();
                let to = self.below(body.len());
                body.splice(to..to, piece);
            }
        }
    }

    fn body(&mut self, call: &mut Call) {
        let Ok(mut value) = serde_json::from_slice::<Value>(&call.body) else {
            return self.bytes(&mut call.body);
        };
        self.value(&mut value);
        call.body = value.to_string().into_bytes();
    }

    /// Changes one place inside a value.
    fn value(&mut self, value: &mut Value) {
        let deeper = self.below(6) != 0;
        match value {
            Value::Object(fields) if deeper && !fields.is_empty() => {
                let at = self.below(fields.len());
                let key = fields.keys().nth(at).cloned().unwrap_or_default();
                match self.below(10) {
                    0 => {
                        fields.remove(&key);
                    }
                    1 => {
                        let copied = fields[&key].clone();
                        let name = self.name();
                        fields.insert(name, copied);
                    }
                    _ => self.value(&mut fields[&key]),
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(8) {
                    0 => {
                        items.remove(at);
                    }
                    1 => items.push(items[at].clone()),
                    _ => self.value(&mut items[at]),
                }
            }
            other => *other = self.fresh(other),
        }
    }

    fn name(&mut self) -> String {
        let known = [
            "metadata",
            "spec",
            "status",
            "name",
            "namespace",
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "managedFields",
            "replicas",
            "selector",
            "template",
            "containers",
            "$patch",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/finalizers",
            "$retainKeys",
            "a.b/c",
            "",
            "conditions",
            "x-kubernetes-validations",
            "default",
            "properties",
            "items",
            "additionalProperties",
            "type",
        ];
        self.pick(&known).to_owned()
    }

    /// A value to put in another's place.
    fn fresh(&mut self, old: &Value) -> Value {
        match self.below(24) {
            0 => Value::Null,
            1 => json!(0),
            2 => json!(-1),
            3 => json!(i64::MAX),
            4 => json!(u64::MAX),
            5 => json!(1e300),
            6 => json!(0.5),
            7 => json!(""),
            8 => json!("x"),
            9 => json!("a".repeat(300)),
            10 => json!("\u{0}\u{e4}\u{1f600}"),
            11 => json!("2026-01-01T00:00:00Z"),
            12 => json!("9999999999999999999999Ei"),
            13 => json!("50%"),
            14 => json!([]),
            15 => json!({}),
            16 => json!([null, {}, [[]]]),
            17 => Value::Object(Map::from_iter([(self.name(), old.clone())])),
            18 => json!([old]),
            19 => json!(true),
            20 => json!("/metadata/name"),
            21 => json!("self.x > 1"),
            22 => json!(format!("{}{}", old.as_str().unwrap_or("v"), self.below(3))),
            _ => match old {
                Value::String(text) => json!(text.chars().rev().collect::<String>()),
                Value::Number(number) => json!(number.as_i64().unwrap_or(1).wrapping_neg()),
                other => json!(other.to_string()),
            },
        }
    }
}
