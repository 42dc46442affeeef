//! The dashboard: was it done, what needs me, what do I press.
//!
//! Guarantee: a page shows and changes only what the API allows the same token. All reading and every single action work without
//! JavaScript. What people stored is shown as text and never as markup. A page makes a fixed number of statements, over connections of
//! its own and each with a time limit, and says what they cost; what all pages share is sampled once for all viewers. A form of another
//! origin changes nothing.
//!
//! Start at `routes`, the table of all pages with the role that each needs. `shell` is the frame around a page, `call` asks the API, and
//! `was_it_done` answers the main question. The templates are in `templates`.

// Spec: H9, E3, F1.

mod actions;
mod alert_texts;
mod alerts;
mod assets;
mod audit;
mod boundaries;
mod bulk;
mod bulk_plan;
mod bulk_texts;
mod cached;
mod call;
mod chart;
mod chart_data;
mod chart_texts;
mod charts;
mod condition;
mod cookie;
mod dead_letters;
mod destinations;
mod failure_groups;
mod filter;
mod frame_texts;
mod group_names;
mod help;
mod json_text;
mod key;
mod key_answer;
mod key_done;
mod key_texts;
mod keys;
mod language;
mod live;
mod marks;
mod message;
mod message_actions;
mod message_texts;
mod messages;
mod model_calls;
mod moments;
mod nodes;
mod operation;
mod overview;
mod page_cost;
mod queue;
mod queues;
mod replace;
mod same_origin;
mod sampler;
mod session;
mod shared_reads;
mod shell;
mod sign_in;
mod suggestions;
mod terms;
mod texts;
mod timeline;
mod was_it_done;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY};
use http::{HeaderValue, Method, StatusCode, Uri};
use ichido_http::clock;
use ichido_store::{Store, page_reads};
use tokio::time::{Instant, timeout};

use super::access::Access;
use super::api::{self, ApiState};
use super::guard::RequestGuard;
use super::mounted;
use super::problem::{Code, Problem};
use crate::config::Config;
use chart_data::ChartData;
use language::Language;
use sampler::Sampler;
use session::Sessions;
use shared_reads::SharedReads;
use shell::{PageRefusal, Visitor};
use texts::fill;

/// Maximum time for a page. A form is not cut off: its action would be done in part, as far as the person knows.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to find out who looks at a page that everybody may see. It is shown while the store is away, too.
const CALLER_TIMEOUT: Duration = Duration::from_secs(1);

/// Only our own files, and no script or style inside a page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
     frame-ancestors 'none'; base-uri 'none'",
);
/// With `no-referrer`, browsers would hide the origin of our own forms from us too.
const REFERRER: HeaderValue = HeaderValue::from_static("same-origin");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// The state of the dashboard.
struct Dashboard {
    api: Arc<ApiState>,
    /// The API without its guard: a request carries its caller.
    routes: Router,
    access: Arc<Access>,
    sessions: Sessions,
    sampler: Sampler,
    charts: ChartData,
    shared_reads: SharedReads,
    /// The path before all pages; empty at the root.
    base: String,
}

/// Returns the dashboard as routes to merge into another axum app, all below a path such as `/ichido`.
///
/// A token is required, as for [`mount`](super::mount): create one with `ichido token create` on the same store. The session cookie
/// belongs to the whole host and port.
pub async fn router(store: Store, config: &Config, path: &str) -> Router {
    let (api, access) = mounted::state(store, config).await;
    let guard = RequestGuard { access: Arc::clone(&access), request_limits: api.request_limits };
    guard.wrap_pages(pages(api, access, path.trim_end_matches('/')))
}

/// Returns all pages, below a path.
pub(super) fn pages(api: Arc<ApiState>, access: Arc<Access>, base: &str) -> Router {
    routed(&Dashboard::new(api, access, base))
}

/// Returns all pages of a server, and the page at a path that has none.
pub(super) fn pages_of_server(api: Arc<ApiState>, access: Arc<Access>) -> (Router, Router) {
    let dashboard = Dashboard::new(api, access, "");
    let admitted = from_fn_with_state((Arc::clone(&dashboard), Needs::Viewer), admit);
    let no_page = Router::new().fallback(async |Extension(visitor): Extension<Visitor>| {
        let text = frame_texts::Texts::of(visitor.language).no_page;
        PageRefusal::from(Problem::new(Code::RouteUnknown, text))
    });
    (routed(&dashboard), no_page.layer(admitted).layer(from_fn(protect)))
}

