//! Every fingerprint input that a file names is compared: no tenant gets another's response.
// Spec: C3.

use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::{Value, json};

use super::client::{ProxyRequest, send};
use super::identity::{SECRET, claims, hs256};
use super::program::{ProxyProcess, run};
use super::service::{FakeService, ServiceAction, answer};
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;

const ALWAYS: [&str; 4] = ["identity", "route.operation", "idempotency-key", "body_hash"];

/// An adapter whose file includes these inputs, in front of a service that numbers its responses.
struct Guarded {
    service: FakeService,
    proxy: ProxyProcess,
    _folder: TempFolder,
}

fn files(folder: &TempFolder, inputs: &[&str], identity: &Value) -> [String; 2] {
    let include: Vec<&str> = ALWAYS.into_iter().chain(inputs.iter().copied()).collect();
    let enabled = json!({"fingerprint": {"include": include}});
    // Without lists, every header arrives.
    let receiving = json!({"http": {"idempotency": {"enabled": enabled}}, "headers": null});
    let sending = json!({"identity": identity, "operations": {"profiles.update": null}});
    [folder.boundary("gateway_to_adapter.json", &receiving), folder.boundary("adapter.json", &sending)]
}

fn jwt(name: &Value) -> Value {
    json!({"source": "jwt_claim", "name": name})
}

async fn guarded(store: &str, inputs: &[&str], identity: &Value) -> Guarded {
    let service = FakeService::start(|_, before| {
        ServiceAction::Answer(answer("201 Created", &[], &format!("order {before}")))
    })
    .await;
    let folder = folder::fresh();
    let [receiving, sending] = files(&folder, inputs, identity);
    let key = folder.write("key", SECRET);
    let mut flags = vec!["--store", store, "--boundary", &receiving, "--boundary", &sending];
    if identity["source"] == "jwt_claim" {
        flags.extend(["--jwt-algorithm", "HS256", "--jwt-key", &key, "--jwt-audience", "orders"]);
    }
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    Guarded { service, proxy, _folder: folder }
}

impl Guarded {
    async fn order(&self, fields: &[(&str, &str)]) -> HttpMessage {
        let request = ProxyRequest::post("/v1/orders").key("k").body("same");
        let request = fields.iter().fold(request, |request, (name, value)| request.field(name, value));
        send(self.proxy.address, &request).await
    }

    /// Sends an order as alice, whose token has these additional claims.
    async fn order_by(&self, more: &Value) -> HttpMessage {
        let mut claims = claims("alice");
        claims.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.order(&[("Authorization", &format!("Bearer {}", hs256(&claims)))]).await
    }

    /// Checks that the first order is made, its repetition is replayed, and the others are refused without revealing
    /// it.
    async fn distinguishes(&self, first: &Value, others: &[Value]) {
        assert_eq!(self.order_by(first).await.text(), "order 0");
        for other in others {
            conflicts(&self.order_by(other).await, other);
        }
        replays(&self.order_by(first).await);
        assert_eq!(self.service.seen().len(), 1);
    }
}

#[track_caller]
fn replays(answer: &HttpMessage) {
    assert_eq!((answer.text(), answer.one("idempotency-replayed")), ("order 0", Some("true")));
}

#[track_caller]
fn conflicts(answer: &HttpMessage, what: &Value) {
    assert_eq!((answer.status(), answer.code().as_str()), (409, "key_conflict"), "{what}");
    assert!(!answer.text().contains("order 0"), "{what}");
}

#[tokio::test]
async fn tenant_never_gets_another_tenants_response() {
    let (file, database) = (fresh_file(), fresh_database().await);
    for store in [&file.url, &database.url] {
        let guarded = guarded(store, &["claims.tenant_id"], &jwt(&json!("sub"))).await;
        // A token without the claim is neither a tenant without a name nor one called null.
        let others =
            [json!({"tenant_id": "t2"}), json!({}), json!({"tenant_id": ""}), json!({"tenant_id": null})];
        guarded.distinguishes(&json!({"tenant_id": "t1"}), &others).await;
        replays(&guarded.order_by(&json!({"tenant_id": "t1", "jti": "renewed"})).await);
    }
}

#[tokio::test]
async fn nested_and_structured_claims_are_compared_by_value() {
    let file = fresh_file();
    let inputs = ["claims.actor.tenant", "claims.scopes"];
    let guarded = guarded(&file.url, &inputs, &jwt(&json!("sub"))).await;
    let of = |tenant: Value, scopes: Value| json!({"actor": {"tenant": tenant}, "scopes": scopes});
    let others = [
        of(json!({"id": 2, "in": "eu"}), json!(["a", "b"])),
        of(json!({"id": "1", "in": "eu"}), json!(["a", "b"])),
        of(json!({"id": 1, "in": "eu"}), json!(["b", "a"])),
        of(json!({"id": 1, "in": "eu"}), json!("a b")),
        json!({"actor.tenant": {"id": 1, "in": "eu"}, "scopes": ["a", "b"]}),
        json!({"actor": "t", "scopes": ["a", "b"]}),
    ];
    guarded.distinguishes(&of(json!({"id": 1, "in": "eu"}), json!(["a", "b"])), &others).await;
    replays(&guarded.order_by(&of(json!({"in": "eu", "id": 1.0}), json!(["a", "b"]))).await);
}

