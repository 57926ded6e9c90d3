//! Label and field selectors, in their written form.

use super::{Selectable, Stored};

/// A selector that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("unable to parse requirement: {0}")]
    Labels(String),
    #[error("field label not supported: {0}")]
    UnknownField(String),
    #[error("invalid selector: '{0}'; can't understand '{0}'")]
    Fields(String),
}

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selector {
    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.fields.matches(object) && self.labels.matches_stored(object)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.0.is_empty() && self.fields.0.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// A label selector: all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<(String, Need)>);

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),!h`.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        split_outside_brackets(text)
            .into_iter()
            .filter(|part| !part.trim().is_empty())
            .map(|part| requirement(part.trim()))
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    /// Reads the structured form (`matchLabels`, `matchExpressions`).
    pub(crate) fn from_json(selector: &serde_json::Value) -> Self {
        let mut needs = Vec::new();
        let labels = selector.get("matchLabels").and_then(serde_json::Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            needs.push((key.clone(), Need::In(vec![value.as_str().unwrap_or_default().to_owned()])));
        }
        let expressions = selector.get("matchExpressions").and_then(serde_json::Value::as_array);
        for expression in expressions.into_iter().flatten() {
            needs.extend(expression_from_json(expression));
        }
        Self(needs)
    }

    /// Reads a plain map of labels, as services have it.
    pub(crate) fn from_map(labels: &serde_json::Value) -> Self {
        let labels = labels.as_object().into_iter().flatten();
        Self(
            labels
                .map(|(key, value)| {
                    (key.clone(), Need::In(vec![value.as_str().unwrap_or_default().to_owned()]))
                })
                .collect(),
        )
    }

    pub(crate) fn matches_stored(&self, object: &Stored) -> bool {
        self.matches(|key| object.labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value))
    }

    /// Matches the labels of an object (`metadata.labels`).
    pub(crate) fn matches_labels(&self, labels: Option<&serde_json::Value>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(key, need)| {
            let value = get(key);
            match need {
                Need::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
                Need::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
                Need::Exists => value.is_some(),
                Need::Absent => value.is_none(),
                Need::Greater(than) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *than),
                Need::Less(than) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *than),
            }
        })
    }
}

fn expression_from_json(expression: &serde_json::Value) -> Option<(String, Need)> {
    let key = expression.get("key")?.as_str()?.to_owned();
    let values: Vec<String> = expression
        .get("values")
        .and_then(serde_json::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect();
    let number = || values.first().and_then(|value| value.parse().ok()).unwrap_or_default();
    let need = match expression.get("operator")?.as_str()? {
        "In" => Need::In(values),
        "NotIn" => Need::NotIn(values),
        "Exists" => Need::Exists,
        "DoesNotExist" => Need::Absent,
        "Gt" => Need::Greater(number()),
        "Lt" => Need::Less(number()),
        _ => return None,
    };
    Some((key, need))
}

fn requirement(text: &str) -> Result<(String, Need), SelectorError> {
    let bad = || SelectorError::Labels(text.to_owned());
    if let Some(key) = text.strip_prefix('!') {
        return Ok((valid_key(key.trim()).ok_or_else(bad)?, Need::Absent));
    }
    if let Some((key, values)) = text.split_once('(') {
        let values = values.strip_suffix(')').ok_or_else(bad)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = key.trim().rsplit_once(char::is_whitespace).ok_or_else(bad)?;
        let key = valid_key(key.trim()).ok_or_else(bad)?;
        check_values(&key, &values)?;
        return match operator {
            "in" => Ok((key, Need::In(values))),
            "notin" => Ok((key, Need::NotIn(values))),
            _ => Err(bad()),
        };
    }
    for (operator, negative) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = text.split_once(operator) {
            let key = valid_key(key.trim()).ok_or_else(bad)?;
            let values = vec![value.trim().to_owned()];
            check_values(&key, &values)?;
            return Ok((key, if negative { Need::NotIn(values) } else { Need::In(values) }));
        }
    }
    for (operator, need) in [('>', Need::Greater as fn(i64) -> Need), ('<', Need::Less)] {
        if let Some((key, value)) = text.split_once(operator) {
            let number = value.trim().parse().map_err(|_| bad())?;
            return Ok((valid_key(key.trim()).ok_or_else(bad)?, need(number)));
        }
    }
    Ok((valid_key(text).ok_or_else(bad)?, Need::Exists))
}

/// Values that no label can have are a mistake.
fn check_values(key: &str, values: &[String]) -> Result<(), SelectorError> {
    for (index, value) in values.iter().enumerate() {
        if let Some(told) = crate::kinds::label_value(value).first() {
            let told = format!("values[{index}][{key}]: Invalid value: {value:?}: {told}");
            return Err(SelectorError::Labels(told));
        }
    }
    Ok(())
}

fn valid_key(key: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!key.is_empty() && key.chars().all(allowed)).then(|| key.to_owned())
}

fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0_i32, 0, Vec::new());
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    Namespace,
    Field(usize),
}

/// A field selector, resolved against the fields a resource can be selected by.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelector(Vec<(Place, bool, String)>);

impl FieldSelector {
    /// Reads `metadata.name=x,status.phase!=Running`.
    pub(crate) fn parse(text: &str, selectable: &Selectable) -> Result<Self, SelectorError> {
        let mut out = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (field, equal, value) = if let Some((field, value)) = part.split_once("!=") {
                (field, false, value)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, true, value)
            } else {
                return Err(SelectorError::Fields(part.to_owned()));
            };
            let place = match field {
                "metadata.name" => Place::Name,
                "metadata.namespace" => Place::Namespace,
                other => selectable
                    .iter()
                    .position(|(name, _)| name == other)
                    .map(Place::Field)
                    .ok_or_else(|| SelectorError::UnknownField(other.to_owned()))?,
            };
            out.push((place, equal, value.to_owned()));
        }
        Ok(Self(out))
    }

    fn matches(&self, object: &Stored) -> bool {
        self.0.iter().all(|(place, equal, wanted)| {
            let found = match place {
                Place::Name => &*object.key.name,
                Place::Namespace => &*object.key.namespace,
                Place::Field(index) => object.fields.get(*index).map_or("", |value| value),
            };
            (found == wanted) == *equal
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_label_selectors() {
        let labels = serde_json::json!({"app": "web", "tier": "front"});
        let yes = |text: &str| LabelSelector::parse(text).unwrap().matches_labels(Some(&labels));
        assert!(yes("app=web,tier in (front, back),!gone,app"));
        assert!(yes("app!=db,gone notin (x)"));
        assert!(!yes("app==db"));
        assert!(!yes("app,gone"));
        assert!(LabelSelector::parse("app in web").is_err());
        assert!(LabelSelector::parse("=x").is_err());
    }

    #[test]
    fn unknown_fields_are_refused() {
        let selectable = [("spec.nodeName".to_owned(), "/spec/nodeName".to_owned())];
        assert!(FieldSelector::parse("spec.nodeName=a,metadata.name!=b", &selectable).is_ok());
        assert!(FieldSelector::parse("spec.other=a", &selectable).is_err());
        assert!(FieldSelector::parse("nonsense", &selectable).is_err());
    }
}
