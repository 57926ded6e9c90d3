//! Acting as somebody else: the headers, and who may.

use http::HeaderMap;

use super::{ANONYMOUS, AUTHENTICATED, Attributes, UNAUTHENTICATED, User};
use crate::api::Api;
use crate::error::ApiError;

const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// A way to act as somebody else: the narrow ones say what may be done in that role, the old one lets everything be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Node,
    ServiceAccount,
    UserInfo,
    Legacy,
}

/// As whom a request asks to be carried out, if as anybody else.
pub(crate) fn impersonated(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
    let mut user = User { groups: texts("impersonate-group"), ..User::named(first("impersonate-user")) };
    user.uid = first("impersonate-uid");
    for name in headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)) {
        user.extra.insert(unescape(name), texts(&format!("{EXTRA}{name}")));
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.groups.is_empty() && user.uid.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!("requested {user:?} without impersonating a user name")))
}

impl Api {
    /// Lets `caller` act as `wanted` if roles allow it; answers whom the request then comes from.
    pub(crate) fn impersonate(
        &self,
        caller: &User,
        wanted: User,
        request: &Attributes,
    ) -> Result<User, ApiError> {
        let mut first = None;
        for mode in [Mode::Node, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy] {
            if !mode.fits(&wanted) {
                continue;
            }
            match mode.needs(&wanted, request).iter().try_for_each(|needed| self.authorise(caller, needed)) {
                Ok(()) => return Ok(mode.complete(wanted)),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(ApiError::unauthorized))
    }
}

impl Mode {
    fn fits(self, wanted: &User) -> bool {
        let bare = wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node(&wanted.name).is_some(), account(&wanted.name).is_some());
        match self {
            Mode::Node => bare && node,
            Mode::ServiceAccount => bare && account,
            Mode::UserInfo => {
                let masters = wanted.groups.iter().any(|group| group == "system:masters");
                let domains = wanted
                    .extra
                    .keys()
                    .all(|key| key.split_once('/').is_some_and(|(domain, _)| !domain.is_empty()));
                !node && !account && !masters && domains
            }
            Mode::Legacy => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mode::Node => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    /// What the caller must be allowed.
    fn needs(self, wanted: &User, request: &Attributes) -> Vec<Attributes> {
        let narrow = self != Mode::Legacy;
        let verb = if narrow { format!("impersonate:{}", self.name()) } else { "impersonate".to_owned() };
        let group = if narrow { AUTHENTICATION } else { "" };
        let on = |group: &str, resource: &str, name: &str| Attributes {
            verb: verb.clone(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        let mut needed = Vec::new();
        if narrow {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            needed.push(Attributes { verb, ..request.clone() });
        }
        needed.push(match (account(&wanted.name), node(&wanted.name)) {
            (Some((namespace, name)), _) => {
                Attributes { namespace: namespace.to_owned(), ..on(group, "serviceaccounts", name) }
            }
            (None, Some(name)) if narrow => on(group, "nodes", name),
            _ => on(group, "users", &wanted.name),
        });
        if !wanted.uid.is_empty() {
            needed.push(on(AUTHENTICATION, "uids", &wanted.uid));
        }
        needed.extend(wanted.groups.iter().map(|name| on(group, "groups", name)));
        for (key, values) in &wanted.extra {
            needed.extend(values.iter().map(|value| Attributes {
                subresource: key.clone(),
                ..on(AUTHENTICATION, "userextras", value)
            }));
        }
        needed
    }

    /// Adds the groups that go without saying.
    fn complete(self, mut user: User) -> User {
        if let (Some((namespace, _)), true) = (account(&user.name), user.groups.is_empty()) {
            user.groups =
                vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        }
        if self == Mode::Node {
            user.groups = vec!["system:nodes".to_owned()];
        }
        let has = |group: &str| user.groups.iter().any(|found| found == group);
        let missing = match user.name.as_str() {
            ANONYMOUS => (!has(UNAUTHENTICATED)).then_some(UNAUTHENTICATED),
            _ => (!has(UNAUTHENTICATED) && !has(AUTHENTICATED)).then_some(AUTHENTICATED),
        };
        user.groups.extend(missing.map(str::to_owned));
        user
    }
}

fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty()).then_some((namespace, name))
}

fn node(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| !name.is_empty())
}

/// Undoes percent encoding; a key that is not encoded right is taken as it is.
fn unescape(key: &str) -> String {
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            out.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let Some(byte) = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok()) else {
            return key.to_owned();
        };
        out.push(byte);
        rest = &after[2..];
    }
    String::from_utf8(out).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unescaped_if_they_are_escaped() {
        assert_eq!(unescape("acme.com%2fproject"), "acme.com/project");
        assert_eq!(unescape("half%2"), "half%2");
        assert_eq!(unescape("%zz"), "%zz");
        assert_eq!(unescape("%ff"), "%ff");
    }

    #[test]
    fn groups_that_go_without_saying_are_added() {
        let complete = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            Mode::Legacy.complete(User { groups, ..User::named(name) }).groups
        };
        assert_eq!(complete("ann", &["dev"]), ["dev", "system:authenticated"]);
        assert_eq!(complete("ann", &["system:unauthenticated"]), ["system:unauthenticated"]);
        assert_eq!(complete("system:anonymous", &[]), ["system:unauthenticated"]);
        assert_eq!(
            complete("system:serviceaccount:a:b", &[]),
            ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
        );
    }
}
