use super::super::way::Credential;
use super::*;
use portolan_core::doctor::Verdict;
use portolan_runtime::Clock as MachineClock;
use portolan_sandbox::{ClusterConfig, Served, World, WorldConfig, kubeconfig};
use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener};

async fn serve() -> (World, Served) {
    let world = World::new(WorldConfig { start: Timestamp::now(), ..WorldConfig::default() });
    let served =
        world.add_cluster(ClusterConfig::named("c1")).serve("doctor", (Ipv4Addr::LOCALHOST, 0).into()).await;
    (world, served.unwrap())
}

/// What the hops of a kubeconfig show on a machine whose clock is so far ahead.
async fn shown(kubeconfig: Value, ahead: SignedDuration) -> (bool, Value) {
    let read = serde_json::from_value(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &Default::default()).await.unwrap();
    let client = Client::try_from(config.clone()).unwrap();
    let sheet = Sheet::new("c1", MachineClock::starting_at(Timestamp::now()).skewed(ahead));
    let credential = Credential { called: "the credential".to_owned(), renew: "get another one" };
    let answers = hops(&sheet, &Way { config, client, credential }).await;
    (answers, sheet.report().data())
}

#[track_caller]
fn assert_verdict(data: &Value, check: Check, verdict: Verdict, words: &[&str]) {
    let all = data["checks"].as_array().unwrap();
    let line = all
        .iter()
        .find(|line| line["check"] == check.as_str())
        .unwrap_or_else(|| panic!("{check:?}: {data}"));
    assert_eq!(line["verdict"], verdict.as_str(), "{line}");
    let text = format!("{} {}", line["message"], line["advice"]);
    words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
}

#[tokio::test]
async fn every_hop_to_a_cluster_that_is_well_is_healthy() {
    let (_world, served) = serve().await;
    let (answers, data) = shown(kubeconfig([&served]), SignedDuration::ZERO).await;
    assert!(answers && data["problems"] == 0, "{data}");
    for check in
        [Check::Dns, Check::Tcp, Check::Tls, Check::Certificate, Check::Api, Check::Ready, Check::Clock]
    {
        assert_verdict(&data, check, Verdict::Healthy, &[]);
    }
}

#[tokio::test]
async fn a_clock_that_is_ten_minutes_off_is_named() {
    let (_world, served) = serve().await;
    let (_, data) = shown(kubeconfig([&served]), SignedDuration::from_mins(-10)).await;
    assert_verdict(&data, Check::Clock, Verdict::Problem, &["ahead of", "NTP"]);
}

#[tokio::test]
async fn the_authority_of_another_cluster_is_a_problem_of_tls_and_nothing_is_sent() {
    let (_world, served) = serve().await;
    let other = World::new(WorldConfig { seed: 99, start: Timestamp::now(), ..WorldConfig::default() });
    let other =
        other.add_cluster(ClusterConfig::named("c2")).serve("doctor", (Ipv4Addr::LOCALHOST, 0).into()).await;
    let mut wrong = kubeconfig([&served]);
    let theirs = &kubeconfig([&other.unwrap()])["clusters"][0]["cluster"]["certificate-authority-data"];
    wrong["clusters"][0]["cluster"]["certificate-authority-data"] = theirs.clone();
    let (answers, data) = shown(wrong, SignedDuration::ZERO).await;
    assert!(!answers);
    assert_verdict(&data, Check::Tls, Verdict::Problem, &["127.0.0.1:", "not signed by the authority"]);
    assert_verdict(&data, Check::Api, Verdict::Unknown, &["tls failed"]);
}

#[tokio::test]
async fn a_wrong_token_is_a_problem_of_the_api_and_is_not_shown() {
    let (_world, served) = serve().await;
    let mut wrong = kubeconfig([&served]);
    wrong["users"][0]["user"]["token"] = "not-the-token".into();
    let (answers, data) = shown(wrong, SignedDuration::ZERO).await;
    assert!(!answers && !data.to_string().contains("not-the-token"), "{data}");
    assert_verdict(
        &data,
        Check::Api,
        Verdict::Problem,
        &["does not accept the credential", "get another one"],
    );
}

#[tokio::test]
async fn a_port_where_nothing_listens_and_one_that_does_not_speak_tls_are_told_apart() {
    let (_world, served) = serve().await;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let mut closed = kubeconfig([&served]);
    closed["clusters"][0]["cluster"]["server"] = format!("https://{free}").into();
    let (_, data) = shown(closed.clone(), SignedDuration::ZERO).await;
    let port = format!("TCP port {}", free.port());
    assert_verdict(&data, Check::Tcp, Verdict::Problem, &["refuses the connection", &port]);
    assert_verdict(&data, Check::Tls, Verdict::Unknown, &["tcp failed"]);

    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"220 mail.example ESMTP\r\n").await;
        }
    });
    closed["clusters"][0]["cluster"]["server"] = format!("https://{address}").into();
    let (_, data) = shown(closed, SignedDuration::ZERO).await;
    assert_verdict(&data, Check::Tcp, Verdict::Healthy, &[]);
    assert_verdict(&data, Check::Tls, Verdict::Problem, &["handshake failed"]);
}

#[test]
fn a_date_of_whole_seconds_is_right_within_half_a_second_and_half_the_way() {
    let before: Timestamp = "2026-11-18T20:00:00.200Z".parse().unwrap();
    let read = skew("Wed, 18 Nov 2026 20:00:00 GMT", before, Duration::from_millis(200)).unwrap();
    assert_eq!((read.ahead, read.within), (SignedDuration::from_millis(200), Duration::from_millis(600)));
    assert!(skew("yesterday", before, Duration::ZERO).is_none());
}
