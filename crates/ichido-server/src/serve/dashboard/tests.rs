//! The dashboard as a browser without JavaScript sees it.

mod frame;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use http::Request as HttpRequest;
use http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http_body_util::BodyExt as _;
use ichido_core::digest::Digest;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use ichido_store::token::{NewToken, TokenRole};
use tower_service::Service as _;
use uuid::Uuid;

use super::super::{in_process, token};
use super::same_origin::FETCH_SITE;
use super::*;
use crate::config::{self, ConfigSources};

mod charts;

mod audit;
mod boundaries;
mod claims;
mod keys;
mod one_message;

const SCRIPT: &str = "<script>alert(1)</script>";
const ESCAPED: &str = "&#60;script&#62;alert(1)&#60;/script&#62;";
/// Maximum bytes of the first page. Its files, which a browser keeps, have limits of their own.
const MAX_FIRST_PAGE: usize = 40 * 1024;

const CONFIG: &str = r#"
[destinations.shop]
kind = "http"
url = "http://127.0.0.1:9/orders"
guarantee = "keyed"
keeps_keys_for = "24h"
max_parallel = 8

[queues.orders]
destination = "shop"
parallelism = 4
"#;

struct Fixture {
    store: Store,
    access: Arc<Access>,
    pages: Router,
    _file: SqliteTestFile,
}

struct Page {
    status: StatusCode,
    headers: http::HeaderMap,
    text: String,
}

impl Page {
    fn location(&self) -> &str {
        self.headers.get(LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default()
    }
}

impl Fixture {
    /// Starts a dashboard of a server on loopback.
    async fn new() -> Self {
        let file = fresh_file();
        let store = Store::open(&file.url, 2).await.unwrap();
        let (access, pages) = server(&store, None);
        Self { store, access, pages, _file: file }
    }

    /// Starts it with another configuration.
    async fn configured(config: &Config) -> Self {
        let mut fixture = Self::new().await;
        (fixture.access, fixture.pages) = server(&fixture.store, Some(config));
        fixture
    }

    async fn add_token(&self, name: &str, role: TokenRole) -> (Uuid, String) {
        let (id, secret) = (Uuid::now_v7(), "5e".repeat(token::SECRET_BYTES));
        let hash = *Digest::of_bytes(secret.as_bytes()).as_bytes();
        let new = NewToken { id, name: name.to_owned(), role, hash, ttl: None };
        self.store.tokens().add(&new, "tests").await.unwrap();
        self.access.token_status().await.unwrap();
        (id, token::text(id, &secret))
    }

    async fn send(&self, request: HttpRequest<Body>) -> Page {
        let (head, body) = self.pages.clone().call(request).await.unwrap().into_parts();
        // A stream does not end.
        let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let bytes = if is_stream { bytes::Bytes::new() } else { body.collect().await.unwrap().to_bytes() };
        Page {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    async fn get(&self, target: &str, cookie: Option<&str>) -> Page {
        self.send(request(Method::GET, target, cookie, "")).await
    }

    async fn post(&self, target: &str, cookie: Option<&str>, form: &str) -> Page {
        self.send(request(Method::POST, target, cookie, form)).await
    }

    /// Signs in, and returns the cookie.
    async fn sign_in(&self, token: &str) -> String {
        let page = self.post("/sign-in", None, &format!("token={token}&next=/messages")).await;
        assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, "/messages"), "{}", page.text);
        let set = page.headers.get(SET_COOKIE).unwrap().to_str().unwrap();
        assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{set}");
        assert!(!set.contains(token), "the cookie has no secret");
        set.split(';').next().unwrap().to_owned()
    }

    async fn enqueue(&self, key: &str, body: &str) -> Uuid {
        let (queue, key) = (QueueName::parse("orders").unwrap(), IdempotencyKey::parse(key).unwrap());
        let message = NewMessage::new(queue, SCRIPT, key, body.as_bytes().to_vec());
        self.store.messages().enqueue(message).await.unwrap().id()
    }