impl Dashboard {
    fn new(api: Arc<ApiState>, access: Arc<Access>, base: &str) -> Arc<Self> {
        Arc::new(Self {
            routes: api::routes().with_state(Arc::clone(&api)),
            api,
            access,
            sessions: Sessions::default(),
            sampler: Sampler::default(),
            charts: ChartData::default(),
            shared_reads: SharedReads::default(),
            base: base.to_owned(),
        })
    }
}

fn routed(dashboard: &Arc<Dashboard>) -> Router {
    let base = &dashboard.base;
    let mut router = Router::new();
    for PageRoute { path, needs, handler, .. } in routes() {
        let path = if path == "/" && !base.is_empty() { base.clone() } else { format!("{base}{path}") };
        let admitted = from_fn_with_state((Arc::clone(dashboard), needs), admit);
        router = router.route(&path, handler.layer(admitted));
    }
    let asset = get(async |Path(name): Path<String>| assets::get(&name));
    router
        .route(&format!("{base}/assets/{{name}}"), asset)
        .with_state(Arc::clone(dashboard))
        .layer(from_fn(protect))
}

/// The role that a page needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Anybody may see it: it shows nothing of the store.
    Nothing,
    Viewer,
    Operator,
}

/// A page or a form.
struct PageRoute {
    #[cfg_attr(not(test), expect(dead_code, reason = "a test walks the table"))]
    method: Method,
    path: &'static str,
    needs: Needs,
    handler: MethodRouter<Arc<Dashboard>>,
}

/// Returns the table of all pages and forms, with the role that each needs.
fn routes() -> Vec<PageRoute> {
    use Needs::{Nothing, Operator, Viewer};
    let page = |path, needs, handler| PageRoute { method: Method::GET, path, needs, handler };
    let form = |path, needs, handler| PageRoute { method: Method::POST, path, needs, handler };
    vec![
        page("/", Viewer, get(overview::show)),
        page("/messages", Viewer, get(messages::list)),
        page("/messages/{id}", Viewer, get(message::show)),
        page("/messages/{id}/request", Viewer, get(message::download)),
        form("/messages/{id}/requeue", Operator, post(actions::requeue)),
        form("/messages/{id}/cancel", Operator, post(actions::cancel)),
        form("/messages/{id}/discard", Operator, post(actions::discard)),
        form("/messages/{id}/decide", Operator, post(actions::decide)),
        page("/dead-letters", Viewer, get(dead_letters::list)),
        page("/queues", Viewer, get(queues::list)),
        form("/queues/{queue}/pause", Operator, post(actions::pause)),
        form("/queues/{queue}/resume", Operator, post(actions::resume)),
        page("/alerts", Viewer, get(alerts::list)),
        page("/nodes", Viewer, get(nodes::list)),
        page("/live", Viewer, get(live::stream)),
        page("/help", Nothing, get(help::show)),
        page("/help/guides/{name}", Nothing, get(help::guide)),
        page("/sign-in", Nothing, get(sign_in::show)),
        form("/sign-in", Nothing, post(sign_in::sign_in)),
        form("/sign-out", Nothing, post(sign_in::sign_out)),
        form("/language", Nothing, post(sign_in::choose_language)),
        page("/queues/{queue}", Viewer, get(queue::show)),
        form("/queues/{queue}/parallelism", Operator, post(queue::set_parallelism)),
        page("/destinations", Viewer, get(destinations::list)),
        page("/destinations/{name}", Viewer, get(destinations::show)),
        form("/destinations/{name}/pace", Operator, post(destinations::set_pace)),
        form("/destinations/{name}/pause", Operator, post(destinations::pause)),
        form("/destinations/{name}/resume", Operator, post(destinations::resume)),
        page("/models", Viewer, get(model_calls::list)),
        page("/dead-letters/groups/{id}", Viewer, get(failure_groups::show)),
        form("/dead-letters/groups/{id}/acknowledge", Operator, post(failure_groups::acknowledge)),
        form("/dead-letters/groups/{id}/resolve", Operator, post(failure_groups::resolve)),
        page("/operations", Viewer, get(operation::list)),
        form("/operations", Operator, post(bulk::start)),
        page("/operations/new", Operator, get(bulk::show)),
        page("/operations/{id}", Viewer, get(operation::show)),
        form("/operations/{id}/stop", Operator, post(operation::stop)),
        page("/keys", Viewer, get(keys::show)),
        form("/keys/decide", Operator, post(key::decide)),
        page("/messages/{id}/replace", Operator, get(replace::show)),
        form("/messages/{id}/replace", Operator, post(replace::send)),
        page("/audit", Viewer, get(audit::list)),
        page("/boundaries", Viewer, get(boundaries::show)),
        page("/boundaries/{rule}", Viewer, get(boundaries::rule)),
    ]
}

