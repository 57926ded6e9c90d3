//! The simple JSON paths of printer columns.

use serde_json::Value;

/// Everything a path finds: names, indexes, `[*]`, and filters of one equality
/// (`.status.conditions[?(@.type=="Ready")].status`).
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![object];
    let mut rest = path.trim();
    while !rest.is_empty() && !found.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let Some((step, after)) = split_bracket(inside) else { return Vec::new() };
            found = found.into_iter().flat_map(|value| select(value, step)).collect();
            rest = after;
            continue;
        }
        let text = rest.strip_prefix('.').unwrap_or(rest);
        let (name, after) = split_name(text);
        if !name.is_empty() {
            let name = name.replace("\\.", ".");
            found = found.into_iter().filter_map(|value| value.get(name.as_str())).collect();
        } else if after == rest {
            return Vec::new();
        }
        rest = after;
    }
    found
}

/// The name up to the next dot that is not escaped, or bracket.
fn split_name(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            '\\' => escaped = true,
            '.' | '[' if !escaped => return text.split_at(index),
            _ => escaped = false,
        }
    }
    (text, "")
}

/// The inside of a bracket, which may hold brackets and quotes.
fn split_bracket(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    for (index, c) in text.char_indices() {
        match c {
            '"' | '\'' => quoted = !quoted,
            ']' if !quoted => return Some((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    None
}

fn select<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    let items = || value.as_array().map_or(&[][..], Vec::as_slice).iter();
    if step == "*" {
        return match value {
            Value::Object(fields) => fields.values().collect(),
            _ => items().collect(),
        };
    }
    if let Some(filter) = step.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let Some((path, wanted)) = filter.split_once("==") else { return Vec::new() };
        let path = path.trim().trim_start_matches('@');
        let wanted = wanted.trim().trim_matches(['"', '\'']);
        return items().filter(|item| find(item, path).iter().any(|found| shown(found) == wanted)).collect();
    }
    match step.parse::<usize>() {
        Ok(index) => value.get(index).into_iter().collect(),
        Err(_) => value.get(step.trim_matches(['"', '\''])).into_iter().collect(),
    }
}

/// A value as a cell shows it.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_printer_columns() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}], "list": [1, 2]},
        });
        let one = |path: &str| find(&object, path).first().map(|value| shown(value));
        assert_eq!(one(".status.conditions[?(@.type==\"Ready\")].status").as_deref(), Some("True"));
        assert_eq!(one(".metadata.annotations.a\\.b/c").as_deref(), Some("x"));
        assert_eq!(find(&object, ".status.list[*]").len(), 2);
        assert_eq!(one(".status.list[1]").as_deref(), Some("2"));
        assert_eq!(one(".status.missing"), None);
        assert_eq!(one("["), None);
    }
}
