//! Who asks for what, and whether they may.

use http::{Method, header};

use super::call::Call;
use super::fixed::fixed;
use super::path::{self, Path, ResourcePath};
use super::query::Query;
use super::{Reply, Request, Server, protobuf};
use crate::auth::{Attributes, User};
use crate::error::ApiError;

pub(super) fn route(server: &Server, request: &Request) -> Result<Reply, ApiError> {
    let user = authenticate(server, request)?;
    let target = match path::parse(request.uri.path())? {
        Path::Resource(target) => target,
        other => {
            if !user.is_master() {
                let verb = request.method.as_str().to_lowercase();
                let path = Some(request.uri.path().to_owned());
                server.api().authorise(&user, &Attributes { verb, path, ..Attributes::default() })?;
            }
            return fixed(server, request, other);
        }
    };
    let query = Query::parse(request.uri.query());
    if !user.is_master() {
        server.api().authorise(&user, &attributes(request, &target, &query)?)?;
    }
    let row = server.api().registry.find(&target.group, &target.version, &target.resource);
    let row = row.ok_or_else(ApiError::no_such_path)?;
    if row.namespaced && target.name.is_some() && target.namespace.is_none() {
        return Err(ApiError::no_such_path());
    }
    protobuf::check_accept(request)?;
    Call { server, request, row, target, query, user }.run()
}

/// Who calls: by token, or as the connection says, or nobody.
fn authenticate(server: &Server, request: &Request) -> Result<User, ApiError> {
    let header = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match header.and_then(|header| header.strip_prefix("Bearer ")) {
        Some(token) => server.api().user_of_token(token.trim()).ok_or_else(ApiError::unauthorized),
        None if header.is_some() => Err(ApiError::unauthorized()),
        None => Ok(request.user.clone().unwrap_or_else(User::anonymous)),
    }
}

fn attributes(request: &Request, target: &ResourcePath, query: &Query) -> Result<Attributes, ApiError> {
    let named = target.name.is_some();
    let verb = match request.method {
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if query.flag("watch")? => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => return Err(ApiError::method_not_allowed()),
    };
    // A namespace is looked at from inside of itself, as far as roles go.
    let own =
        (target.group.is_empty() && target.resource == "namespaces").then(|| target.name.clone()).flatten();
    Ok(Attributes {
        verb: verb.to_owned(),
        group: target.group.clone(),
        resource: target.resource.clone(),
        subresource: target.subresource.clone().unwrap_or_default(),
        namespace: target.namespace.clone().or(own).unwrap_or_default(),
        name: target.name.clone().unwrap_or_default(),
        path: None,
    })
}