    /// Makes all waiting messages dead, or parked if their effect is unknown.
    async fn fail(&self, effect: Effect, error: &str) {
        let options = ClaimOptions {
            node: Uuid::nil(),
            lease: Duration::from_hours(1),
            start_marks: false,
            guarantee: Guarantee::None,
            max_time_in_flight: Duration::ZERO,
        };
        let queue = QueueName::parse("orders").unwrap();
        let works = self.store.claims().claim(&queue, NonZeroU32::new(100).unwrap(), options).await.unwrap();
        for work in &works {
            let failure = if effect == Effect::Unknown { Failure::InDoubt } else { Failure::Permanent };
            let event = Event::Failed {
                fence: work.fence,
                failure,
                effect,
                safety: Safety::None,
                in_flight_until: work.claimed_at,
            };
            let code = Some(ErrorCode::BadRequest);
            let note = Note { code, excerpt: Some(error.to_owned()), ..Note::default() };
            let _ = self.store.claims().settle(Settlement::new(work, event, note)).await.unwrap();
        }
    }
}

/// Starts another server of a store, with the usual configuration or another one.
fn server(store: &Store, config: Option<&Config>) -> (Arc<Access>, Router) {
    let usual = config::resolve("ichido.toml", CONFIG, &ConfigSources::of_files(PathBuf::new())).unwrap();
    let api = Arc::new(in_process::api(store.clone(), Some(config.unwrap_or(&usual))));
    let access = Arc::new(Access::new(store.clone(), "127.0.0.1:4180".parse().unwrap()));
    let pages = pages(api, Arc::clone(&access), "");
    (access, pages)
}

fn request(method: Method, target: &str, cookie: Option<&str>, form: &str) -> HttpRequest<Body> {
    let mut request = HttpRequest::new(Body::from(form.to_owned()));
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().unwrap();
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost:4180"));
    headers.insert(FETCH_SITE, HeaderValue::from_static("same-origin"));
    headers.extend(cookie.map(|cookie| (COOKIE, cookie.parse().unwrap())));
    request
}

/// Returns the path of a route, with an id of what it shows.
fn path_of(route: &PageRoute, message: Uuid, group: Uuid, operation: Uuid) -> String {
    let id = match route.path {
        path if path.starts_with("/dead-letters/groups/") => group,
        path if path.starts_with("/operations/") => operation,
        _ => message,
    };
    route
        .path
        .replace("{id}", &id.to_string())
        .replace("{queue}", "orders")
        .replace("{name}", "shop")
        .replace("{rule}", "ICH-B001")
}

#[tokio::test]
async fn each_route_admits_only_its_roles() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-0", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    let group = fixture.groups().await[0].id;
    let id = fixture.enqueue("order-1", "{}").await;
    let operation = Uuid::now_v7();
    fixture.record_operation(operation).await;
    let (_, viewer) = fixture.add_token("ann", TokenRole::Viewer).await;
    let (_, operator) = fixture.add_token("bob", TokenRole::Operator).await;
    let (_, admin) = fixture.add_token("eve", TokenRole::Admin).await;
    let queues = vec![QueueName::parse("orders").unwrap()];
    let (_, producer) =
        fixture.add_token("shop", TokenRole::Producer { identity: "shop".to_owned(), queues }).await;
    let refused = fixture.post("/sign-in", None, &format!("token={producer}")).await;
    assert_eq!((refused.status, refused.headers.get(SET_COOKIE)), (StatusCode::FORBIDDEN, None));
    let callers = [
        (None, None),
        (Some(fixture.sign_in(&viewer).await), Some(Needs::Viewer)),
        (Some(fixture.sign_in(&operator).await), Some(Needs::Operator)),
        (Some(fixture.sign_in(&admin).await), Some(Needs::Operator)),
    ];
    for route in routes() {
        for (cookie, role) in &callers {
            let about = format!("{} {} as {role:?}", route.method, route.path);
            // Signing out would end the walk.
            if route.path == "/sign-out" {
                continue;
            }
            let page = fixture
                .send(request(
                    route.method.clone(),
                    &path_of(&route, id, group, operation),
                    cookie.as_deref(),
                    "",
                ))
                .await;
            match (route.needs, role) {
                (Needs::Nothing, _) => assert!(page.status != StatusCode::FORBIDDEN, "{about}"),
                (_, None) if route.path == "/live" => {
                    assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{about}");
                }
                (_, None) => {
                    assert_eq!(page.status, StatusCode::SEE_OTHER, "{about}");
                    assert!(page.location().starts_with("/sign-in?next="), "{about}: {}", page.location());
                }
                (Needs::Operator, Some(Needs::Viewer)) => {
                    assert_eq!(page.status, StatusCode::FORBIDDEN, "{about}");
                    assert!(page.text.contains("operator&#39;s"), "{about}: {}", page.text);
                }
                (Needs::Viewer, Some(_)) => assert_eq!(page.status, StatusCode::OK, "{about}: {}", page.text),
                (Needs::Operator, Some(_)) => assert_ne!(page.status, StatusCode::FORBIDDEN, "{about}"),
            }
            assert_eq!(page.headers.get("referrer-policy"), Some(&REFERRER), "{about}");
            let policy = page.headers.get(CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{about}");
        }
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_session() {
    let fixture = Fixture::new().await;
    let (id, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let cookie = fixture.sign_in(&token).await;
    assert_eq!(fixture.get("/", Some(&cookie)).await.status, StatusCode::OK);
    assert!(fixture.store.tokens().revoke(id, "tests").await.unwrap());
    fixture.access.token_status().await.unwrap();
    let page = fixture.get("/", Some(&cookie)).await;
    assert_eq!((page.status, page.location()), (StatusCode::SEE_OTHER, "/sign-in?next=%2F"));
    let again = fixture.post("/sign-in", None, &format!("token={token}")).await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
    assert!(!again.text.contains(&token), "the page does not repeat it");
}

/// A server that is restarted knows as little as another one.
#[tokio::test]
async fn a_session_holds_on_every_server_of_the_store() {
    let mut fixture = Fixture::new().await;
    let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let cookie = fixture.sign_in(&token).await;
    (fixture.access, fixture.pages) = server(&fixture.store, None);
    assert_eq!(fixture.get("/", Some(&cookie)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn signing_out_ends_the_session() {
    let fixture = Fixture::new().await;
    let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let cookie = fixture.sign_in(&token).await;
    let out = fixture.post("/sign-out", Some(&cookie), "").await;
    assert!(out.headers.get(SET_COOKIE).unwrap().to_str().unwrap().ends_with("Max-Age=0"));
    assert_eq!(
        fixture.get("/", Some(&cookie)).await.status,
        StatusCode::SEE_OTHER,
        "the old cookie is worthless"
    );
}

#[tokio::test]
async fn nobody_signs_in_over_plain_http_from_elsewhere() {
    let fixture = Fixture::new().await;
    let (_, token) = fixture.add_token("ann", TokenRole::Viewer).await;
    let sign_in = |host: &'static str, origin: &'static str| {
        let mut request = request(Method::POST, "/sign-in", None, &format!("token={token}"));
        request.headers_mut().remove(FETCH_SITE);
        request.headers_mut().insert(HOST, HeaderValue::from_static(host));
        request.headers_mut().insert(ORIGIN, HeaderValue::from_static(origin));
        fixture.send(request)
    };
    let plain = sign_in("ichido.example", "http://ichido.example").await;
    assert_eq!((plain.status, plain.headers.get(SET_COOKIE)), (StatusCode::FORBIDDEN, None));
    let https = sign_in("ichido.example", "https://ichido.example").await;
    let set = https.headers.get(SET_COOKIE).unwrap().to_str().unwrap();
    assert!(set.starts_with("__Host-ichido_session=") && set.ends_with("; Path=/; Secure"), "{set}");

    let mut form = request(Method::GET, "/sign-in", None, "");
    form.headers_mut().remove(FETCH_SITE);
    form.headers_mut().insert(HOST, HeaderValue::from_static("ichido.example"));
    assert!(!fixture.send(form).await.text.contains("type=\"password\""), "nobody is asked for a token");
}

#[tokio::test]
async fn without_tokens_only_this_machine_sees_the_pages() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.get("/", None).await.status, StatusCode::OK);
    let mut rebound = request(Method::GET, "/", None, "");
    rebound.headers_mut().insert(HOST, HeaderValue::from_static("evil.example"));
    assert_eq!(fixture.send(rebound).await.status, StatusCode::FORBIDDEN);
    assert_eq!(fixture.get("/sign-in", None).await.location(), "/", "nothing to sign in to");
}

#[tokio::test]
async fn a_form_of_another_origin_changes_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    let cancel = |site: Option<&'static str>| {
        let mut request = request(Method::POST, &format!("/messages/{id}/cancel"), None, "");
        request.headers_mut().remove(FETCH_SITE);
        request.headers_mut().extend(site.map(|site| (FETCH_SITE, HeaderValue::from_static(site))));
        fixture.send(request)
    };
    for site in [None, Some("cross-site"), Some("same-site")] {
        assert_eq!(cancel(site).await.status, StatusCode::FORBIDDEN, "{site:?}");
    }
    assert_eq!(fixture.store.messages().get(id).await.unwrap().unwrap().status.as_str(), "queued");
    assert_eq!(cancel(Some("same-origin")).await.status, StatusCode::SEE_OTHER);
    assert_eq!(fixture.store.messages().get(id).await.unwrap().unwrap().status.as_str(), "cancelled");
}

#[tokio::test]
async fn stored_text_is_never_markup() {
    let fixture = Fixture::new().await;
    let key = "<script>alert(1)</script>";
    let id = fixture.enqueue(key, &format!("{{\"title\":\"{SCRIPT}\",\"id\":9007199254740993}}")).await;
    fixture.fail(Effect::NotDone, SCRIPT).await;
    let group = fixture.groups().await[0].id;
    let query: String = form_urlencoded::byte_serialize(SCRIPT.as_bytes()).collect();
    let targets = [
        "/messages".to_owned(),
        format!("/messages?q=key:{query}"),
        format!("/messages?q={query}:x"),
        format!("/messages/{id}"),
        "/dead-letters?state=dead".to_owned(),
        "/dead-letters".to_owned(),
        format!("/dead-letters/groups/{group}"),
        "/".to_owned(),
        format!("/operations/new?action=requeue&text={query}"),
    ];
    for target in targets {
        let page = fixture.get(&target, None).await;
        assert!(!page.text.contains(SCRIPT), "{target}");
        // Numbers of a failure group's error are left out.
        let is_there =
            page.text.contains(ESCAPED) || page.text.contains(&ESCAPED.replace("alert(1)", "alert(#)"));
        assert!(is_there, "{target}: {}", page.text);
    }
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("9007199254740993"), "{}", page.text);
    assert!(4 <= page.text.matches(ESCAPED).count(), "payload, key, identity and error");
    let raw = fixture.get(&format!("/messages/{id}/request"), None).await;
    assert_eq!(raw.headers.get("content-disposition").unwrap(), "attachment");
    assert!(raw.headers.get(CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap().contains("sandbox"));
}

#[tokio::test]
async fn a_dead_letter_is_discarded_with_a_reason() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::NotDone, "refused").await;
    let overview = fixture.get("/", None).await;
    assert!(overview.text.contains("Dead letters: 1"), "{}", overview.text);
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("Every call ended, and none took effect."), "{}", page.text);
    let discard = format!("/messages/{id}/discard");
    let refused = fixture.post(&discard, None, "reason=").await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    assert!(refused.text.contains("Nothing was changed"), "{}", refused.text);
    let done = fixture.post(&discard, None, "reason=a+duplicate").await;
    assert_eq!(
        (done.status, done.location()),
        (StatusCode::SEE_OTHER, &*format!("/messages/{id}?did=discard"))
    );
    let page = fixture.get(done.location(), None).await;
    assert!(
        page.text.contains("Discarded. It is kept") && page.text.contains("a duplicate"),
        "{}",
        page.text
    );
    assert!(!fixture.get("/", None).await.text.contains("Dead letters: "), "it needs nobody any more");
}

