//! The rules for names, labels and keys: what is wrong with one, in the words of the API server.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
    character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
    is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// What is wrong with a DNS subdomain.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    let right = name.split('.').all(is_label_text);
    [too_long(name, 253), (!right).then(|| SUBDOMAIN.to_owned())].into_iter().flatten().collect()
}

/// What is wrong with a DNS label.
pub(super) fn label(name: &str) -> Vec<String> {
    let wrong = match () {
        () if is_label_text(name) => None,
        () if name.split('.').all(is_label_text) => Some("must not contain dots".to_owned()),
        () => Some(LABEL.to_owned()),
    };
    [too_long(name, 63), wrong].into_iter().flatten().collect()
}

/// What is wrong with the key of a label, or the name of a finalizer: a name, and perhaps a domain before it.
pub(super) fn qualified(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {KEY} {example}")];
        }
    };
    let mut out = Vec::new();
    match prefix {
        None => {}
        Some("") => out.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            let told = subdomain(prefix).into_iter();
            out.extend(
                told.map(|told| format!("prefix part {}", told.replace("253 characters", "253 bytes"))),
            );
        }
    }
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else {
        out.extend(too_big(name, 63).map(|told| format!("name part {told}")));
    }
    if !is_key_text(name) {
        out.push(format!("name part {KEY}"));
    }
    out
}

/// What is wrong with the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let right = value.is_empty() || is_key_text(value);
    [too_big(value, 63), (!right).then(|| VALUE.to_owned())].into_iter().flatten().collect()
}

/// What is wrong with a key of a config map or a secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let right = !key.is_empty() && key.bytes().all(letters);
    let path = match key {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        _ if key.starts_with("..") => Some("must not start with '..'"),
        _ => None,
    };
    let wrong = (!right).then(|| CONFIG_KEY.to_owned());
    [too_long(key, 253), wrong, path.map(str::to_owned)].into_iter().flatten().collect()
}

/// What is wrong with a name that need only fit into a path.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| name.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

fn too_big(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} bytes"))
}

fn too_long(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} characters"))
}

fn is_label_text(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| alphanumeric(*byte))
        && bytes.last().is_some_and(|byte| alphanumeric(*byte))
        && bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
}

fn is_key_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_has_no_fault() {
        for key in ["a", "app.kubernetes.io/name", "A_b.c-d", "x/Y"] {
            assert!(qualified(key).is_empty(), "{key}");
        }
        for key in ["", "/a", "a/", "a/b/c", "-a", "a b", "A.b/c", "\u{e4}"] {
            assert!(!qualified(key).is_empty(), "{key}");
        }
        assert!(label_value("").is_empty() && label_value("1_b").is_empty());
        assert_eq!(label_value(&"v".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert!(config_key("A.b_c-d").is_empty() && !config_key("a/b").is_empty());
        assert_eq!(path_segment("a/b"), ["may not contain '/'"]);
    }
}
