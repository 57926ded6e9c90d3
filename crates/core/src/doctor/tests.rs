//! Every row: evidence, and what is made of it.

use super::Verdict::{Healthy, Problem, Unknown, Warning};
use super::*;
use jiff::SignedDuration;
use proptest::prelude::*;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn in_hours(hours: i64) -> Timestamp {
    now() + SignedDuration::from_hours(hours)
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The verdict is the one given, and the message and the advice have these words.
#[track_caller]
fn is(evidence: Evidence, verdict: Verdict, words: &[&str]) {
    let finding = judge(&evidence, now());
    assert_eq!(finding.verdict, verdict, "{finding:?}");
    let text = format!("{} → {}", finding.message, finding.advice);
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
    let silent =
        matches!(evidence, Evidence::NotReached { .. } | Evidence::Kubernetes(_) | Evidence::NotAsked { .. });
    assert_eq!(finding.advice.is_empty(), verdict == Healthy || silent && verdict == Unknown, "{finding:?}");
}

#[test]
fn what_could_not_be_asked_is_unknown_with_the_right_that_is_missing() {
    is(
        Evidence::NotAllowed { right: "get secrets in namespace portolan".into() },
        Unknown,
        &["get secrets", "ask"],
    );
    is(Evidence::NotAsked { why: "no answer".into(), advice: String::new() }, Unknown, &["no answer"]);
    is(Evidence::NotReached { after: Check::Tcp }, Unknown, &["tcp failed"]);
    is(Evidence::TimedOut { limit: ms(30_000) }, Unknown, &["30 s", "--timeout"]);
    is(
        Evidence::BadAddress { why: "x is no URL".into(), advice: "correct it".into() },
        Problem,
        &["x is no URL"],
    );
}

#[test]
fn names_and_connections() {
    let dns = |found| Evidence::Dns(Dns { host: "a.example".into(), found });
    is(dns(Ok(vec!["10.0.0.1".into(), "10.0.0.2".into()])), Healthy, &["a.example is 10.0.0.1, 10.0.0.2"]);
    is(dns(Ok(Vec::new())), Problem, &["no address"]);
    is(dns(Err("no such host".into())), Problem, &["a.example", "no such host", "--remote-server"]);
    let tcp = |tried: &[(&str, Result<Duration, TcpFailure>)]| {
        let tried = tried.iter().map(|(address, outcome)| ((*address).to_owned(), outcome.clone()));
        Evidence::Tcp(Tcp { port: 6443, tried: tried.collect() })
    };
    is(tcp(&[("10.0.0.1:6443", Ok(ms(2)))]), Healthy, &["10.0.0.1:6443 in 2.0 ms"]);
    is(
        tcp(&[("10.0.0.1:6443", Err(TcpFailure::Refused))]),
        Problem,
        &["10.0.0.1:6443 refuses", "TCP port 6443"],
    );
    is(
        tcp(&[("10.0.0.1:6443", Err(TcpFailure::TimedOut(ms(5000))))]),
        Problem,
        &["5.0 s", "firewall", "6443"],
    );
    is(tcp(&[("10.0.0.1:6443", Err(TcpFailure::Other("no route".into())))]), Problem, &["no route", "route"]);
    let half = [("10.0.0.1:6443", Ok(ms(2))), ("10.0.0.2:6443", Err(TcpFailure::Refused))];
    is(tcp(&half), Warning, &["10.0.0.2:6443 refuses", "connected to 10.0.0.1:6443"]);
}

#[test]
fn privacy() {
    let tls = |outcome| {
        Evidence::Tls(Tls {
            target: "10.0.0.1:6443".into(),
            name: "a.example".into(),
            unchecked: false,
            outcome,
        })
    };
    is(tls(Ok(())), Healthy, &["10.0.0.1:6443", "a.example"]);
    is(
        tls(Err(TlsFailure::UnknownIssuer)),
        Problem,
        &["10.0.0.1:6443", "not signed by", "certificate-authority-data"],
    );
    is(tls(Err(TlsFailure::Expired)), Problem, &["expired", "renew"]);
    is(tls(Err(TlsFailure::NotYetValid)), Problem, &["not valid yet", "clock"]);
    is(tls(Err(TlsFailure::WrongName)), Problem, &["not for a.example", "tls-server-name"]);
    is(tls(Err(TlsFailure::TimedOut(ms(5000)))), Problem, &["within 5.0 s", "TLS"]);
    is(tls(Err(TlsFailure::Other("eof".into()))), Problem, &["eof"]);
    let unchecked = Tls { target: "a:1".into(), name: "a".into(), unchecked: true, outcome: Ok(()) };
    is(Evidence::Tls(unchecked), Warning, &["anybody", "insecure-skip-tls-verify"]);
    let certificate = |from, until| {
        let called = "serving certificate of a:1".to_owned();
        Evidence::Certificate(Certificate {
            called,
            from: in_hours(from),
            until: in_hours(until),
            renew: "renew it",
        })
    };
    is(certificate(-1, 24 * 90), Healthy, &["valid for 90 days"]);
    is(certificate(-24 * 345, 24 * 20), Warning, &["20 days", "renew it"]);
    is(certificate(-24 * 364, 24), Problem, &["24 h", "renew it"]);
    // Of seven days, as peering asks for it, and of one.
    is(certificate(-24 * 3, 24 * 4), Healthy, &["4 days"]);
    is(certificate(-24 * 6, 24), Warning, &["24 h", "renew it"]);
    is(certificate(-24 * 7 + 8, 8), Problem, &["8 h", "renew it"]);
    is(certificate(-11, 13), Healthy, &["13 h"]);
    is(certificate(-48, -24), Problem, &["expired 24 h ago", "renew it"]);
    is(certificate(1, 24 * 90), Problem, &["is valid from", "clock"]);
}

#[test]
fn answers_clocks_and_speed() {
    let api = |answer| {
        Evidence::Api(Answer {
            server: "https://a".into(),
            credential: "your credential".into(),
            answer,
            renew: "log in",
        })
    };
    is(api(Ok("v1.36.0".into())), Healthy, &["https://a", "v1.36.0"]);
    is(api(Err((Some(401), "Unauthorized".into()))), Problem, &["does not accept your credential", "log in"]);
    is(api(Err((Some(503), "busy".into()))), Problem, &["refuses: busy (503)"]);
    is(api(Err((None, "closed".into()))), Problem, &["does not answer: closed"]);
    is(Evidence::Ready(Ready { server: "https://a".into(), problem: None }), Healthy, &["ready"]);
    let unready = Ready { server: "https://a".into(), problem: Some("etcd failed".into()) };
    is(Evidence::Ready(unready), Problem, &["etcd failed", "/readyz"]);
    let clock =
        |seconds: i64, within| Evidence::Clock(Clock { ahead: SignedDuration::from_secs(seconds), within });
    is(clock(0, ms(510)), Healthy, &["agrees"]);
    is(clock(3, ms(510)), Healthy, &["3.0 s ahead of"]);
    is(clock(-10, ms(510)), Warning, &["10 s behind", "NTP"]);
    is(clock(600, ms(510)), Problem, &["10 min ahead of", "NTP"]);
    is(clock(31, ms(5000)), Warning, &["31 s"]);
    let latency = |times: &[u64], failed| {
        Evidence::Latency(Latency { times: times.iter().map(|time| ms(*time)).collect(), failed })
    };
    is(latency(&[9, 1, 2], 0), Healthy, &["3 of 3 requests", "median 2.0 ms", "longest 9.0 ms"]);
    is(latency(&[1], 2), Warning, &["1 of 3 requests"]);
    is(latency(&[600, 700, 800], 0), Warning, &["median 700.0 ms"]);
    is(latency(&[1, 3000], 0), Problem, &["longest 3.0 s", "waits 3.0 s"]);
    is(latency(&[], 5), Problem, &["none of 5 requests"]);
}

#[test]
fn versions_and_definitions() {
    let kubernetes = |version: &str| Evidence::Kubernetes(Kubernetes { version: version.into() });
    is(kubernetes("v1.36.0-gke.12"), Healthy, &["v1.36.0-gke.12"]);
    is(kubernetes("v1.29.4"), Warning, &["older than 1.33"]);
    is(kubernetes("mine"), Unknown, &["mine"]);
    let portolan = |controller: Option<&str>| {
        Evidence::Portolan(Portolan { client: "0.5.0".into(), controller: controller.map(str::to_owned) })
    };
    is(portolan(Some("0.5.0")), Healthy, &["0.5.0"]);
    is(portolan(Some("0.4.9")), Warning, &["0.4.9"]);
    is(portolan(Some("0.7.0")), Problem, &["more than one minor"]);
    is(portolan(Some("x")), Unknown, &["cannot be compared"]);
    is(portolan(None), Unknown, &["no controller has told"]);
    let all = || Definitions { wanted: 9, ..Definitions::default() };
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let fields = || vec![("a.portolan.dev".to_owned(), vec!["spec.new".to_owned()])];
    is(Evidence::Definitions(all()), Healthy, &["9 definitions"]);
    let missing = Definitions { missing: vec!["a.portolan.dev".into()], ..all() };
    is(Evidence::Definitions(missing), Problem, &["not installed: a.portolan.dev", "portolan crds"]);
    let unserved = Definitions { not_served: vec![pair("a.portolan.dev", "conflict")], ..all() };
    is(Evidence::Definitions(unserved), Problem, &["a.portolan.dev is not served: conflict"]);
    is(
        Evidence::Definitions(Definitions { older: fields(), ..all() }),
        Problem,
        &["a.portolan.dev lacks spec.new"],
    );
    is(
        Evidence::Definitions(Definitions { newer: fields(), ..all() }),
        Warning,
        &["has spec.new", "newer version"],
    );
    is(
        Evidence::Definitions(Definitions { names_only: true, ..all() }),
        Unknown,
        &["customresourcedefinitions"],
    );
}

#[test]
fn leaders_and_pods() {
    let lease = |holder: &str, ago: i64| LeaseFacts {
        holder: holder.into(),
        renewed: Some(now() - SignedDuration::from_secs(ago)),
        duration: SignedDuration::from_secs(15),
    };
    let leader = |lease, seen: Option<i64>| {
        let seen = seen.map(|ago| now() - SignedDuration::from_secs(ago));
        Evidence::Leader(Leader { place: "portolan/lease".into(), lease, seen })
    };
    is(leader(Some(lease("a_1", 3)), None), Healthy, &["a_1 leads", "portolan/lease", "3.0 s ago"]);
    is(leader(Some(lease("a_1", 600)), Some(700)), Problem, &["no controller leads", "10 min ago by a_1"]);
    is(leader(Some(lease("", 3)), None), Problem, &["no controller leads"]);
    is(leader(None, None), Problem, &["does not exist", "portolan controller"]);
    is(leader(None, Some(60)), Healthy, &["without election"]);
    is(leader(Some(lease("a_1", 600)), Some(60)), Healthy, &["without election"]);
    let pod = |ready, restarts, reason: Option<&str>| PodFacts {
        name: "p".into(),
        ready,
        restarts,
        reason: reason.map(str::to_owned),
    };
    let pods = |pods| Evidence::Controllers(Controllers { namespace: "portolan".into(), pods });
    is(pods(Vec::new()), Unknown, &["outside of the hub"]);
    is(pods(vec![pod(true, 0, None)]), Healthy, &["1 pod ready"]);
    is(pods(vec![pod(true, 3, Some("OOMKilled"))]), Warning, &["OOMKilled, 3 restarts"]);
    is(
        pods(vec![pod(false, 1, Some("CrashLoopBackOff"))]),
        Problem,
        &["CrashLoopBackOff", "logs controller"],
    );
}

#[test]
fn rights_and_what_is_in_the_way() {
    let rights = |missing: &[&str], optional| {
        let missing = missing.iter().map(|each| (*each).to_owned()).collect();
        Evidence::Rights(Rights {
            whose: "x".into(),
            asked: 30,
            missing,
            grant: "grant them".into(),
            optional,
        })
    };
    is(rights(&[], false), Healthy, &["x has all of 30 rights"]);
    is(rights(&["patch jobs.batch"], false), Problem, &["1 right of 30: patch jobs.batch", "grant them"]);
    is(rights(&["patch jobs.batch"], true), Warning, &["patch jobs.batch"]);
    is(rights(&["a"; 20], false), Problem, &["and 12 more"]);
    let webhook = |backend, fails, resource: &str| Webhook {
        called: "ValidatingWebhookConfiguration p, webhook w".into(),
        fails,
        rules: vec![Rule { groups: vec!["apps".into()], resources: vec![resource.into()] }],
        target: "ns/svc:443".into(),
        backend,
    };
    let webhooks = |webhook| {
        Evidence::Webhooks(Webhooks {
            all: vec![webhook],
            written: vec![("apps".into(), "deployments".into())],
        })
    };
    is(webhooks(webhook(Backend::Ready(2), true, "*")), Healthy, &["1 webhook; 1 refuse"]);
    is(
        webhooks(webhook(Backend::NoService, true, "*")),
        Problem,
        &["ns/svc:443 does not exist", "failurePolicy"],
    );
    is(
        webhooks(webhook(Backend::Ready(0), true, "deployments")),
        Problem,
        &["ns/svc:443 has no ready endpoint"],
    );
    is(webhooks(webhook(Backend::NoService, false, "*")), Healthy, &[]);
    is(webhooks(webhook(Backend::NoService, true, "statefulsets")), Healthy, &[]);
    is(webhooks(webhook(Backend::NoService, true, "deployments/scale")), Healthy, &[]);
    is(
        webhooks(webhook(Backend::Url("a.example".into()), true, "*/*")),
        Unknown,
        &["a.example, which is not asked"],
    );
    is(
        webhooks(webhook(Backend::Unknown("get services".into()), true, "*")),
        Unknown,
        &["you may not get services"],
    );
    is(Evidence::ApiServices(ApiServices { total: 3, unavailable: Vec::new() }), Healthy, &["3 APIServices"]);
    let unavailable = vec![("v1beta1.metrics.k8s.io".to_owned(), "no endpoints".to_owned())];
    is(
        Evidence::ApiServices(ApiServices { total: 3, unavailable }),
        Problem,
        &["v1beta1.metrics.k8s.io: no endpoints", "delete them"],
    );
}

#[test]
fn members() {
    let stated = |type_: &str, status: &str| StatedCondition {
        type_: type_.into(),
        status: status.into(),
        reason: "Why".into(),
        message: "words".into(),
    };
    let conditions = |all, current| Evidence::Conditions(Conditions { all, current });
    is(conditions(vec![stated("Ready", "True")], true), Healthy, &["Why"]);
    is(conditions(vec![stated("Ready", "Unknown")], true), Problem, &["Ready is Unknown (Why): words"]);
    is(conditions(Vec::new(), true), Unknown, &["no controller has looked"]);
    is(conditions(vec![stated("Ready", "True")], false), Warning, &["last change"]);
    is(
        conditions(vec![stated("Ready", "True"), stated("Orphaned", "True")], true),
        Warning,
        &["Orphaned is True"],
    );
    let within = SignedDuration::from_secs(180);
    let seen = |ago: Option<i64>| {
        Evidence::LastSeen(LastSeen { seen: ago.map(|ago| now() - SignedDuration::from_secs(ago)), within })
    };
    is(seen(Some(60)), Healthy, &["60 s ago"]);
    is(seen(Some(600)), Problem, &["10 min ago", "between the controller and the member"]);
    is(seen(None), Problem, &["not reached it yet"]);
    let credential = |expires: Option<i64>, renew: Option<i64>| {
        Evidence::Credential(Credential {
            secret: "portolan/lille".into(),
            problem: None,
            kind: CredentialKind::Token,
            subject: Some("system:serviceaccount:portolan:hub-1".into()),
            expires: expires.map(in_hours),
            renew: renew.map(in_hours),
        })
    };
    let certificate = |expires, renew| {
        let mut evidence = credential(Some(expires), Some(renew));
        if let Evidence::Credential(credential) = &mut evidence {
            credential.kind = CredentialKind::Certificate;
        }
        evidence
    };
    is(certificate(90, 6), Healthy, &["the certificate of", "3 days"]);
    is(certificate(4, -8), Warning, &["was due 8 h ago", "`portolan controller`"]);
    is(certificate(-2, -14), Problem, &["the certificate of", "expired 2 h ago", "portolan invite"]);
    is(credential(Some(20), Some(8)), Healthy, &["hub-1", "portolan/lille", "20 h"]);
    is(credential(Some(11), Some(-1)), Healthy, &["11 h"]);
    is(credential(Some(4), Some(-8)), Warning, &["was due 8 h ago", "serviceaccounts/token"]);
    is(credential(Some(-2), Some(-14)), Problem, &["expired 2 h ago", "portolan peer"]);
    is(credential(Some(20), None), Warning, &["does not renew it"]);
    is(credential(None, None), Healthy, &["does not tell when it expires"]);
    let broken = Credential {
        secret: "portolan/lille".into(),
        problem: Some("Secret portolan/lille has no key kubeconfig".into()),
        kind: CredentialKind::Token,
        subject: None,
        expires: None,
        renew: None,
    };
    is(Evidence::Credential(broken), Problem, &["no key kubeconfig", "portolan peer"]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let open = |open: &[&str], closed: &[&str]| {
        Evidence::Namespaces(Namespaces { open: names(open), closed: names(closed) })
    };
    is(open(&["shop"], &[]), Healthy, &["1 namespace open: shop"]);
    is(open(&[], &[]), Warning, &["no namespace", "--namespace"]);
    is(open(&["a"], &["shop"]), Problem, &["not open: shop", "portolan.dev/placement=allowed"]);
}

proptest! {
    /// A clock that is further off is never judged better, nor is a certificate that ends sooner.
    #[test]
    fn what_is_worse_is_not_judged_better(less in 0_i64..100_000, more in 0_i64..100_000, within in 0_u64..10_000) {
        let (less, more) = (less.min(more), less.max(more));
        let clock = |ahead| judge(&Evidence::Clock(Clock { ahead: SignedDuration::from_secs(ahead), within: ms(within) }), now());
        prop_assert!(clock(less).verdict <= clock(more).verdict);
        prop_assert_eq!(clock(-more).verdict, clock(more).verdict);
        let certificate = |hours: i64| {
            let called = "certificate".to_owned();
            let evidence = Certificate { called, from: in_hours(-1), until: in_hours(hours - 1000), renew: "" };
            judge(&Evidence::Certificate(evidence), now()).verdict
        };
        prop_assert!(certificate(more) <= certificate(less));
    }
}

#[test]
fn a_policy_that_is_missing_is_a_problem_as_soon_as_there_are_tenants() {
    let binding = "ValidatingAdmissionPolicyBinding portolan-tenants".to_owned();
    let policy = |consumers, missing: &[&String], idle: &[(&str, &str)]| {
        Evidence::TenantPolicy(TenantPolicy {
            consumers,
            missing: missing.iter().map(|each| (*each).clone()).collect(),
            idle: idle.iter().map(|(name, why)| ((*name).to_owned(), (*why).to_owned())).collect(),
        })
    };
    is(policy(2, &[], &[]), Healthy, &["portolan-tenants"]);
    is(policy(0, &[&binding], &[]), Healthy, &["no cluster consumes"]);
    is(policy(1, &[&binding], &[]), Problem, &["not installed", &binding, "1 consumer", "crds --roles"]);
    is(policy(2, &[], &[("the binding", "it does not deny")]), Problem, &["it does not deny", "2 consumers"]);
}
