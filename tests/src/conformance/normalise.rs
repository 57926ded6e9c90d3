//! Takes out of an answer what differs from run to run, and leaves in its place what must not.

use super::run::Raw;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Texts that differ from run to run, and what stands for them.
static TEXTS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "<microtime>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(/\d+)?", "<ip>"),
        (r"resource version: \d+( \(\d+\)|, current: \d+)?", "resource version: <version>"),
        (r"(precondition|record|ResourceVersion in object meta:?) \(?\d+\)?", "$1 <version>"),
        (r#"resourceVersion: "\d+""#, "resourceVersion: <version>"),
        (r#"(resourceVersion\\?":\s*\\?")\d+"#, "$1<version>"),
        (r"hash=[0-9A-Za-z%_=-]+", "hash=<hash>"),
        (r"kube-api-access-[0-9a-z]{5}", "kube-api-access-<name>"),
    ]
    .into_iter()
    .filter_map(|(pattern, stands)| Some((Regex::new(pattern).ok()?, stands)))
    .collect()
});

/// A prefix of a made-up name is cut to this length.
const LONGEST_PREFIX: usize = 58;

static AGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(\d+[smhdy])+$").ok());

/// What a scenario has seen so far, on one server.
pub(super) struct Normaliser {
    namespace: String,
    /// The version in which each object was last seen.
    versions: BTreeMap<String, u64>,
    /// Names that the server made up.
    generated: BTreeMap<String, String>,
}

impl Normaliser {
    pub(super) fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), versions: BTreeMap::new(), generated: BTreeMap::new() }
    }

    /// An answer as it is compared: its code, headers and body.
    pub(super) fn normalise(&mut self, raw: &Raw, part: Option<fn(&Value) -> Value>) -> Value {
        let body = match part {
            Some(part) if raw.code < 300 => part(&raw.body),
            _ => raw.body.clone(),
        };
        let mut headers = json!(raw.headers);
        self.value(&mut headers, "");
        let mut body = body;
        sort_causes(&mut body);
        sort_owners(&mut body);
        self.names(&body);
        self.value(&mut body, "");
        json!({"code": raw.code, "headers": headers, "body": body})
    }

    /// Learns the names that the server has made up.
    fn names(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.names(item)),
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                    && let prefix = prefix.get(..LONGEST_PREFIX).unwrap_or(prefix)
                    && let Some(suffix) = name.strip_prefix(prefix)
                {
                    self.generated.insert(name.to_owned(), format!("{prefix}<{} letters>", suffix.len()));
                }
                fields.values().for_each(|value| self.names(value));
            }
            _ => {}
        }
    }

    fn value(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) => *text = self.text(text, key),
            Value::Number(_) if key == "nodePort" => *value = json!("<port>"),
            Value::Array(items) if key == "cells" => items.iter_mut().for_each(|cell| self.cell(cell)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, "")),
            Value::Object(fields) => {
                self.version(fields);
                fields.iter_mut().for_each(|(key, value)| self.value(value, key));
            }
            _ => {}
        }
    }

    fn cell(&mut self, cell: &mut Value) {
        match cell {
            Value::String(text) if AGE.as_ref().is_some_and(|age| age.is_match(text)) => {
                *cell = json!("<age>");
            }
            other => self.value(other, ""),
        }
    }

    /// A version says nothing by itself: what counts is whether the object is newer than when it was last seen.
    fn version(&mut self, fields: &mut Map<String, Value>) {
        let Some(version) = fields.get("resourceVersion").and_then(Value::as_str) else { return };
        let shown = match (fields.get("uid").and_then(Value::as_str), version.parse::<u64>()) {
            (_, Err(_)) => format!("not a number: {version}"),
            (None, Ok(0)) => "0".to_owned(),
            (None, Ok(_)) => "<of the list>".to_owned(),
            (Some(uid), Ok(now)) => match self.versions.insert(uid.to_owned(), now) {
                None => "first seen".to_owned(),
                Some(before) if before == now => "as before".to_owned(),
                Some(before) if before < now => "newer".to_owned(),
                Some(_) => "older".to_owned(),
            },
        };
        fields.insert("resourceVersion".to_owned(), json!(shown));
    }

    fn text(&self, text: &str, key: &str) -> String {
        if key == "continue" || key == "storageVersionHash" {
            return format!("<{key}>");
        }
        let mut out = text.to_owned();
        for (name, stands) in &self.generated {
            out = out.replace(name, stands);
        }
        out = out.replace(&self.namespace, "<namespace>");
        for (pattern, stands) in TEXTS.iter() {
            out = pattern.replace_all(&out, *stands).into_owned();
        }
        out
    }
}

