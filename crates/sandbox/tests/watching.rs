//! Watches: order, selection, bookmarks, expiry, and kube-runtime's watcher on top.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{cluster, config_map, eventually, world};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Config, Event};
use kube::{Api, ResourceExt};
use portolan_sandbox::ClusterConfig;
use serde_json::json;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn events_come_in_order_and_by_selection() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let params = WatchParams::default().labels("tier=front").timeout(20);
    let stream = maps.watch(&params, &cluster.revision().to_string()).await.unwrap();
    let mut map = config_map("a", "1");
    maps.create(&PostParams::default(), &map).await.unwrap();
    let label = |tier: &str| Patch::Merge(json!({"metadata": {"labels": {"tier": tier}}}));
    maps.patch("a", &PatchParams::default(), &label("front")).await.unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"key": "2"}}))).await.unwrap();
    maps.patch("a", &PatchParams::default(), &label("back")).await.unwrap();
    map.metadata.name = Some("b".into());
    map.labels_mut().insert("tier".into(), "front".into());
    maps.create(&PostParams::default(), &map).await.unwrap();
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    let events: Vec<WatchEvent<ConfigMap>> = stream.try_collect().await.unwrap();
    let seen: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            WatchEvent::Added(o) => Some(format!("+{}", o.name_any())),
            WatchEvent::Modified(o) => Some(format!("~{}", o.name_any())),
            WatchEvent::Deleted(o) => Some(format!("-{}", o.name_any())),
            _ => None,
        })
        .collect();
    assert_eq!(seen, ["+a", "~a", "-a", "+b", "-b"]);
    assert!(matches!(events.last(), Some(WatchEvent::Bookmark(_))), "a watch ends with the revision it saw");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_selected_is_passed_over_however_much_it_is() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let from = cluster.revision().to_string();
    for number in 0..600 {
        maps.create(&PostParams::default(), &config_map(&format!("m-{number}"), "1")).await.unwrap();
    }
    let mut selected = config_map("selected", "1");
    selected.labels_mut().insert("tier".into(), "front".into());
    maps.create(&PostParams::default(), &selected).await.unwrap();
    let params = WatchParams::default().labels("tier=front").timeout(20);
    let (mut stream, started) = (maps.watch(&params, &from).await.unwrap().boxed(), Instant::now());
    let first = stream.try_next().await.unwrap();
    assert!(matches!(first, Some(WatchEvent::Added(map)) if map.name_any() == "selected"));
    assert!(started.elapsed().is_zero(), "it was there already");
}

#[tokio::test(start_paused = true)]
async fn an_expired_revision_is_said_and_the_watcher_lists_anew() {
    let world = world(1);
    let cluster = world.add_cluster(ClusterConfig::named("c").ring_size(4));
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    eventually("the cluster is furnished", async || {
        maps.get_opt("kube-root-ca.crt").await.unwrap().is_some()
    })
    .await;
    let then = cluster.revision().to_string();
    let mut seen = watcher::watcher(maps.clone(), Config::default()).boxed();
    let mut names = Vec::new();
    while !matches!(seen.try_next().await.unwrap(), Some(Event::InitDone)) {}
    // The watch has begun but is not polled while more happens than the ring holds.
    for number in 0..10 {
        maps.create(&PostParams::default(), &config_map(&format!("m{number}"), "x")).await.unwrap();
    }
    let mut stream = maps.watch(&WatchParams::default(), &then).await.unwrap().boxed();
    let Some(WatchEvent::Error(status)) = stream.try_next().await.unwrap() else { panic!("no error event") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let mut lists = 0;
    while names.len() < 11 {
        match seen.next().await.unwrap() {
            Ok(Event::Init) => {
                lists += 1;
                names.clear();
            }
            Ok(Event::InitApply(map) | Event::Apply(map)) => names.push(map.name_any()),
            Ok(Event::InitDone | Event::Delete(_)) => {}
            Err(watcher::Error::WatchError(status)) => assert_eq!(status.code, 410),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(lists, 1, "one new list");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_its_mark() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let mut seen = watcher::watcher(maps.clone(), Config::default().streaming_lists()).boxed();
    let mut initial = Vec::new();
    loop {
        match seen.try_next().await.unwrap().unwrap() {
            Event::InitApply(map) => initial.push(map.name_any()),
            Event::InitDone => break,
            _ => {}
        }
    }
    assert!(initial.contains(&"a".to_owned()));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(matches!(seen.try_next().await.unwrap(), Some(Event::Delete(map)) if map.name_any() == "a"));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_learns_the_revision() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let others: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "kube-system");
    eventually("the cluster is furnished", async || {
        others.get_opt("kube-root-ca.crt").await.unwrap().is_some()
    })
    .await;
    let mut stream = maps
        .watch(&WatchParams::default().timeout(290), &cluster.revision().to_string())
        .await
        .unwrap()
        .boxed();
    let later = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        others.create(&PostParams::default(), &config_map("other", "x")).await.unwrap();
    };
    let (event, ()) = tokio::join!(stream.try_next(), later);
    let Some(WatchEvent::Bookmark(mark)) = event.unwrap() else { panic!("no bookmark") };
    assert_eq!(mark.metadata.resource_version, cluster.revision().to_string());
}
