//! Values on the command line, `path=value,…`, in the syntax of Helm's `--set`.

use crate::ValuesError;
use serde_json::{Map, Value};

/// A list on the command line has at most so many items.
const LONGEST: usize = 1024;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Sets what an argument of `--set` says in values.
///
/// # Errors
/// It is not of the form `path=value`, or the path does not fit the values.
pub fn set(values: &mut Value, argument: &str) -> Result<(), ValuesError> {
    for assignment in split(argument, ',') {
        let Some((path, text)) = split_once(&assignment, '=') else {
            return Err(ValuesError::new(assignment, "is not of the form PATH=VALUE"));
        };
        let steps = steps(&path)?;
        let value = match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some("") => Value::Array(Vec::new()),
            Some(items) => Value::Array(split(items, ',').iter().map(|item| typed(item)).collect()),
            None => typed(&text),
        };
        *place(values, &steps, &path)? = value;
    }
    Ok(())
}

/// The value at a path, which is made if it is not there.
fn place<'a>(values: &'a mut Value, steps: &[Step], path: &str) -> Result<&'a mut Value, ValuesError> {
    let mut at = values;
    for step in steps {
        at = match step {
            Step::Key(key) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                let Some(fields) = at.as_object_mut() else {
                    return Err(ValuesError::new(path, format!("{key} is set in something that is no map")));
                };
                fields.entry(key.clone()).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let Some(items) = at.as_array_mut() else {
                    return Err(ValuesError::new(
                        path,
                        format!("[{index}] is set in something that is no list"),
                    ));
                };
                while items.len() <= *index {
                    items.push(Value::Null);
                }
                &mut items[*index]
            }
        };
    }
    Ok(at)
}

fn steps(path: &str) -> Result<Vec<Step>, ValuesError> {
    let wrong = |problem: &str| ValuesError::new(path, problem);
    let mut steps = Vec::new();
    for part in split(path, '.') {
        let key_ends = position(&part, '[').unwrap_or(part.len());
        let (key, mut indices) = part.split_at(key_ends);
        if key.is_empty() {
            return Err(wrong("a part of the path is empty"));
        }
        steps.push(Step::Key(unescaped(key)));
        while !indices.is_empty() {
            let inner = indices.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (number, rest) = inner.ok_or_else(|| wrong("an index is not of the form [NUMBER]"))?;
            let index: usize = number.parse().map_err(|_| wrong("an index is not a number"))?;
            if index >= LONGEST {
                return Err(wrong("an index is above 1023"));
            }
            steps.push(Step::Index(index));
            indices = rest;
        }
    }
    Ok(steps)
}

/// What a text stands for: a number, true, false, null, or itself.
fn typed(text: &str) -> Value {
    let text = unescaped(text);
    match text.as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "0" => Value::from(0),
        _ if text.starts_with('0') => Value::String(text),
        _ => text.parse::<i64>().map_or(Value::String(text), Value::from),
    }
}

/// The parts between separators that are neither escaped nor within braces; escapes stay.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = position(rest, separator) {
        parts.push(rest[..at].to_owned());
        rest = &rest[at + separator.len_utf8()..];
    }
    parts.push(rest.to_owned());
    parts
}

fn split_once(text: &str, separator: char) -> Option<(String, String)> {
    let at = position(text, separator)?;
    Some((text[..at].to_owned(), text[at + separator.len_utf8()..].to_owned()))
}

/// Where a character stands that is neither escaped nor within braces.
fn position(text: &str, wanted: char) -> Option<usize> {
    let (mut escaped, mut depth) = (false, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == wanted && depth == 0 => return Some(at),
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn made(arguments: &[&str]) -> Value {
        let mut values = json!({});
        for argument in arguments {
            set(&mut values, argument).unwrap();
        }
        values
    }

    #[test]
    fn arguments_mean_what_they_mean_to_helm() {
        assert_eq!(
            made(&["a.b=c,d=1,e=true,f=0123,g=null,h=1.5,i="]),
            json!({"a": {"b": "c"}, "d": 1, "e": true, "f": "0123", "g": null, "h": "1.5", "i": ""})
        );
        assert_eq!(made(&["a={x,2}", "b={}"]), json!({"a": ["x", 2], "b": []}));
        assert_eq!(made(&["a[1].b=c", "a[0]=z"]), json!({"a": ["z", {"b": "c"}]}));
        assert_eq!(made(&[r"labels.example\.com/a=b\,c"]), json!({"labels": {"example.com/a": "b,c"}}));
        assert_eq!(made(&["url=https://a?b=c"]), json!({"url": "https://a?b=c"}));
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        for (argument, word) in [
            ("a", "PATH=VALUE"),
            ("a..b=1", "empty"),
            ("a[x]=1", "not a number"),
            ("a[0=1", "[NUMBER]"),
            ("a[99999999]=1", "above 1023"),
        ] {
            let error = set(&mut json!({}), argument).unwrap_err().to_string();
            assert!(error.contains(word), "{argument}: {error}");
        }
        let error = set(&mut json!({"a": 1}), "a.b=1").unwrap_err().to_string();
        assert!(error.contains("no map"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_set_or_refused_and_a_plain_one_arrives(text in "\\PC{0,40}", plain in "[a-z][a-z -]{0,20}") {
            let _ = set(&mut json!({}), &text);
            let mut values = json!({});
            set(&mut values, &format!("a.b[2]=x{plain}")).unwrap();
            prop_assert_eq!(&values["a"]["b"][2], &json!(format!("x{plain}")));
        }
    }
}
