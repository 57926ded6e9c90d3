//! The HTTP client of a member. It is that of the kube crate, but for three things: buffers stay small, since a member has
//! a connection for each kind that is watched, and a fleet has many members; nothing is tried again below the queue of
//! the member, which knows how long to wait; and what a member answers writes no line to the log.

use super::bearer::Bearer;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use std::time::Duration;
use tower::{BoxError, ServiceBuilder};

/// What a connection reads at a time. Grown by need, as hyper does, it came to 50 KiB for each of a dozen connections. The
/// head of an answer must fit: warnings of an API server may take 12 KiB.
const READ_SIZE: usize = 24 << 10;
/// How many connections wait for their next request, and for how long.
const IDLE: usize = 2;
const IDLE_FOR: Duration = Duration::from_secs(30);

pub(super) fn over_the_network(config: Config, bearer: Option<&Bearer>) -> Result<Client, String> {
    if let Some(proxy) = &config.proxy_url {
        let host = proxy.host().unwrap_or_default();
        return Err(format!(
            "its proxy-url, or HTTPS_PROXY of this process, names a proxy ({host}), and members are reached without one"
        ));
    }
    let text = |error: kube::Error| error.to_string();
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    let mut connector =
        TimeoutConnector::new(config.rustls_https_connector_with_connector(plain).map_err(text)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .http1_read_buf_exact_size(READ_SIZE)
        .pool_max_idle_per_host(IDLE)
        .pool_idle_timeout(IDLE_FOR)
        .pool_timer(TokioTimer::new())
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(text)?)
        .layer(config.extra_headers_layer().map_err(text)?)
        .map_err(BoxError::from)
        .service(client);
    let builder = ClientBuilder::new(service, config.default_namespace);
    Ok(match bearer {
        Some(bearer) => builder.with_layer(bearer).build(),
        None => builder.build(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn an_answer_may_have_many_warnings() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let warning = format!("Warning: 299 - \"{}\"\r\n", "w".repeat(1000)).repeat(16);
            let body = r#"{"major":"1","minor":"33","gitVersion":"v1.33.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{warning}Content-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        });
        let client = over_the_network(Config::new(url.parse().unwrap()), None).unwrap();
        assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.33.0");
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_proxy_is_not_passed_by_in_silence() {
        let mut config = Config::new("https://192.0.2.1".parse().unwrap());
        assert!(over_the_network(config.clone(), None).is_ok());
        config.proxy_url = Some("http://user:secret@proxy.example:3128".parse().unwrap());
        let error = over_the_network(config, None).err().unwrap();
        assert!(error.contains("proxy.example") && !error.contains("secret"), "{error}");
    }
}
