//! What a path names.

use std::borrow::Cow;

use crate::error::ApiError;

/// The parts of a path below a group and version.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ResourcePath {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: Option<String>,
    pub(super) resource: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

/// A path, understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Path {
    Health,
    Version,
    CoreVersions,
    Groups,
    OpenApi,
    OpenApiOf(String, String),
    Group(String),
    Resources(String, String),
    Resource(ResourcePath),
    Unknown,
}

/// Reads a path.
pub(super) fn parse(path: &str) -> Result<Path, ApiError> {
    let segments: Vec<Cow<'_, str>> =
        path.split('/').filter(|part| !part.is_empty()).map(decode).collect::<Result<_, _>>()?;
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    Ok(match segments.as_slice() {
        ["readyz" | "livez" | "healthz", ..] => Path::Health,
        ["version"] => Path::Version,
        ["openapi", "v3"] => Path::OpenApi,
        ["openapi", "v3", "api", version] => Path::OpenApiOf(String::new(), (*version).to_owned()),
        ["openapi", "v3", "apis", group, version] => {
            Path::OpenApiOf((*group).to_owned(), (*version).to_owned())
        }
        ["api"] => Path::CoreVersions,
        ["apis"] => Path::Groups,
        ["apis", group] => Path::Group((*group).to_owned()),
        ["api", version] => Path::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Path::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Path::Unknown,
    })
}

/// Namespace and name of the object that a path is about; empty, where it names none.
pub(crate) fn place(path: &str) -> (String, String) {
    match parse(path) {
        Ok(Path::Resource(target)) => (target.namespace.unwrap_or_default(), target.name.unwrap_or_default()),
        _ => Default::default(),
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Path {
    let owned = |text: &&str| Some((*text).to_owned());
    let (namespace, rest) = match rest {
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (owned(namespace), rest),
        _ => (None, rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (resource, None, None),
        [resource, name] => (resource, owned(name), None),
        [resource, name, subresource @ ..] => (resource, owned(name), Some(subresource.join("/"))),
        [] => return Path::Unknown,
    };
    Path::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        resource: (*resource).to_owned(),
        name,
        subresource,
    })
}

/// Undoes percent encoding.
fn decode(part: &str) -> Result<Cow<'_, str>, ApiError> {
    if !part.contains('%') {
        return Ok(Cow::Borrowed(part));
    }
    let mut out = Vec::with_capacity(part.len());
    let mut bytes = part.bytes();
    let bad = || ApiError::bad_request(format!("invalid percent encoding in path segment {part:?}"));
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let pair = [bytes.next().ok_or_else(bad)?, bytes.next().ok_or_else(bad)?];
            let text = std::str::from_utf8(&pair).map_err(|_| bad())?;
            out.push(u8::from_str_radix(text, 16).map_err(|_| bad())?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_both_a_resource_and_a_prefix() {
        let read = |path: &str| match parse(path).unwrap() {
            Path::Resource(found) => (found.namespace, found.resource, found.name, found.subresource),
            other => panic!("{other:?}"),
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("/api/v1/namespaces/x"), (None, "namespaces".to_owned(), some("x"), None));
        assert_eq!(
            read("/api/v1/namespaces/x/status"),
            (None, "namespaces".to_owned(), some("x"), some("status"))
        );
        assert_eq!(
            read("/apis/apps/v1/namespaces/x/deployments/y/scale"),
            (some("x"), "deployments".to_owned(), some("y"), some("scale"))
        );
        assert_eq!(parse("/nonsense").unwrap(), Path::Unknown);
        assert!(parse("/api/v1/pods/%f").is_err());
        assert!(parse("/api/v1/pods/%ff").is_err());
    }
}