#[tokio::test]
async fn a_parked_message_is_decided() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    fixture.fail(Effect::Unknown, "no answer").await;
    let page = fixture.get(&format!("/messages/{id}"), None).await;
    assert!(page.text.contains("Not known yet") && page.text.contains("value=\"give_up\""), "{}", page.text);
    let list = fixture.get("/messages", None).await;
    assert!(list.text.contains("no answer") && list.text.contains("title=\"order-1\""), "{}", list.text);
    let done = fixture
        .post(&format!("/messages/{id}/decide"), None, "decision=done&reason=seen+at+the+broker")
        .await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let page = fixture.get(done.location(), None).await;
    assert!(page.text.contains("local decided that it was done."), "{}", page.text);
    let list = fixture.get("/messages", None).await;
    assert!(!list.text.contains("no answer"), "the error of an attempt before: {}", list.text);
}

#[tokio::test]
async fn the_first_page_is_small_and_in_both_languages() {
    let fixture = Fixture::new().await;
    fixture.enqueue("order-1", "{}").await;
    let page = fixture.get("/", None).await;
    assert!(page.text.len() <= MAX_FIRST_PAGE, "{}", page.text.len());
    assert!(page.text.contains("lang=\"en\""));

    let mut japanese = request(Method::GET, "/", None, "");
    japanese.headers_mut().insert("accept-language", HeaderValue::from_static("ja"));
    let japanese = fixture.send(japanese).await;
    assert!(japanese.text.contains("lang=\"ja\"") && japanese.text.contains("概要"), "{}", japanese.text);
    let chosen = fixture.post("/language", None, "to=ja&back=/queues").await;
    assert_eq!(chosen.location(), "/queues");
    let cookie =
        chosen.headers.get(SET_COOKIE).unwrap().to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(fixture.get("/queues", Some(&cookie)).await.text.contains("キュー"));
}

