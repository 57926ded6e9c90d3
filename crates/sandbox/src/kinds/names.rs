//! The rules for names.

/// Lower case letters, digits, `-` and `.`, at most 253 characters.
pub(crate) fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(|label| !label.is_empty() && is_label_text(label))
}

/// Lower case letters, digits and `-`, at most 63 characters.
pub(crate) fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && !name.is_empty() && is_label_text(name)
}

fn is_label_text(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| alphanumeric(*byte))
        && bytes.last().is_some_and(|byte| alphanumeric(*byte))
        && bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
}
