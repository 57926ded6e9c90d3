//! Writing converted objects.

use serde_json::{Value, json};

/// The objects as YAML, one document each, in a form that YAML 1.1 readers such as kubectl understand alike.
pub fn to_yaml(documents: &[Value]) -> Result<String, serde_saphyr::SerializeError> {
    let texts = documents.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join("---\n"))
}

/// The objects as JSON: the object itself if there is one, a `List` of Kubernetes if there are more.
pub fn to_json(documents: &[Value]) -> Result<String, serde_json::Error> {
    let mut text = match documents {
        [only] => serde_json::to_string_pretty(only)?,
        _ => {
            serde_json::to_string_pretty(&json!({ "apiVersion": "v1", "kind": "List", "items": documents }))?
        }
    };
    text.push('\n');
    Ok(text)
}