#[tokio::test]
async fn pages_have_no_inline_script_or_style() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue("order-1", "{}").await;
    for target in [
        "/",
        "/messages",
        "/dead-letters",
        "/dead-letters?state=dead",
        "/operations",
        "/operations/new?action=requeue&state=dead",
        "/queues",
        "/alerts",
        "/nodes",
        "/help",
        "/keys",
        "/audit",
        "/boundaries",
        "/boundaries/ICH-B001",
        &format!("/messages/{id}"),
    ] {
        let page = fixture.get(target, None).await;
        assert_eq!(page.status, StatusCode::OK, "{target}: {}", page.text);
        assert!(!page.text.contains(" style=") && !page.text.contains("<style"), "{target}");
        assert!(!page.text.contains(" on") || !page.text.contains("onclick"), "{target}");
        assert_eq!(
            page.text.matches("<script").count(),
            page.text.matches("<script type=\"module\" src=\"/assets/").count(),
            "{target}"
        );
    }
}

#[tokio::test]
async fn a_wrong_filter_is_explained_beside_the_box() {
    let fixture = Fixture::new().await;
    let page = fixture.get("/messages?q=stat:dead", None).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(
        page.text.contains("Unknown filter stat.") && page.text.contains("value=\"stat:dead\""),
        "{}",
        page.text
    );
    let page = fixture.get("/messages?q=state:undead", None).await;
    assert!(page.text.contains("is not known"), "{}", page.text);
}

#[tokio::test]
async fn all_viewers_share_one_sample() {
    let fixture = Fixture::new().await;
    let api = in_process::api(fixture.store.clone(), None);
    let sampler = Sampler::default();
    let (first, second) = (sampler.get(&api).await.unwrap(), sampler.get(&api).await.unwrap());
    assert!(Arc::ptr_eq(&first, &second), "the store is read once");
    sampler.forget();
    let third = sampler.get(&api).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &third), "after a change it is read again");
}

mod bulk;
