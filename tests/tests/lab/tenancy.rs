//! Peering by invitation on real Kubernetes: real signing, real tokens that are bound to Secrets, real roles. The provider's
//! controller has the rights of its own account and no others, and the clock of the consumer is wrong.

use super::peering::address;
use super::proof::{TIMEOUT, eventually, shown, step};
use super::{can_run, kubectl_apply, tenants};
use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Config};
use portolan_api::invitation::Acceptance;
use portolan_api::sharing::Sharing;
use portolan_control::fleet::Credentials;
use portolan_control::peering::{self, Peer, hub_roles, install_definitions, leave_hub};
use portolan_control::sharing::provide;
use portolan_control::tenancy::{
    self, Inviting, NewKey, Redeemed, Redeeming, TenancyError, invite, redeem, tell_provider,
};
use portolan_core::tenancy::InvitationLine;
use portolan_lab::{Cluster, Component, Lab, Seen};
use portolan_runtime::{Clock, Seed, Term};
use portolan_tests::{NAMESPACE, open_namespace, workload};
use rcgen::KeyPair;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// How far the clock of the consumer is ahead, of its controllers and of those who run commands there.
const AHEAD: SignedDuration = SignedDuration::from_mins(10);

struct Peering<'a> {
    provider: &'a Cluster,
    consumer: &'a Cluster,
    admin: Client,
    hub: Client,
    invited: AtomicU8,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_peers_by_invitation_and_by_nothing_else() -> Result<()> {
    if !can_run("a_cluster_peers_by_invitation_and_by_nothing_else") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(2).start().await?;
    shown(&lab, Box::pin(prove(&lab))).await?;
    lab.down()
}

async fn prove(lab: &Lab) -> Result<()> {
    let (provider, consumer) = (lab.cluster("c1")?, lab.cluster("c2")?);
    let (admin, hub) = (provider.client().await?, consumer.client().await?);
    let peering = Peering { provider, consumer, admin, hub, invited: AtomicU8::new(0) };
    install_definitions(&peering.admin).await?;
    kubectl_apply(provider, &hub_roles()).await?;
    let _controllers = peering.control().await?;
    step("refused", peering.refuses()).await?;
    step("peered", peering.peers()).await?;
    step("bounded", peering.is_bounded()).await?;
    step("renewed under load", peering.renews()).await?;
    step("parted", peering.parts()).await?;
    step("signer missing", peering.misses_its_signer()).await
}

