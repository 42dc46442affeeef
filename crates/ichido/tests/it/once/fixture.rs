//! A fresh database, a service behind the layer, and the vocabulary of the tests.

use std::convert::Infallible;
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use ichido::once::{Class, Guarantee, LeaseKeeper, Once, OnceLayer, OnceService, Pool, Tx};
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{RecordName, RecordPhase};
use ichido_store::Store;
use ichido_store::ledger::KeyRecord;
use ichido_store::testing::{postgres, sqlite, while_busy};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqlitePool};
use sqlx::{PgPool, Postgres, Row as _};
use tower::{Layer as _, Service, ServiceExt as _};

use crate::handler_gate::HandlerGate;
use crate::worker::fixture::poll_pause;

pub(crate) const OPERATION: &str = "orders.create";
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Short enough for a test to wait it out, and long enough for a slow machine to claim and renew within it.
pub(crate) const SHORT_LEASE: Duration = Duration::from_secs(3);
/// Longer than any lease here.
pub(crate) const AFTER_LEASE: Duration = Duration::from_secs(31);
/// Long enough for any first request here to finish.
pub(crate) const LONG: Duration = Duration::from_mins(1);
/// The longest that a test may take.
const MAX_CASE: Duration = Duration::from_mins(4);

/// The ways an outcome becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// In a transaction, without a claim.
    Transactional,
    /// In a transaction, under a claim.
    Claimed,
    Keyed,
    Opaque,
}

/// Both ways to run a handler in a transaction.
pub(crate) const IN_TRANSACTION: [Mode; 2] = [Mode::Transactional, Mode::Claimed];

pub(crate) const MODES: [Mode; 4] = [Mode::Transactional, Mode::Claimed, Mode::Keyed, Mode::Opaque];

/// A fresh database and one node on it.
pub(crate) struct OnceFixture {
    pub(crate) store: Store,
    pub(crate) keeper: LeaseKeeper,
    pub(crate) url: String,
    pub(crate) business: Pool,
    /// Effects outside of the database.
    outside: Arc<AtomicUsize>,
    _database: Option<DatabaseCleanup>,
}

/// A database, and the effects outside of it.
pub(crate) struct DatabaseLocation {
    url: String,
    outside: Arc<AtomicUsize>,
}

impl DatabaseLocation {
    /// The same database at another address.
    pub(crate) fn by(self, url: String) -> Self {
        Self { url, ..self }
    }
}

/// Removed with the fixture.
pub(crate) enum DatabaseCleanup {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

impl OnceFixture {
    pub(crate) async fn postgres() -> Self {
        let database = postgres::fresh_database().await;
        let url = database.url.clone();
        Self::open(&url, Some(DatabaseCleanup::Postgres { _database: database })).await
    }

    pub(crate) async fn sqlite() -> Self {
        let file = sqlite::fresh_file();
        let url = file.url.clone();
        Self::open(&url, Some(DatabaseCleanup::Sqlite { _file: file })).await
    }

    pub(crate) async fn open(url: &str, database: Option<DatabaseCleanup>) -> Self {
        let fixture = Self::on(url, Arc::default(), database).await;
        let orders = "CREATE TABLE orders (number INTEGER)";
        match &fixture.business {
            Pool::Postgres(pool) => drop(sqlx::query(orders).execute(pool).await.unwrap()),
            Pool::Sqlite(pool) => drop(sqlx::query(orders).execute(pool).await.unwrap()),
        }
        fixture
    }

    async fn on(url: &str, outside: Arc<AtomicUsize>, database: Option<DatabaseCleanup>) -> Self {
        let store = Store::open(url, 4).await.expect("the store opens");
        let keeper = LeaseKeeper::new(store.clone());
        let business = business(url).await;
        Self { store, keeper, url: url.to_owned(), business, outside, _database: database }
    }