/// Admits a visitor to a page, and shows refusals as pages.
async fn admit(
    State((dashboard, needs)): State<(Arc<Dashboard>, Needs)>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut visitor = dashboard.visitor(&mut request);
    let is_refresh = shared_reads::is_refresh(request.headers());
    let page = async {
        if request.method() != Method::GET {
            return admitted(&dashboard, needs, &mut visitor, request, next).await;
        }
        let page = Box::pin(admitted(&dashboard, needs, &mut visitor, request, next));
        match timeout(PAGE_TIMEOUT, page).await {
            Ok(response) => response,
            Err(_) => dashboard.failure(&visitor, too_slow(&visitor)),
        }
    };
    page_reads::for_page(shared_reads::sharing(is_refresh, page)).await
}

/// Returns why a page was stopped.
fn too_slow(visitor: &Visitor) -> PageRefusal {
    let limit = moments::duration(PAGE_TIMEOUT);
    let text = fill(frame_texts::Texts::of(visitor.language).page_slow, &[("limit", &limit)]);
    tracing::warn!(limit, "page of the dashboard stopped");
    Problem::new(Code::StoreUnavailable, text).into()
}

async fn admitted(
    dashboard: &Dashboard,
    needs: Needs,
    visitor: &mut Visitor,
    mut request: Request,
    next: Next,
) -> Response {
    if request.method() == Method::POST && !same_origin::is_same_origin(request.uri(), request.headers()) {
        let problem = Problem::new(Code::OriginNotAllowed, visitor.t().origin_wrong);
        return dashboard.failure(visitor, problem.into());
    }
    let caller = dashboard.caller(request.uri(), request.headers());
    let caller = match needs {
        Needs::Nothing => timeout(CALLER_TIMEOUT, caller)
            .await
            .unwrap_or_else(|_| Err(Problem::new(Code::StoreUnavailable, "the store does not respond"))),
        Needs::Viewer | Needs::Operator => caller.await,
    };
    let checked = caller.and_then(|caller| {
        match needs {
            Needs::Nothing | Needs::Viewer => caller.require_viewer()?,
            Needs::Operator => caller.require_operator()?,
        }
        Ok(caller)
    });
    match checked {
        Ok(caller) => visitor.caller = Some(caller),
        Err(_) if needs == Needs::Nothing => (),
        Err(problem) if problem.code == Code::TokenMissing => {
            return sign_in::redirect(dashboard, &request, visitor);
        }
        Err(problem) => return dashboard.failure(visitor, problem.into()),
    }
    if needs != Needs::Nothing && request.method() == Method::GET {
        dashboard.sampler.keep_up(&dashboard.api).await;
    }
    request.extensions_mut().insert(visitor.clone());
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<PageRefusal>() {
        Some(refusal) => dashboard.failure(visitor, refusal),
        None => response,
    }
}

impl Dashboard {
    /// Returns who sends a request. The handler does not see the parameter that asks for the SQL.
    fn visitor(&self, request: &mut Request) -> Visitor {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let (target, asks_for_sql) = page_cost::without_explain(target);
        if let Some(uri) = asks_for_sql.then(|| with_target(request.uri(), &target)).flatten() {
            *request.uri_mut() = uri;
        }
        let here = target.strip_prefix(&self.base).filter(|here| here.starts_with('/')).unwrap_or("/");
        let host = same_origin::host(request.uri(), request.headers()).unwrap_or_default().to_owned();
        Visitor {
            language: Language::of(request.headers()),
            api_url: self
                .api
                .own_url
                .of_page(&host, sign_in::seems_encrypted(request.uri(), request.headers())),
            host,
            here: here.to_owned(),
            now: self.sampler.now(clock::now()),
            started: Instant::now(),
            asks_for_sql,
            caller: None,
        }
    }
}

/// Returns an address with another path and query.
fn with_target(uri: &Uri, target: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Adds the headers that keep a page to itself.
async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    // A stored request that is downloaded has a stricter policy.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
    headers.insert(REFERRER_POLICY, REFERRER);
    headers.insert(OPENER_POLICY, SAME_ORIGIN);
    headers.insert(RESOURCE_POLICY, SAME_ORIGIN);
    response
}

/// Returns a redirect to a page after a form.
fn see_other(base: &str, path: &str) -> Response {
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let location = HeaderValue::try_from(format!("{base}{path}")).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(http::header::LOCATION, location);
    response
}

#[cfg(test)]
mod tests;
