//! JSON text taken apart without being read, so that one value that cannot be read spoils only itself.
//!
//! Nothing here recurses: nesting of any depth is stepped over. Whether the parts are valid is left to who reads them.

/// A text that is no JSON of the expected shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the JSON that was expected")]
pub(crate) struct Malformed;

/// The members of an object: each name as it is written, and the text of its value.
pub(crate) fn members(object: &str) -> Result<Vec<(&str, &str)>, Malformed> {
    let bytes = object.as_bytes();
    let mut at = open(bytes, b'{')?;
    let mut members = Vec::new();
    while let Some(start) = next_part(bytes, at, b'}', members.is_empty())? {
        let end = value_end(bytes, start)?;
        let name = object.get(start..end).and_then(|name| name.strip_prefix('"')?.strip_suffix('"'));
        let colon = blank_end(bytes, end);
        if bytes.get(colon) != Some(&b':') {
            return Err(Malformed);
        }
        let value = blank_end(bytes, colon + 1);
        at = value_end(bytes, value)?;
        members.push((name.ok_or(Malformed)?, object.get(value..at).ok_or(Malformed)?));
    }
    Ok(members)
}

/// The text of each element of an array, one after the other.
pub(crate) fn elements(array: &str) -> Result<Elements<'_>, Malformed> {
    let at = open(array.as_bytes(), b'[')?;
    Ok(Elements { array, at: Some(at), first: true })
}

/// See [`elements`].
pub(crate) struct Elements<'a> {
    array: &'a str,
    at: Option<usize>,
    first: bool,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a str, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.array.as_bytes();
        let at = self.at.take()?;
        let start = match next_part(bytes, at, b']', std::mem::take(&mut self.first)) {
            Ok(start) => start?,
            Err(error) => return Some(Err(error)),
        };
        let element = value_end(bytes, start).and_then(|end| {
            self.at = Some(end);
            self.array.get(start..end).ok_or(Malformed)
        });
        Some(element)
    }
}

fn open(bytes: &[u8], bracket: u8) -> Result<usize, Malformed> {
    let at = blank_end(bytes, 0);
    (bytes.get(at) == Some(&bracket)).then_some(at + 1).ok_or(Malformed)
}

/// Where the next part begins; nothing at the closing bracket.
fn next_part(bytes: &[u8], at: usize, close: u8, first: bool) -> Result<Option<usize>, Malformed> {
    let at = blank_end(bytes, at);
    match bytes.get(at) {
        Some(byte) if *byte == close => Ok(None),
        Some(_) if first => Ok(Some(at)),
        Some(b',') => Ok(Some(blank_end(bytes, at + 1))),
        _ => Err(Malformed),
    }
}

fn blank_end(bytes: &[u8], at: usize) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    bytes.get(at..).map_or(at, |rest| at + rest.iter().take_while(|byte| blank(byte)).count())
}

/// Where the value that begins here ends.
fn value_end(bytes: &[u8], start: usize) -> Result<usize, Malformed> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at).ok_or(Malformed)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1).ok_or(Malformed)?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            _ => {
                let ends =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t');
                let scalar = bytes.get(at..).unwrap_or_default();
                let length = scalar.iter().position(ends).unwrap_or(scalar.len());
                return if length > 0 { Ok(at + length) } else { Err(Malformed) };
            }
        }
        if depth == 0 {
            return Ok(at);
        }
    }
}

fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, Malformed> {
    loop {
        match bytes.get(at).ok_or(Malformed)? {
            b'"' => return Ok(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_objects_and_arrays_apart() {
        let text = r#" {"a": [1, {"b": "]}\""}], "c\n": -1.5e3 , "d":null,"e":"" } "#;
        let parts = members(text).unwrap();
        assert_eq!(
            parts,
            [("a", r#"[1, {"b": "]}\""}]"#), (r"c\n", "-1.5e3"), ("d", "null"), ("e", r#""""#)]
        );
        let parts: Vec<_> = elements(parts[0].1).unwrap().map(Result::unwrap).collect();
        assert_eq!(parts, ["1", r#"{"b": "]}\""}"#]);
        assert_eq!(members("{}"), Ok(Vec::new()));
        assert_eq!(elements("[ ]").unwrap().count(), 0);
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_refused() {
        for text in [
            "",
            "[",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\" 1}",
            "{\"a\":1 \"b\":2}",
            "{a:1}",
            "{\"a\\\"",
        ] {
            assert_eq!(members(text), Err(Malformed), "{text}");
        }
        for text in ["[1", "[1 2]", "[,]", "[\"", "[}"] {
            assert!(elements(text).unwrap().any(|part| part.is_err()), "{text}");
        }
    }

    #[test]
    fn depth_does_not_matter() {
        let deep = format!("[{}{}, 7]", "[".repeat(100_000), "]".repeat(100_000));
        let parts: Vec<_> = elements(&deep).unwrap().map(Result::unwrap).collect();
        assert_eq!((parts.len(), parts[1]), (2, "7"));
    }
}