    /// Returns where another node can find this database.
    pub(crate) fn location(&self) -> DatabaseLocation {
        DatabaseLocation { url: self.url.clone(), outside: Arc::clone(&self.outside) }
    }

    /// Starts a node there. It has its own clock.
    pub(crate) async fn at(DatabaseLocation { url, outside }: DatabaseLocation) -> Self {
        Self::on(&url, outside, None).await
    }

    /// The same database as another node sees it. It has its own clock.
    pub(crate) async fn another_node(&self) -> Self {
        Self::at(self.location()).await
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.store.is_sqlite()
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.store.advance_clock(time);
    }

    /// An operation as the tests use it: a duplicate waits as long as it takes.
    pub(crate) fn once(&self, mode: Mode) -> Once {
        let effect = match mode {
            Mode::Transactional | Mode::Claimed => Guarantee::Transactional(self.business.clone()),
            Mode::Keyed => Guarantee::Keyed,
            Mode::Opaque => Guarantee::None,
        };
        let once = Once::operation(OPERATION)
            .class(Class::Mutate)
            .guarantee(effect)
            .identity_header(HeaderName::from_static("x-user"))
            .lease(LEASE)
            .in_flight_wait(LONG);
        if mode == Mode::Claimed { once.claim_first() } else { once }
    }

    pub(crate) fn layer(&self, once: Once) -> OnceLayer {
        once.build(&self.keeper).expect("a layer")
    }

    /// A service behind an operation.
    pub(crate) fn serve(&self, once: Once, handler: impl Into<TestHandler>) -> ProtectedService {
        self.layer(once).layer(handler.into())
    }

    /// The plain service: each run places one order and responds with its number.
    pub(crate) fn orders(&self, mode: Mode) -> ProtectedService {
        self.serve(self.once(mode), self.ordering())
    }

    /// A handler that places one order per run and responds with 201 and the run's number.
    pub(crate) fn ordering(&self) -> TestHandler {
        self.handler(|run| async move {
            run.order().await;
            run.created()
        })
    }

    pub(crate) fn handler<F, A>(&self, handle: F) -> TestHandler
    where
        F: Fn(HandlerRun) -> A + Send + Sync + 'static,
        A: Future<Output = Response<Body>> + Send + 'static,
    {
        let (outside, runs) = (Arc::clone(&self.outside), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&runs);
        let handle = Arc::new(move |request: Request<Bytes>| -> Answering {
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let outside = Arc::clone(&outside);
            Box::pin(handle(HandlerRun { request, number, outside }))
        });
        TestHandler { handle, runs }
    }

    /// A handler that responds once the gate lets it pass, and places no order.
    pub(crate) fn created_after(&self, gate: &HandlerGate) -> TestHandler {
        let gate = gate.clone();
        self.handler(move |run| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                run.created()
            }
        })
    }

    /// How many orders were placed, in the database and outside of it.
    pub(crate) async fn effects(&self) -> usize {
        let count = "SELECT count(*) FROM orders";
        let rows: i64 = match &self.business {
            Pool::Postgres(pool) => sqlx::query(count).fetch_one(pool).await.unwrap().get(0),
            Pool::Sqlite(pool) => sqlx::query(count).fetch_one(pool).await.unwrap().get(0),
        };
        usize::try_from(rows).unwrap() + self.outside.load(Ordering::SeqCst)
    }

    pub(crate) async fn assert_effects(&self, expected: usize) {
        assert_eq!(self.effects().await, expected, "effects");
    }

    pub(crate) async fn record(&self, key: &str) -> Option<KeyRecord> {
        let name = name(key);
        while_busy(|| self.store.keys().get(&name)).await
    }

    pub(crate) async fn phase(&self, key: &str) -> Option<RecordPhase> {
        self.record(key).await.map(|record| record.record.phase)
    }

    /// Waits until a condition holds for a key's record.
    pub(crate) async fn until(&self, key: &str, is: impl Fn(Option<&KeyRecord>) -> bool) {
        while !is(self.record(key).await.as_ref()) {
            poll_pause().await;
        }
    }

    /// Closes the store for this node.
    pub(crate) async fn close_store(&self) {
        if let Some(pool) = self.store.postgres_pool() {
            pool.close().await;
        }
        if let Some(pool) = self.store.sqlite_writer() {
            pool.close().await;
        }
    }

    /// Runs a statement of the test.
    pub(crate) async fn sql(&self, on_postgres: &'static str, on_sqlite: &'static str) {
        match &self.business {
            Pool::Postgres(pool) => drop(sqlx::query(on_postgres).execute(pool).await.unwrap()),
            Pool::Sqlite(pool) => drop(sqlx::query(on_sqlite).execute(pool).await.unwrap()),
        }
    }
}