#[tokio::test]
async fn several_claims_form_one_identity() {
    let file = fresh_file();
    let guarded = guarded(&file.url, &[], &jwt(&json!(["tenant_id", "actor.actor_id"]))).await;
    let order = async |tenant: &str, actor: &str| {
        let by = json!({"tenant_id": tenant, "actor": {"actor_id": actor}});
        guarded.order_by(&by).await
    };
    // Each is a separate caller whose order is made; no two lists of claims make the same name.
    let callers = [("t1", "a"), ("t2", "a"), ("t1", "b"), ("t1\",\"a", "b"), ("t1", "a\",\"b")];
    for round in 0..2 {
        for (index, (tenant, actor)) in callers.into_iter().enumerate() {
            let answer = order(tenant, actor).await;
            assert_eq!(
                (answer.status(), answer.text()),
                (201, format!("order {index}").as_str()),
                "{tenant} {actor}"
            );
            assert_eq!(answer.one("idempotency-replayed").is_some(), round == 1);
        }
    }
    for missing in [
        json!({"tenant_id": "t1"}),
        json!({"actor": {"actor_id": "a"}}),
        json!({"tenant_id": "t1", "actor": "a"}),
    ] {
        assert_eq!(guarded.order_by(&missing).await.status(), 401, "{missing}");
    }
    assert_eq!(guarded.service.seen().len(), callers.len());
}

#[tokio::test]
async fn a_header_is_compared_line_by_line() {
    let file = fresh_file();
    let single = json!({"source": "single", "name": "shop"});
    let guarded = guarded(&file.url, &["headers.X-Tenant"], &single).await;
    let first = [("x-tenant", "a"), ("x-tenant", "b")];
    assert_eq!(guarded.order(&first).await.text(), "order 0");
    let others: [&[(&str, &str)]; 6] = [
        &[("x-tenant", "a, b")],
        &[("x-tenant", "b"), ("x-tenant", "a")],
        &[("x-tenant", "a")],
        &[("x-tenant", "")],
        &[],
        &[("X_Tenant", "a"), ("X_Tenant", "b")],
    ];
    for other in others {
        conflicts(&guarded.order(other).await, &json!(other));
    }
    replays(&guarded.order(&[("X-Tenant", "a"), ("accept", "*/*"), ("x-tenant", "b")]).await);
    // Nothing removes it before it is compared.
    let named = [("connection", "x-tenant"), ("x-tenant", "a"), ("x-tenant", "b")];
    assert_eq!(guarded.order(&named).await.status(), 400);
    assert_eq!(guarded.service.seen().len(), 1);
}

/// The adapter reads the same list that is checked.
#[tokio::test]
async fn adapter_refuses_unreadable_inputs() {
    let (file, folder) = (fresh_file(), folder::fresh());
    let by_token = jwt(&json!("sub"));
    let single = json!({"source": "single", "name": "shop"});
    let key = folder.write("key", SECRET);
    let token = ["--jwt-algorithm", "HS256", "--jwt-key", &key, "--jwt-audience", "orders"];
    for (inputs, identity, flags, output) in [
        (["tenant_id"], &by_token, &token[..], "cannot read `tenant_id`"),
        (["headers.x_tenant"], &by_token, &token, "does not receive the header"),
        (["claims.tenant_id"], &single, &[], "there are no claims"),
        // The flag overrides the file, and the inputs of the file are still not readable.
        (["claims.tenant_id"], &by_token, &["--identity", "single:shop"], "not identified by a JWT"),
    ] {
        let [receiving, sending] = files(&folder, &inputs, identity);
        let all =
            ["proxy", "--role", "adapter", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"];
        let files = ["--store", &file.url, "--boundary", &receiving, "--boundary", &sending];
        let (code, _, err) = run(&[&all[..], &files, flags].concat());
        assert_eq!(code, Some(2), "{inputs:?}: {err}");
        assert!(err.contains(output), "{inputs:?}: {err}");
    }
}

/// The claims of the flag, separated by commas.
#[tokio::test]
async fn identity_flag_accepts_several_claims() {
    let (file, folder) = (fresh_file(), folder::fresh());
    let service = FakeService::start(|_, before| {
        ServiceAction::Answer(answer("201 Created", &[], &before.to_string()))
    })
    .await;
    let key = folder.write("key", SECRET);
    let flags = ["--store", &file.url, "--operation", "POST /v1/orders", "--identity", "jwt:tenant_id,sub"];
    let token = ["--jwt-algorithm", "HS256", "--jwt-key", &key, "--jwt-audience", "orders"];
    let proxy = ProxyProcess::start("adapter", service.address, &[&flags[..], &token].concat());
    let guarded = Guarded { service, proxy, _folder: folder };
    for (tenant, made) in [("t1", "0"), ("t2", "1"), ("t1", "0")] {
        assert_eq!(guarded.order_by(&json!({"tenant_id": tenant})).await.text(), made);
    }
    assert_eq!(guarded.order_by(&json!({})).await.status(), 401);
}