/// Owners are told in the order of their times, and whether two writes fall into the same second differs from run to run.
fn sort_owners(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort_owners),
        Value::Object(fields) => {
            if let Some(owners) = fields.get_mut("managedFields").and_then(Value::as_array_mut) {
                let key =
                    |owner: &Value| ["operation", "manager", "subresource"].map(|key| owner[key].to_string());
                owners.sort_by_key(key);
            }
            fields.values_mut().for_each(sort_owners);
        }
        _ => {}
    }
}

/// Of several wrong fields the real API server tells in any order, in the message too.
fn sort_causes(body: &mut Value) {
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    causes.sort_by_key(Value::to_string);
    let text = |cause: &Value| {
        let of = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", of("field"), of("message"))
    };
    let texts: Vec<String> = causes.iter().map(text).collect();
    let Some((beginning, listed)) =
        body["message"].as_str().and_then(|told| told.split_once(" is invalid: ["))
    else {
        return;
    };
    if texts.iter().all(|text| listed.contains(text)) {
        body["message"] = json!(format!("{beginning} is invalid: [{}]", texts.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(normaliser: &mut Normaliser, body: Value) -> Value {
        let raw = Raw { code: 200, headers: BTreeMap::new(), body };
        normaliser.normalise(&raw, None)["body"].clone()
    }

    #[test]
    fn versions_are_told_by_what_was_seen_before() {
        let mut normaliser = Normaliser::new("ns");
        let object = |version: &str| json!({"metadata": {"uid": "a", "resourceVersion": version}});
        let mut seen = |version: &str| {
            body(&mut normaliser, object(version))["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
        };
        assert_eq!(seen("7"), "first seen");
        assert_eq!(seen("7"), "as before");
        assert_eq!(seen("10"), "newer");
        assert_eq!(seen("9"), "older");
    }

    #[test]
    fn generated_names_are_known_wherever_they_stand() {
        let mut normaliser = Normaliser::new("ns");
        let first = body(&mut normaliser, json!({"metadata": {"generateName": "a-", "name": "a-x2bcd"}}));
        assert_eq!(first["metadata"]["name"], "a-<5 letters>");
        let again = body(&mut normaliser, json!({"message": "configmaps \"a-x2bcd\" not found"}));
        assert_eq!(again["message"], "configmaps \"a-<5 letters>\" not found");
    }

    #[test]
    fn causes_are_told_in_one_order() {
        let cause = |field: &str| json!({"field": field, "message": "Required value"});
        let told = |first: &str, second: &str| {
            let message = format!("A \"a\" is invalid: [{first}: Required value, {second}: Required value]");
            json!({"message": message, "details": {"causes": [cause(first), cause(second)]}})
        };
        let mut normaliser = Normaliser::new("ns");
        let (one, other) = (body(&mut normaliser, told("b", "a")), body(&mut normaliser, told("a", "b")));
        assert_eq!(one, other);
    }

    #[test]
    fn identifiers_times_and_addresses_are_taken_out() {
        let mut normaliser = Normaliser::new("ns-1");
        let text = "ns-1 00000000-0000-4000-8000-000000000001 2026-01-01T00:00:00Z 10.0.0.1/24";
        assert_eq!(body(&mut normaliser, json!([text]))[0], "<namespace> <uid> <time> <ip>");
    }
}