/// The service's own connections.
async fn business(url: &str) -> Pool {
    if url.starts_with("sqlite:") {
        let options = SqliteConnectOptions::from_str(url).unwrap().busy_timeout(Duration::from_mins(1));
        SqlitePool::connect_with(options).await.unwrap().into()
    } else {
        PgPool::connect(url).await.unwrap().into()
    }
}

/// The record of alice's key.
pub(crate) fn name(key: &str) -> RecordName {
    name_of("alice", key)
}

pub(crate) fn name_of(identity: &str, key: &str) -> RecordName {
    let key = IdempotencyKey::parse(key).expect("a key");
    RecordName { operation: OPERATION.to_owned(), identity: identity.to_owned(), key }
}

pub(crate) type ProtectedService = OnceService<TestHandler>;
type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// The service behind the layer.
#[derive(Clone)]
pub(crate) struct TestHandler {
    handle: Arc<dyn Fn(Request<Bytes>) -> Answering + Send + Sync>,
    runs: Arc<AtomicUsize>,
}

impl TestHandler {
    /// How often it was called.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl<B> Service<Request<B>> for TestHandler
where
    B: axum::body::HttpBody<Data = Bytes, Error: std::fmt::Debug> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let handle = Arc::clone(&self.handle);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.expect("a whole body").to_bytes();
            Ok(handle(Request::from_parts(parts, body)).await)
        })
    }
}

/// One run of a handler.
pub(crate) struct HandlerRun {
    pub(crate) request: Request<Bytes>,
    /// The number of this run, from 1.
    pub(crate) number: usize,
    outside: Arc<AtomicUsize>,
}

impl HandlerRun {
    /// Places one order: in the transaction if there is one, otherwise outside of the database.
    pub(crate) async fn order(&self) {
        const ORDER: &str = "INSERT INTO orders VALUES (1)";
        let extensions = self.request.extensions();
        if let Some(tx) = extensions.get::<Tx<Postgres>>() {
            sqlx::query(ORDER).execute(&mut *tx.lock().await.unwrap()).await.unwrap();
        } else if let Some(tx) = extensions.get::<Tx<Sqlite>>() {
            sqlx::query(ORDER).execute(&mut *tx.lock().await.unwrap()).await.unwrap();
        } else {
            self.outside.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// 201, with the run's number.
    pub(crate) fn created(&self) -> Response<Body> {
        respond(StatusCode::CREATED, format!("order {}", self.number))
    }
}

pub(crate) fn respond(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}

/// A request to send.
#[derive(Clone)]
pub(crate) struct TestRequest {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
}

/// A POST by alice with the body `10 EUR`, without a key.
pub(crate) fn post() -> TestRequest {
    TestRequest {
        method: Method::POST,
        uri: "/orders".to_owned(),
        fields: vec![("x-user".to_owned(), b"alice".to_vec())],
        body: Bytes::from_static(b"10 EUR"),
    }
}

/// The same with a key.
pub(crate) fn keyed(key: &str) -> TestRequest {
    post().field("idempotency-key", key)
}

impl TestRequest {
    pub(crate) fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn user(mut self, user: &str) -> Self {
        self.fields.retain(|(name, _)| name != "x-user");
        self.field("x-user", user)
    }

    pub(crate) fn without_user(mut self) -> Self {
        self.fields.retain(|(name, _)| name != "x-user");
        self
    }

    pub(crate) fn uri(self, uri: &str) -> Self {
        Self { uri: uri.to_owned(), ..self }
    }

    pub(crate) fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn json(self, body: impl Into<Bytes>) -> Self {
        self.body(body).field("content-type", "application/json")
    }

    pub(crate) fn with(&self, body: impl Into<Body>) -> Request<Body> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.uri);
        for (name, value) in &self.fields {
            request = request.header(name, value.as_slice());
        }
        request.body(body.into()).expect("a request")
    }

