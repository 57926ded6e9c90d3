//! What is taken out of texts and objects before they leave a machine.
//!
//! In pod templates only what is listed stays. What was taken out there is taken out of every other text too, since
//! a status, an event or a log may quote it. Everywhere else what looks like a credential is taken out.

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const REDACTED: &str = "<redacted>";

/// Shorter texts are words that stand in other texts by chance.
const SHORTEST: usize = 6;

/// Fields of pod templates whose texts stay; those of maps in them too.
const SHOWN: [&str; 24] = [
    "apiVersion",
    "kind",
    "name",
    "generateName",
    "image",
    "imagePullPolicy",
    "restartPolicy",
    "protocol",
    "dnsPolicy",
    "serviceAccountName",
    "serviceAccount",
    "schedulerName",
    "priorityClassName",
    "runtimeClassName",
    "requests",
    "limits",
    "labels",
    "matchLabels",
    "nodeSelector",
    "topologyKey",
    "claimName",
    "secretName",
    "mountPath",
    "storageClassName",
];

/// Annotations of Portolan begin so; they hold names, numbers and digests.
const OWN: &str = "portolan.dev/";

/// What a credential looks like: the first group is what is kept in front of it.
static CREDENTIALS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        // PEM, whole or cut off.
        r"()-----BEGIN [A-Z0-9 ]+-----[A-Za-z0-9+/=\s\\:,.-]*?-----END [A-Z0-9 ]+-----",
        r"()-----BEGIN [A-Z0-9 ]+-----[A-Za-z0-9+/=\s\\]*",
        // JSON Web Tokens, with or without their signature.
        r"()\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,4}",
        r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}",
        // Name and value, as in JSON (also in a text of JSON), YAML, flags and headers.
        r#"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential)s?\\*["']?\s*[:=]\s*\\*")[^"]+"#,
        r#"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential)s?["']?\s*[:=]\s*')[^']+"#,
        r#"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential)s?["']?\s*[:=]\s*)[^\s"'\\,;&<][^\s",;&]{3,}"#,
        // User and password in a URL.
        r"(\b[A-Za-z][A-Za-z0-9+.-]*://)[^\s/@]+@",
        // Bootstrap tokens.
        r"()\b[a-z0-9]{6}\.[a-z0-9]{16}\b",
        // Long runs of base64, such as keys and certificates in kubeconfigs.
        r"()[A-Za-z0-9+/_-]{60,}={0,2}",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// What an API server quotes of an object that it refuses: a text, or all fields of a part as the programmer sees them.
static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r#"((?:Invalid|Unsupported|Duplicate) value: )(?:"(?:[^"\\]|\\.)*"|[A-Za-z_\[{(*&][^\n]*)"#;
    Regex::new(pattern).ok()
});

static ADDRESSES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"()\b(?:\d{1,3}\.){3}\d{1,3}\b",
        r"()\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,8}",
        r"(^|[^0-9A-Za-z:])::[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4})*",
        r"(\bhttps?://)[^\s/:<]+",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// Takes out what is not to be shown.
pub(super) struct Redactor {
    /// Texts that were hidden in some object.
    known: BTreeSet<String>,
    /// Finds all of them at once, the longest first; made when it is first asked for.
    finder: OnceCell<Option<AhoCorasick>>,
    hide_addresses: bool,
}

impl Redactor {
    pub(super) fn new(hide_addresses: bool) -> Self {
        Self { known: BTreeSet::new(), finder: OnceCell::new(), hide_addresses }
    }

    /// Notes what will be hidden in an object.
    pub(super) fn learn(&mut self, object: &Value) {
        let mut hidden = Vec::new();
        shape(object.clone(), Place::Object, &mut hidden);
        for text in hidden.into_iter().filter(|text| text.len() >= SHORTEST) {
            // A value of many lines is quoted line by line.
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST && *line != text);
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            self.known.extend(lines.into_iter().chain([text]));
        }
        self.finder = OnceCell::new();
    }

    /// An object without what is not to be shown.
    pub(super) fn object(&self, object: Value) -> Value {
        self.texts(shape(object, Place::Object, &mut Vec::new()))
    }

    /// A text without what is not to be shown.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(finder) = self.finder() {
            let mut clean = String::with_capacity(text.len());
            finder.replace_all_with(&text, &mut clean, |_, _, clean| {
                clean.push_str(REDACTED);
                true
            });
            text = clean;
        }
        if let Some(quoted) = QUOTED.as_ref() {
            text = quoted.replace_all(&text, format!("${{1}}{REDACTED}")).into_owned();
        }
        for pattern in CREDENTIALS.iter() {
            text = pattern.replace_all(&text, format!("${{1}}{REDACTED}")).into_owned();
        }
        if self.hide_addresses {
            for pattern in ADDRESSES.iter() {
                text = pattern.replace_all(&text, "${1}<address>").into_owned();
            }
        }
        text
    }

    fn finder(&self) -> Option<&AhoCorasick> {
        let make = || {
            if self.known.is_empty() {
                return None;
            }
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.known).ok()
        };
        self.finder.get_or_init(make).as_ref()
    }

    fn texts(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.texts(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (self.text(&name), self.texts(value))).collect()
            }
            other => other,
        }
    }
}

/// Where in an object a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of pod templates.
    Object,
    /// In a pod template.
    Template,
    /// In a part of a pod template that stays.
    Shown,
}

/// The object without bookkeeping, annotations of others, and all of its pod templates but their shape.
fn shape(value: Value, place: Place, hidden: &mut Vec<String>) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields_of(fields, place, hidden)),
        Value::Array(items) => items.into_iter().map(|item| shape(item, place, hidden)).collect(),
        Value::String(text) if place == Place::Template => {
            hidden.push(text);
            REDACTED.into()
        }
        other => other,
    }
}

