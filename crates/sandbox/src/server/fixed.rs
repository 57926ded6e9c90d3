//! Paths that are no resources: health, version, discovery, OpenAPI.

use http::{Method, header};
use serde_json::json;

use super::path::Path;
use super::{Reply, Request, Server, openapi};
use crate::error::ApiError;

/// The type of aggregated discovery, which a client looks for in the answer.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(super) fn fixed(server: &Server, request: &Request, path: Path) -> Result<Reply, ApiError> {
    if request.method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let accept =
        request.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let aggregated = accept.split(',').any(|range| {
        range.contains("as=APIGroupDiscoveryList") && range.contains("v=v2;")
            || range.trim().ends_with("v=v2")
    });
    let value = match path {
        Path::CoreVersions | Path::Groups if aggregated => {
            let found = server.api().registry.aggregated(path == Path::CoreVersions);
            let mut reply = Reply::value(200, &found);
            reply.content_type = AGGREGATED;
            return Ok(reply);
        }
        Path::OpenApi => openapi::index(&server.api().registry),
        Path::OpenApiOf(group, version) => {
            openapi::document(&server.api().registry, &group, &version).ok_or_else(ApiError::no_such_path)?
        }
        Path::Health => return Ok(Reply::text(200, "ok")),
        Path::Version => json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.3+portolan-sandbox", "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "", "goVersion": "", "compiler": "", "platform": "linux/amd64",
        }),
        Path::CoreVersions => json!({
            "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
        }),
        Path::Groups => server.api().registry.group_list(),
        Path::Group(group) => server.api().registry.group(&group).ok_or_else(ApiError::no_such_path)?,
        Path::Resources(group, version) => {
            server.api().registry.resource_list(&group, &version).ok_or_else(ApiError::no_such_path)?
        }
        Path::Resource(_) | Path::Unknown => return Ok(Reply::text(404, "404 page not found\n")),
    };
    Ok(Reply::value(200, &value))
}