    pub(crate) fn request(&self) -> Request<Body> {
        self.with(self.body.clone())
    }

    /// Sends it and reads the whole response.
    pub(crate) async fn send(&self, endpoint: &ProtectedService) -> TestResponse {
        send(endpoint, self.request()).await
    }

    /// Sends it, and repeats it while the store is busy.
    ///
    /// For requests that contend for one row: on a slow machine it may be locked for longer than the store waits, and then
    /// nothing was run.
    pub(crate) async fn send_while_busy(&self, endpoint: &ProtectedService) -> TestResponse {
        loop {
            let answer = self.send(endpoint).await;
            if answer.status() != 503 {
                return answer;
            }
            answer.assert_problem(503, "store_unavailable");
            poll_pause().await;
        }
    }

    /// The same in its own task.
    pub(crate) fn start_while_busy(
        self,
        endpoint: &ProtectedService,
    ) -> tokio::task::JoinHandle<TestResponse> {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { self.send_while_busy(&endpoint).await })
    }

    /// Sends it in its own task.
    pub(crate) fn start(self, endpoint: &ProtectedService) -> tokio::task::JoinHandle<TestResponse> {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { self.send(&endpoint).await })
    }
}

pub(crate) async fn send(endpoint: &ProtectedService, request: Request<Body>) -> TestResponse {
    let Ok(response) = endpoint.clone().oneshot(request).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    TestResponse(Response::from_parts(parts, body))
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct TestResponse(pub(crate) Response<Bytes>);

impl TestResponse {
    pub(crate) fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(self.0.body()).expect("text")
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name).map(|value| value.to_str().expect("visible"))
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.field("idempotency-replayed") == Some("true")
    }

    /// Asserts the first outcome, with this body.
    #[track_caller]
    pub(crate) fn assert_first(&self, status: u16, body: &str) {
        assert_eq!((self.status(), self.text()), (status, body), "{self:?}");
        assert!(!self.is_replay(), "{self:?}");
    }

    /// Asserts a replay of that outcome.
    #[track_caller]
    pub(crate) fn assert_replay(&self, status: u16, body: &str) {
        assert_eq!((self.status(), self.text()), (status, body), "{self:?}");
        assert!(self.is_replay(), "{self:?}");
    }

    /// Asserts a well-formed problem with this code.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status(), status, "{self:?}");
        assert_eq!(self.field("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(self.0.body()).expect("JSON");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["type"], format!("urn:ichido:problem:{code}"), "{problem}");
        for member in ["title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        assert!(self.field("x-request-id").is_some(), "{self:?}");
        assert!(!self.is_replay(), "{self:?}");
    }
}

/// Fails a test that waits forever.
pub(crate) async fn in_time(case: impl Future<Output = ()>) {
    tokio::time::timeout(MAX_CASE, case).await.expect("the case ends");
}

/// One behaviour, one test per database.
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($fixture:ident: OnceFixture) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($fixture: OnceFixture) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::once::fixture::in_time(case(OnceFixture::postgres().await)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::once::fixture::in_time(case(OnceFixture::sqlite().await)).await;
            }
        }
    )+ };
}

pub(crate) use both_databases;
