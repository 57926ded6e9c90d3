//! Strategic merge patch, with its directives.

use serde_json::{Map, Value};

use crate::schema::{Field, Node};

/// A patch that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StrategicError {
    #[error("map: {item} does not contain declared merge key: {key}", item = as_go(item))]
    MissingKey { item: Value, key: String },
    #[error("unknown patch type: {directive} in map: {patch}", patch = as_go(patch))]
    Directive { directive: String, patch: Value },
}

/// Applies `patch` to `target`.
pub(crate) fn strategic_merge(target: &Value, patch: &Value, node: &Node) -> Result<Value, StrategicError> {
    let Value::Object(patch) = patch else { return Ok(patch.clone()) };
    match directive(patch)? {
        Some("replace") => return Ok(Value::Object(plain(patch))),
        Some("delete") => return Ok(Value::Object(Map::new())),
        _ => {}
    }
    let mut out = target.as_object().cloned().unwrap_or_default();
    if let Some(keep) = patch.get("$retainKeys").and_then(Value::as_array) {
        out.retain(|key, _| keep.iter().any(|kept| kept.as_str() == Some(key)));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Some(gone)) = (out.get_mut(list), value.as_array()) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        let declared = node.declared(name);
        let below = node.field(name).0;
        let order = patch.get(&format!("$setElementOrder/{name}"));
        let merged =
            match value {
                Value::Null => {
                    out.remove(name);
                    continue;
                }
                Value::Object(_) if below.is_atomic_object() && declared.is_none() => value.clone(),
                Value::Object(_) => {
                    let existing = out.get(name).filter(|v| v.is_object());
                    strategic_merge(existing.unwrap_or(&Value::Null), value, below)?
                }
                Value::Array(items) => {
                    let existing = out.get(name).and_then(Value::as_array);
                    match declared {
                        Some(field) if field.strategy.iter().any(|s| s == "merge") => Value::Array(
                            merge_list(existing.map_or(&[][..], Vec::as_slice), items, field, order)?,
                        ),
                        _ => value.clone(),
                    }
                }
                scalar => scalar.clone(),
            };
        out.insert(name.clone(), merged);
    }
    // An order can be given without any change to the items.
    for (name, order) in patch {
        let Some(list) = name.strip_prefix("$setElementOrder/").filter(|list| !patch.contains_key(*list))
        else {
            continue;
        };
        let key = node.declared(list).and_then(|field| field.merge_key.clone());
        if let (Some(Value::Array(items)), Some(order)) = (out.get_mut(list), order.as_array()) {
            sort_by_order(items, order, key.as_deref());
        }
    }
    Ok(Value::Object(out))
}

fn merge_list(
    existing: &[Value],
    patch: &[Value],
    field: &Field,
    order: Option<&Value>,
) -> Result<Vec<Value>, StrategicError> {
    let Some(key) = &field.merge_key else {
        let mut out = existing.to_vec();
        out.extend(patch.iter().filter(|item| !existing.contains(item)).cloned());
        match order.and_then(Value::as_array) {
            Some(order) => sort_by_order(&mut out, order, None),
            None => out = in_place(existing, out, |item| patch.contains(item), PartialEq::eq),
        }
        return Ok(out);
    };
    let item_node = field.node.list().0;
    let whole = patch.iter().filter_map(Value::as_object);
    if whole.clone().any(|item| item.len() == 1 && item.get("$patch") == Some(&Value::from("replace"))) {
        let rest = patch.iter().filter(|item| item.get("$patch").is_none());
        return Ok(rest.cloned().collect());
    }
    let mut out = existing.to_vec();
    for item in patch {
        let identity = item
            .get(key)
            .ok_or_else(|| StrategicError::MissingKey { item: item.clone(), key: key.clone() })?;
        let position = out.iter().position(|candidate| candidate.get(key) == Some(identity));
        let directive = item.as_object().map(directive).transpose()?.flatten();
        match (directive, position) {
            (Some("delete"), _) => out.retain(|candidate| candidate.get(key) != Some(identity)),
            (_, Some(position)) => out[position] = strategic_merge(&out[position], item, item_node)?,
            (_, None) => out.push(strategic_merge(&Value::Null, item, item_node)?),
        }
    }
    match order.and_then(Value::as_array) {
        Some(order) => sort_by_order(&mut out, order, Some(key)),
        None => {
            let patched = |item: &Value| patch.iter().any(|named| named.get(key) == item.get(key));
            out = in_place(existing, out, patched, |a, b| a.get(key) == b.get(key));
        }
    }
    Ok(out)
}

/// Without a given order: what the patch names and was there keeps its place, and new items come before what the patch
/// does not name.
fn in_place(
    existing: &[Value],
    merged: Vec<Value>,
    patched: impl Fn(&Value) -> bool,
    same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let place = |item: &Value| existing.iter().position(|candidate| same(candidate, item));
    let (named, others): (Vec<Value>, Vec<Value>) = merged.into_iter().partition(patched);
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(left), Some(right)) = (others.peek(), named.peek()) {
        let before = matches!((place(left), place(right)), (Some(left), Some(right)) if left < right);
        out.extend(if before { others.next() } else { named.next() });
    }
    out.extend(others);
    out.extend(named);
    out
}

/// Items named in `order` come in that order; the others keep their place behind what precedes them.
fn sort_by_order(items: &mut Vec<Value>, order: &[Value], key: Option<&str>) {
    let rank = |item: &Value| {
        order.iter().position(|named| match key {
            Some(key) => named.get(key) == item.get(key),
            None => named == item,
        })
    };
    let mut ordered: Vec<(usize, Value)> = Vec::with_capacity(items.len());
    let mut last = 0;
    for item in items.drain(..) {
        let place = rank(&item).map_or(last, |rank| 2 * rank + 1);
        last = place + 1;
        ordered.push((place, item));
    }
    ordered.sort_by_key(|(place, _)| *place);
    items.extend(ordered.into_iter().map(|(_, item)| item));
}

fn directive(patch: &Map<String, Value>) -> Result<Option<&str>, StrategicError> {
    match patch.get("$patch").and_then(Value::as_str) {
        Some(known @ ("delete" | "replace" | "merge")) => Ok(Some(known)),
        Some(other) => Err(StrategicError::Directive {
            directive: other.to_owned(),
            patch: Value::Object(patch.clone()),
        }),
        None => Ok(None),
    }
}

/// A value as Go prints it.
fn as_go(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", as_go(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(as_go).collect::<Vec<_>>().join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn plain(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(name, _)| !name.starts_with('$')).map(|(n, v)| (n.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin;
    use serde_json::json;

    #[test]
    fn lists_merge_by_key_and_directives_delete() {
        let node = builtin("apps", "v1", "Deployment");
        let live = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}}});
        let patch = json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "a:2"}, {"name": "b", "$patch": "delete"}, {"name": "c"}]}}}});
        let merged = strategic_merge(&live, &patch, &node).unwrap();
        assert_eq!(
            merged.pointer("/spec/template/spec/containers").unwrap(),
            &json!([{"name": "c"}, {"name": "a", "image": "a:2"}])
        );
    }
}
