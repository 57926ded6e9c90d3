//! Field paths as messages have them (`spec.items[2].name`), and what they lead to.

use serde_json::Value;

/// A path below `path`.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// An item, by position or by key.
pub(super) fn item(path: &str, index: impl std::fmt::Display) -> String {
    format!("{path}[{index}]")
}

/// What a path leads to.
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut place = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (key, after) = inside.split_once(']')?;
            place = match key.parse::<usize>() {
                Ok(index) if place.is_array() => place.get(index)?,
                _ => place.get(key.trim_matches('"'))?,
            };
            rest = after;
            continue;
        }
        let text = rest.strip_prefix('.').unwrap_or(rest);
        let end = text.find(['.', '[']).unwrap_or(text.len());
        place = place.get(&text[..end])?;
        rest = &text[end..];
    }
    Some(place)
}

/// True if a change left what the path leads to as it was.
pub(super) fn unchanged(old: &Value, new: &Value, path: &str) -> bool {
    match find(new, path) {
        Some(value) => find(old, path) == Some(value),
        // Something is missing: it was, if what it is missing from has not changed.
        None => {
            let parent = path.rfind(['.', '[']).map_or("", |end| &path[..end]);
            find(new, parent).is_some() && find(old, parent) == find(new, parent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_where_they_say() {
        let object = json!({"spec": {"items": [{"a.b": 1}, {"name": "x"}], "map": {"k": 2}}});
        assert_eq!(find(&object, "spec.items[1].name"), Some(&json!("x")));
        assert_eq!(find(&object, "spec.map[k]"), Some(&json!(2)));
        assert_eq!(find(&object, "spec.items[7]"), None);
        assert_eq!(find(&object, ""), Some(&object));
        assert!(unchanged(&object, &object, "spec.absent"));
    }
}
