//! Who asks for what, and whether they may.

use http::{Method, header};

use super::call::Call;
use super::fixed::fixed;
use super::path::{self, Path, ResourcePath};
use super::query::Query;
use super::{Reply, Request, Server, protobuf};
use crate::auth::{Attributes, User, impersonated};
use crate::error::ApiError;

pub(super) fn route(server: &Server, request: &Request) -> Result<Reply, ApiError> {
    let user = authenticate(server, request)?;
    let target = match path::parse(request.uri.path())? {
        Path::Resource(target) => target,
        other => {
            let verb = request.method.as_str().to_lowercase();
            let path = Some(request.uri.path().to_owned());
            permit(server, request, user, || Ok(Attributes { verb, path, ..Attributes::default() }))?;
            return fixed(server, request, other);
        }
    };
    let query = Query::parse(request.uri.query());
    let user = permit(server, request, user, || attributes(request, &target, &query))?;
    let row = server.api().registry.find(&target.group, &target.version, &target.resource);
    let row = row.ok_or_else(ApiError::no_such_path)?;
    let misplaced = !row.namespaced && target.namespace.is_some();
    if misplaced || row.namespaced && target.name.is_some() && target.namespace.is_none() {
        return Err(ApiError::no_such_path());
    }
    protobuf::check_accept(request)?;
    Call { server, request, row, target, query, user }.run()
}

/// Refuses what the caller, or whom it acts as, may not do; says as whom the request is carried out.
fn permit(
    server: &Server,
    request: &Request,
    caller: User,
    wanted: impl FnOnce() -> Result<Attributes, ApiError>,
) -> Result<User, ApiError> {
    let acting = impersonated(&request.headers)?;
    if acting.is_none() && caller.is_master() {
        return Ok(caller);
    }
    let wanted = wanted()?;
    let api = server.api();
    let user = match acting {
        Some(acting) => api.impersonate(&caller, acting, &wanted)?,
        None => caller,
    };
    api.authorise(&user, &wanted)?;
    Ok(user)
}

/// Who calls: by certificate, by token, or as the connection says, or nobody.
fn authenticate(server: &Server, request: &Request) -> Result<User, ApiError> {
    let header = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if !request.certificates.is_empty() {
        let api = server.api();
        match api.authority().and_then(|authority| Ok(authority.user_of(&request.certificates, api.now())?)) {
            Ok(user) => return Ok(user),
            Err(error) if header.is_none() => {
                tracing::debug!(cluster = %api.cluster, "certificate refused: {error}");
                return Err(ApiError::unauthorized());
            }
            // A token may still tell who it is.
            Err(_) => {}
        }
    }
    match header.and_then(|header| header.strip_prefix("Bearer ")) {
        Some(token) => server.api().user_of_token(token.trim()).ok_or_else(ApiError::unauthorized),
        None if header.is_some() => Err(ApiError::unauthorized()),
        None => Ok(request.user.clone().unwrap_or_else(User::anonymous)),
    }
}

/// The verb of a request, as roles name it.
pub(super) fn verb(
    request: &Request,
    target: &ResourcePath,
    query: &Query,
) -> Result<&'static str, ApiError> {
    let named = target.name.is_some();
    Ok(match request.method {
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if query.flag("watch")? => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => return Err(ApiError::method_not_allowed()),
    })
}

/// The one object that a list or watch is about, by its field selector: whoever may look at it may list it alone.
fn named_by_field(query: &Query) -> Option<String> {
    let fields = query.text("fieldSelector")?;
    let mut parts = fields.split(',').filter_map(|part| part.split_once('='));
    let (_, name) = parts.find(|(field, _)| *field == "metadata.name")?;
    Some(name.trim_start_matches('=').to_owned())
}

fn attributes(request: &Request, target: &ResourcePath, query: &Query) -> Result<Attributes, ApiError> {
    let verb = verb(request, target, query)?;
    // A namespace is looked at from inside of itself, as far as roles go.
    let own =
        (target.group.is_empty() && target.resource == "namespaces").then(|| target.name.clone()).flatten();
    Ok(Attributes {
        verb: verb.to_owned(),
        group: target.group.clone(),
        resource: target.resource.clone(),
        subresource: target.subresource.clone().unwrap_or_default(),
        namespace: target.namespace.clone().or(own).unwrap_or_default(),
        name: target.name.clone().or_else(|| named_by_field(query)).unwrap_or_default(),
        path: None,
    })
}
