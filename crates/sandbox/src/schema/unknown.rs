//! Fields that a built-in type does not have.

use serde_json::Value;

use super::Node;

/// Takes out the fields that are not declared; tells their paths.
pub(crate) fn drop_unknown(value: &mut Value, node: &Node) -> Vec<String> {
    let mut gone = Vec::new();
    walk(value, node, "", &mut gone);
    gone
}

fn walk(value: &mut Value, node: &Node, path: &str, gone: &mut Vec<String>) {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (node.resolve(), value) {
        (Node::Struct(declared), Value::Object(fields)) => {
            fields.retain(|name, child| match declared.fields.get(name) {
                Some(field) => {
                    walk(child, &field.node, &join(name), gone);
                    true
                }
                None => {
                    gone.push(join(name));
                    false
                }
            })
        }
        (Node::Map(map), Value::Object(fields)) => {
            for (name, child) in fields.iter_mut() {
                walk(child, &map.values, &join(name), gone);
            }
        }
        (Node::List(list), Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &list.items, &format!("{path}[{index}]"), gone);
            }
        }
        _ => {}
    }
}
