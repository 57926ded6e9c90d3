#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
    out
}

fn bytes(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let length = u64::try_from(content.len()).unwrap();
    [varint(number << 3 | 2), varint(length), content.to_vec()].concat()
}

fn number(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn body(api_version: &str, kind: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    let meta = [bytes(1, api_version), bytes(2, kind)].concat();
    [MAGIC.to_vec(), bytes(1, meta), bytes(2, parts.concat()), bytes(3, ""), bytes(4, "")].concat()
}

fn read(api_version: &str, kind: &str, parts: &[Vec<u8>]) -> Value {
    decode(&body(api_version, kind, parts), "v1", "Unused").unwrap()
}

/// A pod with most of what is special: times, quantities, ports, inlined messages, maps.
fn pod() -> Vec<u8> {
    let metadata = [
        bytes(1, "web"),
        bytes(2, ""),
        bytes(8, ""),
        bytes(9, number(1, 1_767_225_600)),
        number(10, 0),
        bytes(11, [bytes(1, "app"), bytes(2, "web")].concat()),
        bytes(11, bytes(1, "empty")),
        bytes(17, [bytes(1, "kubectl"), bytes(7, bytes(1, r#"{"f:spec":{}}"#))].concat()),
    ];
    let probe =
        [bytes(1, bytes(2, bytes(2, [number(1, 1), number(2, 0), bytes(3, "http")].concat()))), number(2, 0)];
    let resources = bytes(2, [bytes(1, "cpu"), bytes(2, bytes(1, "100m"))].concat());
    let reference = bytes(3, bytes(3, [bytes(1, bytes(1, "settings")), bytes(2, "key")].concat()));
    let container = [
        bytes(1, "c"),
        bytes(2, "image:1"),
        bytes(7, [bytes(1, "SETTING"), bytes(2, ""), reference].concat()),
        bytes(8, resources),
        bytes(10, probe.concat()),
        number(16, 0),
    ];
    let volume = [bytes(1, "scratch"), bytes(2, bytes(2, bytes(1, "")))];
    let groups = [number(4, 7), bytes(4, [varint(8), varint(9)].concat())].concat();
    let spec = [
        bytes(1, volume.concat()),
        bytes(2, container.concat()),
        number(4, 0),
        number(5, u64::MAX),
        bytes(14, groups),
    ];
    body("v1", "Pod", &[bytes(1, metadata.concat()), bytes(2, spec.concat()), bytes(3, "")])
}

#[test]
fn a_pod_is_what_json_would_have_been() {
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0,
            "labels": {"app": "web", "empty": ""},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "containers": [{
                "name": "c",
                "image": "image:1",
                "env": [{"name": "SETTING", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "key"}}}],
                "resources": {"requests": {"cpu": "100m"}},
                "livenessProbe": {"httpGet": {"port": "http"}},
            }],
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": -1,
            "securityContext": {"supplementalGroups": [7, 8, 9]},
        },
        "status": {},
    });
    assert_eq!(decode(&pod(), "v1", "Pod").unwrap(), expected);
}

#[test]
fn other_forms_of_values() {
    let secret =
        read("v1", "Secret", &[bytes(2, [bytes(1, "k"), bytes(2, [0, 255])].concat()), number(5, 0)]);
    assert_eq!((&secret["data"]["k"], &secret["immutable"]), (&json!("AP8="), &json!(false)));
    let renewed = bytes(2, bytes(4, [number(1, 1_767_225_600), number(2, 1_500_000)].concat()));
    let lease = read("coordination.k8s.io/v1", "Lease", &[renewed]);
    assert_eq!(lease["spec"]["renewTime"], "2026-01-01T00:00:00.001500Z");
    let extra = bytes(5, [bytes(1, "scopes"), bytes(2, [bytes(1, "a"), bytes(1, "b")].concat())].concat());
    let review = read("authorization.k8s.io/v1", "SubjectAccessReview", &[bytes(2, extra)]);
    assert_eq!(review["spec"]["extra"], json!({"scopes": ["a", "b"]}));
    let port = |target: Vec<u8>| {
        read("v1", "Service", &[bytes(2, bytes(1, [number(3, 80), bytes(4, target)].concat()))])["spec"]["ports"]
            [0]
        .clone()
    };
    assert_eq!(port([number(1, 0), number(2, 8080), bytes(3, "")].concat())["targetPort"], 8080);
    assert_eq!(port([number(1, 0), number(2, 0), bytes(3, "")].concat()).get("targetPort"), None);
    let replicas = read("apps/v1", "Deployment", &[bytes(2, number(1, 0))]);
    assert_eq!(replicas["spec"]["replicas"], 0);
    let parts = [bytes(1, bytes(1, "x")), bytes(1, bytes(3, "ns"))];
    assert_eq!(read("v1", "Pod", &parts)["metadata"], json!({"name": "x", "namespace": "ns"}));
    let newer = [number(4000, 1), vec![0xa3, 6, 0xab, 6, 0xac, 6, 0xa4, 6], bytes(1, bytes(1, "x"))];
    assert_eq!(read("v1", "ConfigMap", &newer)["metadata"], json!({"name": "x"}));
}

