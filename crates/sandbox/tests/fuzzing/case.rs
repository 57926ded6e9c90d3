//! A few requests, and the file they are kept in.

use std::fmt;
use std::path::Path;

/// One request, any bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) method: Vec<u8>,
    /// Path and query.
    pub(crate) target: Vec<u8>,
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// Requests that are sent one after the other to a fresh cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) calls: Vec<Call>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Reads what [`Display`](fmt::Display) writes: a line with method and target, header lines, a body line, an empty line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut calls: Vec<Call> = Vec::new();
        let mut inside = false;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if line.is_empty() {
                inside = false;
                continue;
            }
            if !inside {
                let (method, target) =
                    line.split_once(' ').ok_or_else(|| format!("no target in {line:?}"))?;
                calls.push(Call { method: bytes(method)?, target: bytes(target)?, ..Call::default() });
                inside = true;
                continue;
            }
            let Some(call) = calls.last_mut() else { continue };
            if let Some(body) = line.strip_prefix("= ") {
                call.body = bytes(body)?;
            } else {
                let (name, value) = line.split_once(": ").ok_or_else(|| format!("no header: {line:?}"))?;
                call.headers.push((bytes(name)?, bytes(value)?));
            }
        }
        Ok(Self { calls })
    }
}

impl Call {
    /// The request, if HTTP can carry it at all.
    pub(crate) fn request(&self) -> Option<http::Request<Vec<u8>>> {
        let mut request = http::Request::builder()
            .method(http::Method::from_bytes(&self.method).ok()?)
            .uri(http::Uri::try_from(self.target.as_slice()).ok()?);
        for (name, value) in &self.headers {
            let name = http::HeaderName::from_bytes(name).ok()?;
            request = request.header(name, http::HeaderValue::from_bytes(value).ok()?);
        }
        request.body(self.body.clone()).ok()
    }

    pub(crate) fn header(&self, wanted: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        found.map(|(_, value)| value.as_slice())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, call) in self.calls.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{call}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", text(&self.method, b" "), text(&self.target, b""))?;
        for (name, value) in &self.headers {
            writeln!(f, "{}: {}", text(name, b"=: #"), text(value, b""))?;
        }
        if !self.body.is_empty() {
            writeln!(f, "= {}", text(&self.body, b""))?;
        }
        Ok(())
    }
}

/// Bytes as text: what cannot be printed is escaped, and so are `also`.
fn text(bytes: &[u8], also: &[u8]) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'\\' && !also.contains(&byte);
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if plain(*byte) { out.push(char::from(*byte)) } else { out.push_str(&format!("\\x{byte:02x}")) }
    }
    out
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\x") {
        out.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).ok_or_else(|| format!("an escape is cut off in {text:?}"))?;
        out.push(u8::from_str_radix(digits, 16).map_err(|_| format!("a bad escape in {text:?}"))?);
        rest = &after[2..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}