impl Peering<'_> {
    async fn control(&self) -> Result<JoinSet<()>> {
        let clock = Clock::starting_at(Timestamp::now());
        let term = Term::alone("test");
        let mut tasks = JoinSet::new();
        let account = self.as_account("portolan-controller").await?;
        tasks.spawn(tenancy::run(account.clone(), clock.clone(), Seed::new(3), term.clone()));
        tasks.spawn(provide(account, clock.clone(), Seed::new(5)));
        let clock = Clock::starting_at(now_in_the_consumer());
        let hub = self.hub.clone();
        let connect = Arc::new(Credentials::from_hub(hub.clone()));
        tasks.spawn(portolan_control::run(
            hub.clone(),
            connect.clone(),
            clock.clone(),
            Seed::new(1),
            term.clone(),
        ));
        tasks.spawn(peering::run(hub.clone(), connect.clone(), clock.clone(), Seed::new(2)));
        let new_key: NewKey = Arc::new(KeyPair::generate);
        tasks.spawn(tenancy::renew(hub, connect, clock, Seed::new(4), term, new_key));
        Ok(tasks)
    }

    /// The provider, as a service account of namespace `portolan`.
    async fn as_account(&self, name: &str) -> Result<Client> {
        let token =
            self.provider.kubectl(&["-n", "portolan", "create", "token", name, "--duration=2h"]).await?;
        self.by_user(json!({ "token": token.trim() })).await
    }

    async fn by_user(&self, user: Value) -> Result<Client> {
        let address = address(self.provider)?;
        let cluster = json!({"server": address.server, "certificate-authority-data": address.authority});
        let kubeconfig = serde_json::from_value(json!({
            "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
        Ok(Client::try_from(config)?)
    }

    async fn invite(&self, life: SignedDuration) -> Result<InvitationLine> {
        let now = Timestamp::now();
        let number = self.invited.fetch_add(1, Ordering::SeqCst);
        let inviting = Inviting {
            provider: "paris".to_owned(),
            consumer: Some("rome".to_owned()),
            namespaces: vec![NAMESPACE.to_owned()],
            sees_cluster: false,
            sharing: Some(Sharing { percentage: Some(100), ..Sharing::default() }),
            acceptance: Acceptance::Automatic,
            expires: Timestamp::from_second((now + life).as_second())?,
            address: address(self.provider)?,
            random: [number; 10],
        };
        let line = Box::pin(invite(&self.admin, &inviting, now)).await?;
        Ok(InvitationLine::decode(&line.encode())?)
    }

    async fn redeem(&self, line: &InvitationLine) -> Result<Redeemed, TenancyError> {
        let with = Redeeming {
            hub: self.hub.clone(),
            own_name: "rome".to_owned(),
            peer: Peer { name: "paris".to_owned(), ..Peer::default() },
            line,
            lifetime: 3600,
            timeout: Duration::from_secs(120),
            dial: &|config: Config| Client::try_from(config).map_err(|error| error.to_string()),
            new_key: Arc::new(KeyPair::generate),
        };
        Box::pin(redeem(&with, &now_in_the_consumer, &|_| ())).await
    }

    /// Whoever has peered is told by how much its clock is wrong.
    fn hears_of_its_clock(&self, redeemed: &Redeemed) -> Result<()> {
        let ahead = redeemed.skew.context("nothing is told of the clock")?.ahead;
        ensure!((ahead - AHEAD).abs() < SignedDuration::from_mins(5), "it is told to be {ahead:?} ahead");
        Ok(())
    }

    async fn phase(&self, line: &InvitationLine, wanted: &str) -> Result<()> {
        let name = format!("invitation/{}", line.invitation);
        let arguments = ["-n", "portolan", "get", &name, "-o", "jsonpath={.status.phase}"];
        eventually(&format!("the invitation is {wanted}"), async || {
            let found = self.provider.kubectl(&arguments).await?;
            Ok(if found == wanted { Seen::Ready(()) } else { Seen::NotYet(found) })
        })
        .await
    }

    /// What an invitation allows, before it is used: one request by one name, and nothing else. One that was stolen and used,
    /// and one that is too old.
    async fn refuses(&self) -> Result<()> {
        let line = self.invite(SignedDuration::from_mins(15)).await?;
        let bootstrap = self.by_user(json!({ "token": line.token })).await?;
        let requests: Api<CertificateSigningRequest> = Api::all(bootstrap.clone());
        forbidden(requests.list(&ListParams::default()).await)?;
        forbidden(
            Api::<Secret>::namespaced(bootstrap.clone(), "portolan").list(&ListParams::default()).await,
        )?;
        let other = request("another-name", "jane", "team")?;
        forbidden(requests.create(&PostParams::default(), &other).await)?;
        // A thief asks for an administrator's certificate by the right name: nobody signs it, and the line is of no use any more.
        let name = format!("portolan-invitation-{}", line.invitation);
        let stolen = request(&name, "kubernetes-admin", "team")?;
        let params = kube::api::PatchParams::apply("thief").force();
        requests.patch(&name, &params, &kube::api::Patch::Apply(&stolen)).await?;
        self.phase(&line, "Refused").await?;
        let all: Api<CertificateSigningRequest> = Api::all(self.admin.clone());
        let status = all.get(&name).await?.status.unwrap_or_default();
        ensure!(status.certificate.is_none(), "signed for a thief");
        let refused = self.redeem(&line).await.err().context("a stolen invitation is used")?;
        ensure!(
            matches!(
                refused,
                TenancyError::OtherKey { .. }
                    | TenancyError::NotAccepted { .. }
                    | TenancyError::Refused { .. }
            ),
            "{refused}"
        );
        // The API server may remember a token for some seconds.
        eventually("the stolen token is worth nothing", async || match requests.get(&name).await {
            Err(kube::Error::Api(status)) if status.code == 401 => Ok(Seen::Ready(())),
            other => Ok(Seen::NotYet(format!("{:?}", other.map(|_| ())))),
        })
        .await?;
        let line = self.invite(SignedDuration::from_secs(2)).await?;
        self.phase(&line, "Expired").await?;
        let expired = self.redeem(&line).await.err().context("an invitation that has expired is used")?;
        ensure!(
            matches!(expired, TenancyError::Expired { .. } | TenancyError::NotAccepted { .. }),
            "{expired}"
        );
        Ok(())
    }

    async fn peers(&self) -> Result<()> {
        let line = self.invite(SignedDuration::from_mins(15)).await?;
        let redeemed = self.redeem(&line).await?;
        ensure!(redeemed.tenant_namespace == "portolan-tenant-rome", "{redeemed:?}");
        self.hears_of_its_clock(&redeemed)?;
        self.consumer.kubectl(&["wait", "--for=condition=Ready", "foreigncluster/paris", TIMEOUT]).await?;
        let incoming = ["wait", "--for=condition=IncomingPeering", "foreigncluster/rome", TIMEOUT];
        self.provider.kubectl(&incoming).await?;
        self.phase(&line, "Used").await?;
        let tenant = self.as_tenant().await?;
        Api::<Pod>::namespaced(tenant.clone(), NAMESPACE).list(&ListParams::default()).await?;
        for namespace in ["kube-system", "portolan", "portolan-tenant-rome"] {
            let secrets: Api<Secret> = Api::namespaced(tenant.clone(), namespace);
            forbidden(secrets.list(&ListParams::default()).await)?;
        }
        // The same line again: it has peered.
        self.redeem(&line).await?;
        Ok(())
    }

    /// The tenant writes what its workloads need, and no more of it than is offered.
    async fn is_bounded(&self) -> Result<()> {
        let tenant = self.as_tenant().await?;
        let user = "jsonpath={.spec.incoming.user}";
        let user = self.provider.kubectl(&["get", "foreigncluster/rome", "-o", user]).await?;
        let invitation = user.rsplit(':').next().unwrap_or_default();
        Box::pin(tenants::are_bounded(self.provider, &self.admin, &tenant, invitation)).await?;
        Box::pin(tenants::are_offered_so_much(self.provider, &self.admin, &tenant)).await
    }

    async fn as_tenant(&self) -> Result<Client> {
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), "portolan");
        let data = secrets.get("paris").await?.data.context("data")?;
        let kubeconfig: Value = serde_json::from_slice(&data["kubeconfig"].0)?;
        self.by_user(kubeconfig["users"][0]["user"].clone()).await
    }

    /// A certificate is due at once, while work goes on. Nobody sees that the connection has another one.
    async fn renews(&self) -> Result<()> {
        kubectl_apply(self.consumer, &[open_namespace()]).await?;
        kubectl_apply(self.consumer, &[workload("web", 1, json!({"locations": ["paris"]}))]).await?;
        let ready = ["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT];
        self.consumer.kubectl(&ready).await?;
        let reachable = self.reachable().await?;
        for replicas in ["--replicas=2", "--replicas=1"] {
            let before = self.held().await?;
            let due = format!("portolan.dev/renew-certificate-at={}", Timestamp::now());
            self.consumer
                .kubectl(&["-n", "portolan", "annotate", "secret/paris", "--overwrite", &due])
                .await?;
            self.consumer.kubectl(&["-n", NAMESPACE, "scale", "mcd/web", replicas]).await?;
            eventually("the certificate is another one", async || {
                let now = self.held().await?;
                Ok(if now == before { Seen::NotYet("the old one".to_owned()) } else { Seen::Ready(()) })
            })
            .await?;
            self.consumer.kubectl(&ready).await?;
        }
        let now = self.reachable().await?;
        ensure!(now == reachable, "it was lost: {reachable}, {now}");
        self.consumer.kubectl(&["-n", NAMESPACE, "delete", "mcd/web", TIMEOUT]).await.map(|_| ())
    }

    async fn held(&self) -> Result<String> {
        let path = "jsonpath={.data.kubeconfig}";
        self.consumer.kubectl(&["-n", "portolan", "get", "secret/paris", "-o", path]).await
    }

    async fn reachable(&self) -> Result<String> {
        let path = "jsonpath={.status.conditions[?(@.type==\"Reachable\")].lastTransitionTime}";
        self.consumer.kubectl(&["get", "foreigncluster/paris", "-o", path]).await
    }

    /// The consumer leaves: nothing of it is left, and its certificate is worth nothing.
    async fn parts(&self) -> Result<()> {
        let tenant = self.as_tenant().await?;
        let dial = |config: kube::Config| Client::try_from(config).map_err(|error| error.to_string());
        let heard = tell_provider(&self.hub, "paris", &dial).await?;
        ensure!(heard == Some(true), "the provider was not told: {heard:?}");
        leave_hub(&self.hub, "paris").await?;
        eventually("the provider has nothing of the tenant", async || {
            let kinds = "foreignclusters,namespaces,clusterroles,clusterrolebindings,rolebindings,certificatesigningrequests";
            let all = self.provider.kubectl(&["get", kinds, "-A", "-o", "name"]).await?;
            let left: Vec<&str> = all
                .lines()
                .filter(|line| line.contains("rome") || line.contains("portolan-invitation-") || line.contains("renewal"))
                .collect();
            Ok(if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(left.join(" ")) })
        })
        .await?;
        forbidden(Api::<Pod>::namespaced(tenant, NAMESPACE).list(&ListParams::default()).await)
    }

    /// Where nobody signs, a token takes the place of the certificate.
    async fn misses_its_signer(&self) -> Result<()> {
        self.provider.kill(Component::ControllerManager).await?;
        let line = self.invite(SignedDuration::from_mins(15)).await?;
        let redeemed = self.redeem(&line).await;
        self.provider.start(Component::ControllerManager).await?;
        let redeemed = redeemed?;
        ensure!(redeemed.kind == "token", "{redeemed:?}");
        self.hears_of_its_clock(&redeemed)?;
        self.consumer.kubectl(&["wait", "--for=condition=Ready", "foreigncluster/paris", TIMEOUT]).await?;
        self.phase(&line, "Used").await?;
        let tenant = self.as_tenant().await?;
        for namespace in ["kube-system", "portolan", "portolan-tenant-rome"] {
            let secrets: Api<Secret> = Api::namespaced(tenant.clone(), namespace);
            forbidden(secrets.list(&ListParams::default()).await)?;
        }
        // The policy is about it too, and about its tokens.
        let long = ask_for_token(&tenant, "portolan-consumer", 31 * 24 * 3600).await;
        let told = long.err().context("a token of a month")?.to_string();
        ensure!(told.contains("portolan-tenants") && told.contains("at most 2592000 s"), "{told}");
        forbidden(ask_for_token(&tenant, "default", 3600).await)?;
        let before = self.held().await?;
        let due = format!("portolan.dev/renew-at={}", Timestamp::now());
        self.consumer.kubectl(&["-n", "portolan", "annotate", "secret/paris", "--overwrite", &due]).await?;
        eventually("the token is another one", async || {
            let now = self.held().await?;
            Ok(if now == before { Seen::NotYet("the old one".to_owned()) } else { Seen::Ready(()) })
        })
        .await?;
        let tenant = self.as_tenant().await?;
        Api::<Pod>::namespaced(tenant.clone(), NAMESPACE).list(&ListParams::default()).await?;
        let account =
            ["-n", "portolan-tenant-rome", "delete", "serviceaccount", "portolan-consumer", TIMEOUT];
        self.provider.kubectl(&account).await?;
        // The API server may remember a token for some seconds.
        let pods: Api<Pod> = Api::namespaced(tenant, NAMESPACE);
        eventually("the token is worth nothing", async || match pods.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 401 => Ok(Seen::Ready(())),
            other => Ok(Seen::NotYet(format!("{:?}", other.map(|_| ())))),
        })
        .await
    }
}

fn now_in_the_consumer() -> Timestamp {
    Timestamp::now() + AHEAD
}

async fn ask_for_token(client: &Client, account: &str, seconds: i64) -> kube::Result<TokenRequest> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "portolan-tenant-rome");
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    accounts.create_token_request(account, &PostParams::default(), &request).await
}

fn forbidden<T>(result: kube::Result<T>) -> Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("it is allowed"),
    }
}

/// A request for somebody's certificate.
fn request(name: &str, user: &str, group: &str) -> Result<CertificateSigningRequest> {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, user);
    params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    let labels = json!({"portolan.dev/request-of": name.trim_start_matches("portolan-invitation-")});
    Ok(serde_json::from_value(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "request": k8s_openapi::ByteString(pem.into_bytes()), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth", "digital signature"], "expirationSeconds": 3600,
        },
    }))?)
}
