//! A fresh database, the service on it, and helpers for the cases.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bookmarks::{App, Settings};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ichido::store::Store;
use ichido::store::message::QueueName;
use ichido_http::server::Stops;
use ichido_store::testing::{postgres, sqlite};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How often a condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Timeout of a case.
const MAX_CASE: Duration = Duration::from_mins(5);

/// A fresh database.
pub(crate) struct ApiFixture {
    pub(crate) url: String,
    _database: TestDatabase,
}

/// Removed with the fixture.
enum TestDatabase {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

impl ApiFixture {
    pub(crate) async fn postgres() -> Self {
        let database = postgres::fresh_database().await;
        Self { url: database.url.clone(), _database: TestDatabase::Postgres { _database: database } }
    }

    pub(crate) fn sqlite() -> Self {
        let file = sqlite::fresh_file();
        Self { url: file.url.clone(), _database: TestDatabase::Sqlite { _file: file } }
    }

    /// Starts the service without its worker: bookmarks stay as saved, and no page is fetched.
    pub(crate) async fn start(&self) -> RunningService {
        self.start_as(|_| ()).await
    }

    /// The same, with custom settings.
    pub(crate) async fn start_as(&self, change: impl FnOnce(&mut Settings)) -> RunningService {
        self.serve(change, true).await
    }

    /// Starts the service with its worker. It may fetch pages from this machine, at this one address.
    pub(crate) async fn work(&self) -> RunningService {
        self.work_as(|_| ()).await
    }

    /// The same, with custom settings.
    pub(crate) async fn work_as(&self, change: impl FnOnce(&mut Settings)) -> RunningService {
        self.serve(change, false).await
    }

    async fn serve(&self, change: impl FnOnce(&mut Settings), is_at_rest: bool) -> RunningService {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut settings = Settings::new(&self.url, address);
        settings.may_reach = |address: IpAddr| address == Ipv4Addr::LOCALHOST;
        change(&mut settings);
        let app = App::open(settings).await.unwrap();
        let token = app.add_person("ann").await.unwrap().to_text();
        if is_at_rest {
            app.store().queues().pause(&extraction(), true, Some("a case")).await.unwrap();
        }
        let served = Arc::clone(&app);
        let task = tokio::spawn(async move { served.serve(listener, &Stops::default()).await.unwrap() });
        RunningService { app, address, token, url: self.url.clone(), task }
    }
}

/// A service that runs until this is dropped, and its user ann.
pub(crate) struct RunningService {
    pub(crate) app: Arc<App>,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    url: String,
    task: JoinHandle<()>,
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningService {
    pub(crate) fn store(&self) -> &Store {
        self.app.store()
    }

    /// Moves the store's clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.store().advance_clock(time);
    }

    /// Starts the worker.
    pub(crate) async fn go_on(&self) {
        self.store().queues().pause(&extraction(), false, Some("a case")).await.unwrap();
    }

    /// Stops it again: what is saved from now on waits.
    pub(crate) async fn rest(&self) {
        self.store().queues().pause(&extraction(), true, Some("a case")).await.unwrap();
    }

    /// A request by ann.
    pub(crate) fn ask(&self, method: Method, path: &str) -> ApiRequest {
        self.bare(method, path).header("authorization", &format!("Bearer {}", self.token))
    }

    /// An unauthenticated request.
    pub(crate) fn bare(&self, method: Method, path: &str) -> ApiRequest {
        ApiRequest { method, ..ApiRequest::to(self.address, path) }
    }

    pub(crate) fn get(&self, path: &str) -> ApiRequest {
        self.ask(Method::GET, path)
    }

    /// Saves a URL as ann.
    pub(crate) fn save(&self, key: &str, url: &str) -> ApiRequest {
        self.ask(Method::POST, "/v1/bookmarks").header("idempotency-key", key).json(&json!({ "url": url }))
    }

    /// The same, and asserts that it is new.
    pub(crate) async fn saved(&self, key: &str, url: &str) -> String {
        let answer = self.save(key, url).send().await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.text("/id")
    }

    /// Returns a bookmark of ann.
    pub(crate) async fn bookmark(&self, id: &str) -> Value {
        let answer = self.get(&format!("/v1/bookmarks/{id}")).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    }

