//! The real kubectl on a served cluster: the one that `PORTOLAN_KUBECTL` names, that the lab built, or on the path.
//! Without any it says so and ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::PathBuf;
use std::process::Output;

use portolan_sandbox::{
    ClientCertificate, ClusterConfig, NodeConfig, Served, World, WorldConfig, kubeconfig, kubeconfig_with,
};
use tokio::process::Command;

struct Kubectl {
    program: PathBuf,
    config: PathBuf,
    _directory: tempfile::TempDir,
}

impl Kubectl {
    async fn run(&self, arguments: &[&str], input: &str) -> Output {
        use tokio::io::AsyncWriteExt;
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.config)
            .env("HOME", self.config.parent().unwrap())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        child.wait_with_output().await.unwrap()
    }

    async fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "").await
    }

    async fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {}: {told}", arguments.join(" "));
        String::from_utf8(output.stdout).unwrap() + &told
    }

    async fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "").await;
        assert!(!output.status.success(), "kubectl {} is not refused", arguments.join(" "));
        String::from_utf8(output.stderr).unwrap()
    }
}

/// The program, if there is one.
fn program() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("PORTOLAN_KUBECTL") {
        return Some(given.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let built = std::fs::read_dir(cache.join("portolan/parts")).into_iter().flatten().flatten();
    let built = built.filter(|part| part.file_name().to_string_lossy().starts_with("kubernetes-"));
    let mut found: Vec<PathBuf> = built.map(|part| part.path().join("kubectl")).collect();
    found.sort();
    let path = std::env::var_os("PATH")?;
    found.extend(std::env::split_paths(&path).map(|directory| directory.join("kubectl")));
    found.into_iter().find(|program| program.is_file())
}

const WEB: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'web:1', resources: {requests: {cpu: 100m, memory: 64Mi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
";

const SETS: &str = r"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: db, image: 'db:1', volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers:
      - {name: agent, image: 'agent:1'}
";

const ONCE: &str = r"
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'x:1'}]}}}
";

