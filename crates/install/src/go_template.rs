//! Helm's templates of the described objects: YAML around single-line JSON.

use crate::node::{Field, Item, Node, Part};
use serde_json::Value;

/// The template of an object.
pub(crate) fn template(node: &Node) -> String {
    let mut text = String::new();
    block(&mut text, 0, node);
    text
}

/// A condition around lines.
pub(crate) fn when(path: &str, lines: &str) -> String {
    format!("{{{{- if .Values.{path} }}}}\n{lines}{{{{- end }}}}\n")
}

/// Text that the template engine leaves alone.
pub(crate) fn escaped(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

fn block(text: &mut String, depth: usize, node: &Node) {
    match node {
        Node::Object(fields) => fields.iter().for_each(|each| field(text, depth, each)),
        Node::List(items) => items.iter().for_each(|each| item(text, depth, each)),
        Node::Fixed(Value::Object(fields)) if !fields.is_empty() => {
            for (key, value) in fields {
                entry(text, depth, &format!("{}:", key_text(key)), &Node::Fixed(value.clone()));
            }
        }
        Node::Fixed(Value::Array(items)) if !items.is_empty() => {
            items.iter().for_each(|value| entry(text, depth, "-", &Node::Fixed(value.clone())));
        }
        other => text.push_str(&format!("{}{}\n", "  ".repeat(depth), line(other))),
    }
}

fn field(text: &mut String, depth: usize, Field { when: condition, key, node }: &Field) {
    let mut lines = String::new();
    entry(&mut lines, depth, &format!("{}:", key_text(key)), node);
    text.push_str(&condition.map_or_else(|| lines.clone(), |path| when(path, &lines)));
}

fn item(text: &mut String, depth: usize, item: &Item) {
    let mut lines = String::new();
    match item {
        Item::One(node) => {
            entry(&mut lines, depth, "-", node);
            text.push_str(&lines);
        }
        Item::When(path, node) => {
            entry(&mut lines, depth, "-", node);
            text.push_str(&when(path, &lines));
        }
        Item::Each(path) => range(text, depth, path, "{{ toJson . }}"),
        Item::Named(path) => range(text, depth, path, "name: {{ toJson . }}"),
    }
}

fn range(text: &mut String, depth: usize, path: &str, item: &str) {
    let indent = "  ".repeat(depth);
    text.push_str(&format!("{{{{- range .Values.{path} }}}}\n{indent}- {item}\n{{{{- end }}}}\n"));
}

/// A key or a dash, and what belongs to it.
fn entry(text: &mut String, depth: usize, lead: &str, node: &Node) {
    let indent = "  ".repeat(depth);
    let is_block = match node {
        Node::Object(_) | Node::List(_) => true,
        Node::Fixed(Value::Object(fields)) => !fields.is_empty(),
        Node::Fixed(Value::Array(items)) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        text.push_str(&format!("{indent}{lead}\n"));
        block(text, depth + 1, node);
    } else {
        text.push_str(&format!("{indent}{lead} {}\n", line(node)));
    }
}

fn line(node: &Node) -> String {
    match node {
        Node::Fixed(value) => escaped(&value.to_string()),
        Node::Value(path) => format!("{{{{ toJson .Values.{path} }}}}"),
        Node::JsonText(path) => format!("{{{{ toJson .Values.{path} | toJson }}}}"),
        Node::Extended(fixed, path) => {
            let fixed = Value::from(fixed.to_string());
            format!("{{{{ mergeOverwrite (dict) .Values.{path} (fromJson {fixed}) | toJson }}}}")
        }
        Node::Text(parts) => {
            let format: String = parts.iter().map(form).collect();
            let values = parts.iter().filter_map(|part| match part {
                Part::Value(path) => Some(format!(" .Values.{path}")),
                Part::Fixed(_) => None,
            });
            let values: String = values.collect();
            format!("{{{{ printf {}{values} | toJson }}}}", Value::from(format))
        }
        Node::Either(path, then, otherwise) => {
            format!("{{{{ if .Values.{path} }}}}{}{{{{ else }}}}{}{{{{ end }}}}", line(then), line(otherwise))
        }
        // Objects in one line are JSON; nothing in the descriptions asks for it.
        Node::Object(_) | Node::List(_) => "null".to_owned(),
    }
}

fn form(part: &Part) -> String {
    match part {
        Part::Fixed(text) => text.replace('%', "%%"),
        Part::Value(_) => "%v".to_owned(),
    }
}

fn key_text(key: &str) -> String {
    let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    if is_plain && !key.is_empty() { key.to_owned() } else { escaped(&Value::from(key).to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{field, field_when, fixed, object};
    use serde_json::json;

    #[test]
    fn a_template_has_lines_for_what_depends_on_values() {
        let node = object([
            field("kind", fixed("A")),
            field(
                "spec",
                object([
                    field("replicas", Node::Either("ha", Box::new(fixed(2)), Box::new(fixed(1)))),
                    field_when("labels", "labels", Node::Value("labels")),
                    field(
                        "args",
                        Node::List(vec![
                            Item::One(fixed("run")),
                            Item::When("to", Node::Text(vec![Part::Fixed("--to=100%"), Part::Value("to")])),
                            Item::Each("more"),
                        ]),
                    ),
                    field("fixed", fixed(json!({"a": {"b": "{{ c }}"}}))),
                ]),
            ),
        ]);
        let expected = r#"kind: "A"
spec:
  replicas: {{ if .Values.ha }}2{{ else }}1{{ end }}
{{- if .Values.labels }}
  labels: {{ toJson .Values.labels }}
{{- end }}
  args:
    - "run"
{{- if .Values.to }}
    - {{ printf "--to=100%%%v" .Values.to | toJson }}
{{- end }}
{{- range .Values.more }}
    - {{ toJson . }}
{{- end }}
  fixed:
    a:
      b: "{{ "{{" }} c }}"
"#;
        assert_eq!(template(&node), expected);
    }
}