    /// Waits until a bookmark is in a state.
    pub(crate) async fn until(&self, id: &str, state: &str) -> Value {
        loop {
            let bookmark = self.bookmark(id).await;
            if bookmark["status"] == state {
                return bookmark;
            }
            look_again().await;
        }
    }

    /// Returns how many bookmarks ann has.
    pub(crate) async fn count(&self) -> usize {
        let answer = self.get("/v1/bookmarks?limit=100").send().await;
        answer.json()["bookmarks"].as_array().unwrap().len()
    }

    /// Queries a number from the database.
    pub(crate) async fn number(&self, sql: &'static str) -> i64 {
        if self.store().is_sqlite() {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get(0)
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get(0)
        }
    }

    /// Queries a row of text from the database.
    pub(crate) async fn row(&self, sql: &'static str) -> Vec<Option<String>> {
        if self.store().is_sqlite() {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
            (0..row.len()).map(|column| row.get(column)).collect()
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
            (0..row.len()).map(|column| row.get(column)).collect()
        }
    }

    /// Dumps the whole database, table by table, as text; bytes are hexadecimal.
    pub(crate) async fn everything(&self) -> String {
        let mut all = Vec::new();
        if self.store().is_sqlite() {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            let columns = "SELECT m.name, group_concat('quote(\"' || c.name || '\")', ' || '' '' || ') \
                           FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' GROUP BY m.name";
            let tables: Vec<(String, String)> =
                sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
            for (table, columns) in tables {
                let rows = AssertSqlSafe(format!("SELECT {columns} FROM \"{table}\""));
                let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
                all.push(format!("{table}: {}", rows.join("\n")));
            }
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('public', 'ichido')";
            let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut connection).await.unwrap();
            for table in tables {
                let rows = AssertSqlSafe(format!("SELECT t::text FROM {table} t"));
                let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
                all.push(format!("{table}: {}", rows.join("\n")));
            }
        }
        all.join("\n").to_lowercase()
    }

    /// Changes the database directly; each database has its own statement.
    pub(crate) async fn tamper(&self, postgres: &'static str, sqlite: &'static str) {
        if self.store().is_sqlite() {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            sqlx::raw_sql(sqlite).execute(&mut connection).await.unwrap();
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            sqlx::raw_sql(postgres).execute(&mut connection).await.unwrap();
        }
    }
}

pub(crate) fn extraction() -> QueueName {
    QueueName::parse("extraction").unwrap()
}

/// A request to send.
#[derive(Clone)]
pub(crate) struct ApiRequest {
    address: SocketAddr,
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl ApiRequest {
    /// A GET request to a server other than the fixture's service.
    pub(crate) fn to(address: SocketAddr, path: &str) -> Self {
        Self { address, method: Method::GET, path: path.to_owned(), headers: Vec::new(), body: None }
            .header("host", &address.to_string())
    }

    pub(crate) fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(before, _)| before != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends the request, and again while the store is busy, for requests that meet others at one row: on a slow
    /// machine the row may be locked for longer than the store waits, and then nothing was done.
    pub(crate) async fn send_while_busy(self) -> ApiResponse {
        loop {
            let answer = self.clone().send().await;
            if answer.status != StatusCode::SERVICE_UNAVAILABLE {
                return answer;
            }
            look_again().await;
        }
    }

    pub(crate) async fn send(self) -> ApiResponse {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut line, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(self.body.unwrap_or_default()));
        let response = line.send_request(request.body(body).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        ApiResponse { status: head.status, headers: head.headers, body }
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ApiResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self, pointer: &str) -> String {
        self.json().pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the status and code of a refusal, which is a problem.
    pub(crate) fn refusal(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        (self.status.as_u16(), self.text("/code"))
    }
}

/// The pause between two checks of a condition, so checking leaves the machine to those who work.
pub(crate) async fn look_again() {
    tokio::time::sleep(LOOK_EVERY).await;
}

/// A case that waits forever has failed.
pub(crate) async fn in_time(case: impl Future<Output = ()>) {
    tokio::time::timeout(MAX_CASE, case).await.expect("the test finishes in time");
}

/// One behaviour, one test per database.
#[macro_export]
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($fixture:ident: ApiFixture) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($fixture: ApiFixture) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::api::fixture::in_time(case(ApiFixture::postgres().await)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::api::fixture::in_time(case(ApiFixture::sqlite())).await;
            }
        }
    )+ };
}