fn fields_of(fields: Map<String, Value>, place: Place, hidden: &mut Vec<String>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "managedFields" => continue,
            "annotations" => annotations(value, place, hidden),
            // The words of an array have no names of their own, and a list of objects has.
            _ if place == Place::Template => {
                let shown = SHOWN.contains(&name.as_str()) && !value.is_array();
                shape(value, if shown { Place::Shown } else { Place::Template }, hidden)
            }
            "template" | "jobTemplate" => shape(value, Place::Template, hidden),
            _ => shape(value, place, hidden),
        };
        kept.insert(name, value);
    }
    kept
}

/// Annotations by name; of values only those of Portolan's own stay.
fn annotations(value: Value, place: Place, hidden: &mut Vec<String>) -> Value {
    let Value::Object(all) = value else { return shape(value, place, hidden) };
    let one = |(name, value): (String, Value)| {
        if place == Place::Object && name.starts_with(OWN) {
            return (name, value);
        }
        if let Value::String(text) = value {
            hidden.push(text);
        }
        (name, REDACTED.into())
    };
    Value::Object(all.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_patterns_are_valid() {
        assert_eq!((CREDENTIALS.len(), ADDRESSES.len(), QUOTED.is_some()), (10, 4, true));
    }

    #[test]
    fn what_looks_like_a_credential_is_taken_out_and_the_rest_stays() {
        let redactor = Redactor::new(false);
        for (text, clean) in [
            ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer <redacted>"),
            ("token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln!", "token <redacted>!"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nMII\nE\n-----END RSA PRIVATE KEY----- b", "a <redacted> b"),
            ("a -----BEGIN CERTIFICATE-----\nMII", "a <redacted>"),
            ("--password=hunter22 --x=1", "--password=<redacted> --x=1"),
            (r#"{"apiKey": "k-123456", "b": 1}"#, r#"{"apiKey": "<redacted>", "b": 1}"#),
            (r#"{\"password\":\"hunter22\"}"#, r#"{\"password\":\"<redacted>"}"#),
            (r#"password: "correct horse battery""#, r#"password: "<redacted>""#),
            (r#"PGPASSWORD="a b c" psql"#, r#"PGPASSWORD="<redacted>" psql"#),
            ("token: 'it is long' x", "token: '<redacted>' x"),
            (
                r#"spec: Invalid value: core.PodTemplateSpec{Value:"s3cretvalue"}: field is immutable"#,
                "spec: Invalid value: <redacted>",
            ),
            ("spec.replicas: Invalid value: -1: too small", "spec.replicas: Invalid value: -1: too small"),
            ("-----BEGIN A----- (not PEM), more", "<redacted>(not PEM), more"),
            ("dial https://bob:pw@db.example/x", "dial https://<redacted>db.example/x"),
            ("join abcdef.0123456789abcdef", "join <redacted>"),
            (r#"env[0].value: Invalid value: "s3\"x": no"#, r#"env[0].value: Invalid value: <redacted>: no"#),
            ("Secret portolan/lille has no key kubeconfig", "Secret portolan/lille has no key kubeconfig"),
            (
                "6f0c2b1e-7c55-4a41-9d0c-2f4b6b8f3a10 at 10.0.0.1:6443",
                "6f0c2b1e-7c55-4a41-9d0c-2f4b6b8f3a10 at 10.0.0.1:6443",
            ),
        ] {
            assert_eq!(redactor.text(text), clean, "{text}");
        }
    }

    #[test]
    fn addresses_are_taken_out_on_request() {
        let redactor = Redactor::new(true);
        assert_eq!(
            redactor.text("https://api.example:6443 is 10.0.0.1"),
            "https://<address>:6443 is <address>"
        );
        assert_eq!(redactor.text("[fe80:0:0:1:2:3:4:5]:6443"), "[<address>]:6443");
        assert_eq!(redactor.text("fe80::1, fd00::10, ::1"), "<address>, <address>, <address>");
        assert_eq!(redactor.text("portolan_control::fleet"), "portolan_control::fleet");
    }

    #[test]
    fn a_template_keeps_its_shape_and_what_it_hid_is_hidden_elsewhere() {
        let object = json!({
            "metadata": {
                "name": "web", "managedFields": [{"manager": "x"}],
                "annotations": {"portolan.dev/epoch": "3", "kubectl.kubernetes.io/last-applied-configuration": "whole-object"},
            },
            "spec": {"replicas": 2, "template": {"spec": {
                "nodeSelector": {"zone": "a"},
                "containers": [{
                    "name": "main", "image": "app:1", "command": ["run", "name"],
                    "env": [{"name": "KEY", "value": "planted-value"}],
                    "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80, "name": "http"}],
                }],
            }}},
        });
        let mut redactor = Redactor::new(false);
        redactor.learn(&object);
        let clean = redactor.object(object);
        let text = clean.to_string();
        for word in ["whole-object", "planted-value", "\"run\"", "manager"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        let main = &clean["spec"]["template"]["spec"]["containers"][0];
        assert_eq!((&main["image"], &main["resources"]["requests"]["cpu"]), (&json!("app:1"), &json!("1")));
        assert_eq!(
            (&main["env"][0]["name"], &main["command"]),
            (&json!("KEY"), &json!([REDACTED, REDACTED]))
        );
        assert_eq!(clean["metadata"]["annotations"]["portolan.dev/epoch"], "3");
        assert_eq!(redactor.text("refused planted-value twice"), "refused <redacted> twice");
    }
}