/// kubectl and a cluster for it; none without kubectl.
async fn small_cluster() -> Option<(Kubectl, Served)> {
    let Some(program) = program() else {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!ci, "CI may not skip kubectl on the sandbox: `cargo xtask lab up` builds it");
        eprintln!("!!! SKIPPED: no kubectl; set PORTOLAN_KUBECTL to the program");
        return None;
    };
    let world =
        World::new(WorldConfig { start: "2026-01-01T00:00:00Z".parse().unwrap(), ..WorldConfig::default() });
    let fast = std::time::Duration::from_millis(100);
    let config = ClusterConfig::named("c1")
        .nodes(3, NodeConfig::new("4", "16Gi"))
        .run_time(fast)
        .start_up(fast)
        .shut_down(fast);
    let cluster = world.add_cluster(config);
    let served = cluster.serve("kubectl", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    std::fs::write(&config, kubeconfig([&served]).to_string()).unwrap();
    Some((Kubectl { program, config, _directory: directory }, served))
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_cannot_tell_it_from_a_small_cluster() {
    let Some((kubectl, _served)) = small_cluster().await else { return };

    let nodes = kubectl.ok(&["get", "nodes"]).await;
    assert!(nodes.contains("c1-1") && nodes.contains("Ready") && nodes.contains("v1.36.3"), "{nodes}");
    assert!(kubectl.ok(&["cluster-info"]).await.contains("is running at"));
    assert!(kubectl.ok(&["version"]).await.contains("Server Version: v1.36.3"));
    let resources = kubectl.ok(&["api-resources"]).await;
    assert!(resources.contains("deployments") && resources.contains("apps/v1"), "{resources}");

    let applied = kubectl.ok_with(&["apply", "-f", "-"], WEB).await;
    assert!(
        applied.contains("deployment.apps/web created") && applied.contains("service/web created"),
        "{applied}"
    );
    let rolled = kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    assert!(rolled.contains("successfully rolled out"), "{rolled}");
    kubectl.ok(&["wait", "--for=condition=Available", "deployment/web", "--timeout=30s"]).await;
    let changed = WEB.replace("web:1", "web:2");
    let applied = kubectl.ok_with(&["apply", "-f", "-"], &changed).await;
    assert!(
        applied.contains("deployment.apps/web configured") && applied.contains("service/web unchanged"),
        "{applied}"
    );
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    assert!(kubectl.ok(&["rollout", "history", "deployment/web"]).await.contains('2'));
    kubectl.ok(&["rollout", "undo", "deployment/web"]).await;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    let image = kubectl
        .ok(&["get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"])
        .await;
    assert_eq!(image, "web:1");
    let applied = kubectl.ok_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], WEB).await;
    assert!(applied.contains("serverside-applied"), "{applied}");

    kubectl.ok(&["scale", "deployment/web", "--replicas=3"]).await;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    assert_eq!(kubectl.ok(&["get", "pods", "-l", "app=web", "-o", "name"]).await.lines().count(), 3);
    assert!(kubectl.ok(&["get", "pods", "-o", "wide"]).await.contains("Running"));
    assert!(kubectl.ok(&["get", "all"]).await.contains("replicaset.apps/web-"));
    assert!(kubectl.ok(&["get", "deployment", "web", "-o", "yaml"]).await.contains("observedGeneration"));
    let described = kubectl.ok(&["describe", "deployment", "web"]).await;
    assert!(described.contains("ScalingReplicaSet"), "{described}");
    assert!(kubectl.ok(&["describe", "service", "web"]).await.contains("8080"));
    assert!(kubectl.ok(&["describe", "node", "c1-1"]).await.contains("Allocated resources"));
    assert!(kubectl.ok(&["events"]).await.contains("Scheduled"));

    assert!(kubectl.ok(&["top", "nodes"]).await.contains("c1-1"));
    assert!(kubectl.ok(&["top", "pods"]).await.contains("web-"));
    assert!(kubectl.ok(&["logs", "deployment/web"]).await.contains("started from image"));

    kubectl.ok(&["label", "deployment", "web", "tier=front"]).await;
    kubectl.ok(&["annotate", "deployment", "web", "note=x"]).await;
    kubectl.ok(&["patch", "deployment", "web", "-p", r#"{"spec":{"replicas":2}}"#]).await;
    kubectl.ok(&["taint", "node", "c1-3", "only=me:NoSchedule"]).await;
    kubectl.ok(&["cordon", "c1-2"]).await;
    assert!(kubectl.ok(&["get", "nodes"]).await.contains("SchedulingDisabled"));
    kubectl.ok(&["uncordon", "c1-2"]).await;
    let drained = kubectl.ok(&["drain", "c1-1", "--ignore-daemonsets", "--timeout=30s"]).await;
    assert!(drained.contains("drained"), "{drained}");
    assert!(!kubectl.ok(&["create", "token", "default"]).await.is_empty());
    assert!(kubectl.ok(&["auth", "can-i", "create", "pods"]).await.contains("yes"));
    let refused = kubectl.refused(&["get", "secrets", "--as=nobody", "--token=wrong"]).await;
    assert!(refused.contains("Unauthorized") || refused.contains("logged in"), "{refused}");
    assert!(kubectl.ok(&["explain", "deployment.spec.replicas"]).await.contains("<integer>"));
    kubectl.ok_with(&["create", "-f", "-"], ONCE).await;
    kubectl.ok(&["wait", "--for=condition=Complete", "job/once", "--timeout=60s"]).await;
    let missing = kubectl.refused(&["get", "pod", "missing"]).await;
    assert_eq!(missing.trim(), "Error from server (NotFound): pods \"missing\" not found");
    kubectl.ok(&["delete", "deployment", "web", "--timeout=30s"]).await;
    kubectl
        .ok_with(&["create", "-f", "-"], "{apiVersion: v1, kind: Namespace, metadata: {name: team}}")
        .await;
    kubectl.ok(&["delete", "namespace", "team", "--timeout=30s"]).await;
}

/// A line of a table, one space between its cells.
fn line(table: &str, name: &str) -> String {
    let found =
        table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {table}"));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_rolls_stateful_sets_and_daemon_sets_out_and_back() {
    let Some((kubectl, _served)) = small_cluster().await else { return };
    kubectl.ok_with(&["apply", "-f", "-"], SETS).await;
    for set in ["statefulset/db", "daemonset/agent"] {
        kubectl.ok(&["rollout", "status", set, "--timeout=30s"]).await;
    }
    assert!(line(&kubectl.ok(&["get", "statefulsets"]).await, "db").starts_with("db 2/2 "));
    let daemons = kubectl.ok(&["get", "daemonsets", "-o", "wide"]).await;
    assert!(line(&daemons, "agent").starts_with("agent 3 3 3 3 3 kubernetes.io/os=linux "), "{daemons}");
    let claims = kubectl.ok(&["get", "pvc"]).await;
    assert!(line(&claims, "data-db-1").starts_with("data-db-1 Bound pvc-"), "{claims}");
    assert!(kubectl.ok(&["get", "pv"]).await.contains("default/data-db-1"));

    let changed = SETS.replace("db:1", "db:2").replace("agent:1", "agent:2");
    kubectl.ok_with(&["apply", "-f", "-"], &changed).await;
    for (set, image) in [("statefulset/db", "db:1"), ("daemonset/agent", "agent:1")] {
        kubectl.ok(&["rollout", "status", set, "--timeout=30s"]).await;
        let history = kubectl.ok(&["rollout", "history", set]).await;
        assert!(line(&history, "2").starts_with("2 "), "{history}");
        let first = kubectl.ok(&["rollout", "history", set, "--revision=1"]).await;
        assert!(first.contains(image), "{first}");
        kubectl.ok(&["rollout", "undo", set]).await;
        kubectl.ok(&["rollout", "status", set, "--timeout=30s"]).await;
        let path = "jsonpath={.spec.template.spec.containers[0].image}";
        assert_eq!(kubectl.ok(&["get", set, "-o", path]).await, image);
    }
    let revisions = kubectl.ok(&["get", "controllerrevisions", "-l", "app=db"]).await;
    assert!(revisions.contains("statefulset.apps/db"), "{revisions}");
    kubectl.ok(&["scale", "statefulset/db", "--replicas=3"]).await;
    kubectl.ok(&["rollout", "status", "statefulset/db", "--timeout=30s"]).await;
    assert!(
        kubectl.ok(&["describe", "statefulset", "db"]).await.contains("Create Pod db-2 in StatefulSet db")
    );
    kubectl.ok(&["rollout", "restart", "daemonset/agent"]).await;
    kubectl.ok(&["rollout", "status", "daemonset/agent", "--timeout=30s"]).await;

    let drained = kubectl.ok(&["drain", "c1-1", "--ignore-daemonsets", "--timeout=30s"]).await;
    assert!(drained.contains("drained"), "{drained}");
    let left = kubectl.ok(&["get", "pods", "-o", "name", "--field-selector=spec.nodeName=c1-1"]).await;
    assert!(left.lines().count() == 1 && left.contains("agent-"), "{left}");
    kubectl.ok(&["delete", "statefulset/db", "daemonset/agent", "--timeout=30s"]).await;
}

/// What kubectl makes itself it sends as protobuf.
#[tokio::test(flavor = "multi_thread")]
async fn what_typed_clients_send_is_read() {
    let Some((kubectl, _served)) = small_cluster().await else { return };
    let shown = async |what: &str, path: &str| {
        kubectl.ok(&["get", what, "-o", &format!("jsonpath={{{path}}}")]).await
    };

    kubectl.ok(&["create", "deployment", "web", "--image=web:1", "--replicas=3", "--port=8080"]).await;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    let path = ".spec.replicas} {.spec.template.spec.containers[*].image} {.spec.template.spec.containers[*].ports[*].containerPort";
    assert_eq!(shown("deployment/web", path).await, "3 web:1 8080");
    kubectl.ok(&["expose", "deployment", "web", "--port=80", "--target-port=8080"]).await;
    assert_eq!(
        shown("service/web", ".spec.ports[0].port} {.spec.ports[0].targetPort} {.spec.selector.app").await,
        "80 8080 web"
    );
    kubectl.ok(&["create", "deployment", "none", "--image=web:1", "--replicas=0"]).await;
    assert_eq!(shown("deployment/none", ".spec.replicas").await, "0");
    kubectl.ok(&["set", "image", "deployment/web", "web=web:2"]).await;
    kubectl.ok(&["create", "service", "clusterip", "plain", "--tcp=5678:named"]).await;
    assert_eq!(shown("service/plain", ".spec.ports[0].targetPort").await, "named");

    kubectl.ok(&["create", "job", "once", "--image=x:1", "--", "sh", "-c", "true"]).await;
    kubectl.ok(&["wait", "--for=condition=Complete", "job/once", "--timeout=60s"]).await;
    assert_eq!(shown("job/once", ".spec.template.spec.containers[0].command").await, r#"["sh","-c","true"]"#);

    kubectl.ok(&["create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b="]).await;
    assert_eq!(shown("configmap/settings", ".data").await, r#"{"a":"1","b":""}"#);
    kubectl.ok(&["create", "secret", "generic", "key", "--from-literal=k=value"]).await;
    assert_eq!(shown("secret/key", ".data.k} {.type").await, "dmFsdWU= Opaque");
    kubectl.ok(&["create", "namespace", "team"]).await;
    assert_eq!(shown("namespace/team", ".status.phase").await, "Active");
    kubectl.ok(&["create", "serviceaccount", "robot"]).await;
    let token = kubectl.ok(&["create", "token", "robot", "--duration=10m"]).await;
    kubectl.ok(&["create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps"]).await;
    kubectl.ok(&["create", "rolebinding", "robot", "--role=reader", "--serviceaccount=default:robot"]).await;
    kubectl.ok(&["create", "clusterrole", "health", "--verb=get", "--non-resource-url=/healthz"]).await;
    kubectl.ok(&["create", "clusterrolebinding", "health", "--clusterrole=health", "--user=ann"]).await;
    let robot = format!("--token={}", token.trim());
    assert!(kubectl.ok(&["auth", "can-i", "list", "pods", &robot]).await.contains("yes"));
    kubectl.refused(&["auth", "can-i", "delete", "pods", &robot]).await;
    kubectl.ok(&["create", "poddisruptionbudget", "web", "--selector=app=web", "--max-unavailable=1"]).await;
    assert_eq!(shown("pdb/web", ".spec.maxUnavailable").await, "1");
    kubectl.ok(&["create", "priorityclass", "urgent", "--value=1000"]).await;
    kubectl.ok(&["create", "quota", "few", "--hard=pods=20,services=8"]).await;
    assert_eq!(shown("quota/few", ".spec.hard").await, r#"{"pods":"20","services":"8"}"#);

    kubectl
        .ok(&["run", "single", "--image=x:1", "--restart=Never", "--env=A=b", "--labels=app=single"])
        .await;
    kubectl.ok(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/single", "--timeout=60s"]).await;
    assert_eq!(shown("pod/single", ".spec.containers[0].env[0].value").await, "b");
    let again = kubectl.refused(&["create", "configmap", "settings"]).await;
    assert!(again.contains("configmaps \"settings\" already exists"), "{again}");

    // What has finished is drained too, and which node it ran on depends on how far the rollout was.
    let other = if shown("pod/single", ".spec.nodeName").await == "c1-1" { "c1-2" } else { "c1-1" };
    kubectl.ok(&["cordon", other]).await;
    let drained = kubectl.ok(&["drain", other, "--ignore-daemonsets", "--force", "--timeout=60s"]).await;
    assert!(drained.contains("drained"), "{drained}");
    kubectl.ok(&["uncordon", other]).await;
    kubectl.ok(&["delete", "pod", "single", "--grace-period=0", "--force"]).await;
    kubectl.ok(&["delete", "deployment", "web", "--cascade=foreground", "--timeout=30s"]).await;
}

/// From a request to a user that roles know, all by kubectl.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_kubectl_approved_lets_kubectl_in() {
    let Some((kubectl, served)) = small_cluster().await else { return };
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "team");
    params.distinguished_name.push(rcgen::DnType::CommonName, "jane");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = |name: &str| {
        serde_json::json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {
                "request": k8s_openapi::ByteString(pem.clone().into_bytes()), "expirationSeconds": 3600,
                "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
            },
        })
        .to_string()
    };
    kubectl.ok_with(&["apply", "-f", "-"], &request("jane")).await;
    kubectl.ok_with(&["create", "-f", "-"], &request("other")).await;
    let pending = kubectl.ok(&["get", "csr", "jane"]).await;
    assert!(
        pending.contains("kubernetes-admin") && pending.contains("60m") && pending.contains("Pending"),
        "{pending}"
    );
    assert!(kubectl.ok(&["certificate", "deny", "other"]).await.contains("denied"));
    assert!(kubectl.ok(&["certificate", "approve", "jane"]).await.contains("approved"));
    kubectl.ok(&["wait", "--for=jsonpath={.status.certificate}", "csr/jane", "--timeout=30s"]).await;
    let listed = kubectl.ok(&["get", "csr"]).await;
    assert!(listed.contains("Approved,Issued") && listed.contains("Denied"), "{listed}");
    let described = kubectl.ok(&["describe", "csr", "jane"]).await;
    assert!(
        described.contains("Common Name:    jane") && described.contains("Organization:   team"),
        "{described}"
    );
    let given =
        kubectl.ok(&["get", "csr", "jane", "-o", "go-template={{base64decode .status.certificate}}"]).await;

    let shown = ClientCertificate { certificate: given, key: key.serialize_pem() };
    let config = kubectl.config.with_file_name("jane");
    std::fs::write(&config, kubeconfig_with(&served, "jane", &shown).to_string()).unwrap();
    let jane = format!("--kubeconfig={}", config.display());
    let who = kubectl.ok(&["auth", "whoami", &jane]).await;
    assert!(who.contains("jane") && who.contains("[team system:authenticated]"), "{who}");
    let refused = kubectl.refused(&["get", "pods", &jane]).await;
    assert!(refused.contains("User \"jane\" cannot list resource \"pods\""), "{refused}");
    kubectl.ok(&["create", "role", "reader", "--verb=list", "--resource=pods"]).await;
    kubectl.ok(&["create", "rolebinding", "team", "--role=reader", "--group=team"]).await;
    kubectl.ok(&["get", "pods", &jane]).await;

    kubectl.ok(&["get", "pods", "--as=ann", "--as-group=team"]).await;
    let refused = kubectl.refused(&["get", "pods", "--as=ann"]).await;
    assert!(refused.contains("User \"ann\" cannot list"), "{refused}");
    let refused = kubectl.refused(&["get", "pods", "--as=ann", "--as-group=team", &jane]).await;
    assert!(refused.contains("cannot impersonate"), "{refused}");
    let stranger = kubectl.config.with_file_name("stranger");
    let own = rcgen::generate_simple_self_signed(["jane".to_owned()]).unwrap();
    let shown = ClientCertificate { certificate: own.cert.pem(), key: own.signing_key.serialize_pem() };
    std::fs::write(&stranger, kubeconfig_with(&served, "stranger", &shown).to_string()).unwrap();
    let refused = kubectl.refused(&["get", "pods", &format!("--kubeconfig={}", stranger.display())]).await;
    let nobody =
        refused.contains("User \"system:anonymous\" cannot list") || refused.contains("Unauthorized");
    assert!(nobody, "a certificate of another authority makes nobody of its owner: {refused}");
}