#[test]
fn the_expected_kind_stands_in_for_one_that_is_not_told() {
    let read = decode(&body("", "", &[bytes(1, bytes(1, "x"))]), "v1", "ConfigMap").unwrap();
    assert_eq!(read, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}));
}

#[test]
fn refusals_say_what_the_api_server_says() {
    let told = |body: &[u8]| decode(body, "v1", "Pod").unwrap_err().to_string();
    let damaged = |part: Vec<u8>| told(&body("v1", "Pod", &[part]));
    assert_eq!(told(b""), "empty data");
    assert_eq!(
        told(b"{}"),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(told(MAGIC), "empty body");
    assert_eq!(told(b"k8s\0\x0a\x05"), "unexpected EOF");
    assert_eq!(damaged(vec![0x0a, 9]), "unexpected EOF");
    assert_eq!(damaged(vec![0xff; 11]), "proto: integer overflow");
    assert_eq!(damaged(vec![0x0c]), "proto: Pod: wiretype end group for non-group");
    assert_eq!(damaged(vec![0x02, 0]), "proto: Pod: illegal tag 0 (wire type 2)");
    assert_eq!(damaged(vec![0x0e]), "proto: illegal wireType 6");
    assert_eq!(damaged(number(1, 1)), "proto: wrong wireType = 0 for field Metadata");
    assert_eq!(damaged(bytes(1, number(1, 1))), "proto: wrong wireType = 0 for field Name");
    assert_eq!(
        told(&body("v2", "Pod", &[])),
        "no kind \"Pod\" is registered for version \"v2\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    );
    let never = bytes(1, bytes(9, number(1, u64::MAX >> 1)));
    assert_eq!(damaged(never), "field deletionTimestamp: year outside of range [0,9999]");
    let fields = bytes(1, bytes(17, bytes(7, bytes(1, "{"))));
    assert!(damaged(fields).starts_with("field fieldsV1: not JSON"));
}

#[test]
fn groups_that_nest_without_end_cost_no_stack() {
    let deep = vec![0x0b; 1_000_000];
    assert_eq!(decode(&body("v1", "Pod", &[deep]), "v1", "Pod").unwrap_err().to_string(), "unexpected EOF");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(raw in vec(any::<u8>(), 0..200), kind in 0..4_usize, enveloped: bool) {
        let (version, kind) =
            [("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "DeleteOptions"), ("v1", "Secret")][kind];
        let sent = if enveloped { body(version, kind, &[raw]) } else { [MAGIC, &raw].concat() };
        if let Err(error) = decode(&sent, version, kind) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_damaged_pod_is_read_or_refused(at in 0..400_usize, with: u8, end in 0..400_usize) {
        let mut sent = pod();
        let at = at % sent.len();
        sent[at] = with;
        sent.truncate(end);
        if let Ok(read) = decode(&sent, "v1", "Pod") {
            prop_assert!(read.is_object());
        }
    }

    #[test]
    fn a_truncated_object_is_refused_or_ends_between_fields(end in 0..400_usize) {
        let sent = pod();
        let end = end % sent.len();
        // What is left when the envelope's last two, empty fields are gone is whole.
        let whole = sent.len() - 4;
        let outcome = decode(&sent[..end], "v1", "Pod");
        prop_assert!(outcome.is_err() || end >= whole || outcome.unwrap().get("spec").is_none());
    }
}
