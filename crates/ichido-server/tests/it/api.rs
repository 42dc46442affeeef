//! The API without a socket, for cases.

use std::path::PathBuf;

use http::{Method, Uri};
use ichido_core::key::IdempotencyKey;
use ichido_server::config::{self, Config, ConfigSources};
use ichido_server::serve::InProcessApi;
use ichido_store::Store;
use serde_json::Value;

/// The API on a store, as its operator Olivia calls it.
pub(crate) struct TestApi(pub(crate) InProcessApi);

impl TestApi {
    pub(crate) fn new(store: &Store, config: &Config) -> Self {
        Self(InProcessApi::new(store.clone(), Some(config), "olivia".to_owned()))
    }

    /// Sends a request. Returns the status and the body, which is JSON.
    pub(crate) async fn ask(&self, method: Method, target: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.ask_text(method, target, body).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// Sends a request. Returns the status and the body.
    pub(crate) async fn ask_text(&self, method: Method, target: &str, body: &str) -> (u16, String) {
        let target: Uri = target.parse().unwrap();
        let response = self.0.ask(method, target, body.to_owned()).await.unwrap();
        (response.status, String::from_utf8_lossy(&response.body).into_owned())
    }

    /// Reads a page that must exist.
    pub(crate) async fn get(&self, target: &str) -> Value {
        let (status, body) = self.ask(Method::GET, target, "").await;
        assert_eq!(status, 200, "{target}: {body}");
        body
    }

    /// Sends JSON under a key. Returns the status and the body.
    pub(crate) async fn put(&self, target: &str, key: &str, body: &str) -> (u16, Value) {
        let (target, key): (Uri, _) = (target.parse().unwrap(), IdempotencyKey::parse(key).unwrap());
        let response = self.0.put_in(target, &key, "application/json", None, body.into()).await.unwrap();
        (response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null))
    }

    /// Enqueues a message of JSON. Returns its id.
    pub(crate) async fn enqueue(&self, queue: &str, key: &str, body: &str) -> String {
        let (status, body) = self.put(&format!("/v1/queues/{queue}/messages"), key, body).await;
        assert_eq!(status, 201, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }
}

/// Resolves a configuration, or returns its errors as text.
pub(crate) fn configure(text: &str) -> Result<Config, String> {
    let outside = ConfigSources::of_files(PathBuf::new());
    config::resolve("ichido.toml", text, &outside).map_err(|errors| errors.to_string())
}
