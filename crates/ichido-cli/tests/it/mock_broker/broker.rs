//! The binary under test as a process that ends when dropped, and a client of it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A running `ichido mock-broker`.
pub(crate) struct MockBroker {
    /// `None` after waiting for it.
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    /// The line in which it announced its address.
    pub(crate) line: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct BrokerResponse {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl BrokerResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_default().to_owned())
    }
}

/// An order.
#[derive(Clone, Debug, Default)]
pub(crate) struct BrokerOrder {
    pub(crate) key: Option<String>,
    pub(crate) fence: Option<u64>,
    pub(crate) body: String,
}

/// Creates an order with this key.
// The form is that of spec D18.
pub(crate) fn order(key: &str) -> BrokerOrder {
    let body = format!(
        r#"{{"idempotency_key":"{key}","symbol":"ACME","intent":"buy","qty":"10","limit_price":"9.5","trace_id":"t","meta":{{}}}}"#
    );
    BrokerOrder { key: Some(key.to_owned()), fence: None, body }
}

impl MockBroker {
    /// Starts a broker on a free loopback port, and waits until it listens.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
        command.current_dir("/").args(["mock-broker", "--listen", "127.0.0.1:0"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says something");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        Self { child: Some(child), address, line }
    }

    /// Sends a request on its own connection; fails without a complete response.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<BrokerResponse, hyper::Error> {
        let stream = TcpStream::connect(self.address).await.expect("it listens");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let answered = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(BrokerResponse { status: head.status.as_u16(), headers: head.headers, body })
        };
        let answered = answered.await;
        connection.abort();
        answered
    }

    pub(crate) async fn try_post(&self, order: &BrokerOrder) -> Result<BrokerResponse, hyper::Error> {
        self.send(request_of(order)).await
    }

    pub(crate) async fn post(&self, order: &BrokerOrder) -> BrokerResponse {
        self.try_post(order).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> BrokerResponse {
        let request =
            Request::get(path).header("Host", "mock.test").body(Full::default()).expect("a request");
        self.send(request).await.expect("an answer")
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> BrokerResponse {
        let body = Full::from(body.to_owned());
        let request = Request::put(path).header("Host", "mock.test").body(body).expect("a request");
        self.send(request).await.expect("an answer")
    }

    /// Returns everything that it did.
    pub(crate) async fn effects(&self) -> Value {
        self.get("/mock/effects").await.json()
    }

    /// Returns how often a key took effect, and how often it was called.
    pub(crate) async fn counts(&self, key: &str) -> (u64, u64) {
        let effects = self.effects().await;
        let count = |name: &str| effects["keys"][key][name].as_u64().unwrap_or(0);
        (count("effects"), count("calls"))
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.as_ref().expect("it runs").id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it was not waited for yet");
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        ended.expect("it does not panic").expect("it is our child")
    }
}

impl Drop for MockBroker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may already have ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

pub(crate) fn request_of(order: &BrokerOrder) -> Request<Full<Bytes>> {
    let mut request =
        Request::post("/orders").header("Host", "mock.test").header("Content-Type", "application/json");
    if let Some(key) = &order.key {
        request = request.header("Idempotency-Key", key);
    }
    if let Some(fence) = order.fence {
        request = request.header("Ichido-Fence", fence);
    }
    request.body(Full::from(order.body.clone())).expect("a request")
}

/// Runs the binary to its end; returns exit code and standard error.
pub(crate) fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    let child = command.current_dir("/").args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the binary starts");
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    (child.wait().expect("it ends").code(), err)
}
