//! Texts of clusters on their way to a terminal: they are shown, never obeyed.
//!
//! Objects hold texts that members, tenants and other programs wrote. An escape sequence among them could move the
//! cursor, forge a row or set the clipboard.

use portolan_runtime::bounded_text;
use serde_json::Value;

/// No text of an object needs more characters in a table or a message.
const LIMIT: usize = 4096;

/// The text as one harmless line.
pub(crate) fn line(text: &str) -> String {
    bounded_text(text, LIMIT)
}

/// The text as harmless lines. Further lines are indented, so that none of them looks like a line of its own.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(line).collect::<Vec<_>>().join("\n  ")
}

/// The object with all its texts, names of fields included, as harmless lines.
pub(crate) fn object(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(line(&text)),
        Value::Array(items) => items.into_iter().map(object).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (line(&name), object(value))).collect()
        }
        other => other,
    }
}

/// Text with our own colours: every escape sequence but those for colours is made visible, and line breaks stay.
pub(crate) fn styled(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_odd) {
        clean.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = colour(rest).unwrap_or(0);
        if length > 0 {
            clean.push_str(&rest[..length]);
            rest = &rest[length..];
        } else {
            let end = rest.chars().next().map_or(rest.len(), char::len_utf8);
            clean.push_str(&bounded_text(&rest[..end], 1));
            rest = &rest[end..];
        }
    }
    clean + rest
}

/// Data that programs read, as JSON: what a terminal would obey is written as an escape of JSON, which means the same.
pub(crate) fn json(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut clean, each| {
        if is_odd(each) {
            let mut units = [0; 2];
            for unit in each.encode_utf16(&mut units) {
                clean.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            clean.push(each);
        }
        clean
    })
}

/// Whether a text has a character that a terminal would obey; line breaks do not count.
pub(crate) fn is_harmful(text: &str) -> bool {
    text.contains(is_odd)
}

fn is_odd(character: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    !matches!(character, '\n' | '\t' | ' '..='~') && bounded_text(text, 1) != text
}

/// The length of the escape sequence for a colour at the beginning of a text.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|each: char| !each.is_ascii_digit() && each != ';')?;
    inner[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOSTILE: &str = "v1\u{1b}]0;x\u{7}\u{1b}[2J\nforged\u{202e}\u{9b}";

    #[test]
    fn texts_of_objects_are_one_harmless_line() {
        let clean = object(json!({"a\n": [HOSTILE, 1, null, {"b": "fine"}]}));
        let text = clean["a "][0].as_str().unwrap();
        assert!(!is_harmful(text) && !text.contains('\n'), "{text}");
        assert_eq!(clean["a "][3]["b"], "fine");
        assert_eq!(lines("one\nhint: two"), "one\n  hint: two");
    }

    #[test]
    fn our_own_colours_stay_and_nothing_else_does() {
        assert_eq!(styled("\u{1b}[1;31mred\u{1b}[0m\nü"), "\u{1b}[1;31mred\u{1b}[0m\nü");
        assert_eq!(styled("\u{1b}[2J\u{1b}]52;c\u{7}"), "\\u{1b}[2J\\u{1b}]52;c\\u{7}");
    }

    #[test]
    fn data_stays_the_same_data() {
        let value = json!({"text": HOSTILE, "ship": "🚢"});
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!is_harmful(&text), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
