//! The forms of names and labels that Kubernetes takes.

/// Whether a text can be the name of a namespace or a member: a DNS label.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte != b'-');
    name.len() <= 63 && name.bytes().all(fine) && edge(name.bytes().next()) && edge(name.bytes().last())
}

/// Whether Kubernetes takes a label.
#[must_use]
pub fn is_label(key: &str, value: &str) -> bool {
    let word = |text: &str| {
        let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        text.len() <= 63
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && end(text.bytes().next())
            && end(text.bytes().last())
    };
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_fine = prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_name));
    prefix_fine && word(name) && (value.is_empty() || word(value))
}
