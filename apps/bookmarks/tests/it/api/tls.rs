//! Pages over https: only those with a certificate of the system's roots are read. The real program runs, because its
//! environment decides which roots those are.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::Method;
use http_for_tests::Authority;
use ichido_store::testing::sqlite;
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

use super::fixture::{ApiRequest, in_time, look_again};
use super::pages::{Pages, story};
use super::program::{address_and_token, start_as, stop};

/// A page server with a certificate for this host.
async fn pages(authority: &Authority, host: &str) -> Pages {
    Pages::start_tls(authority.acceptor(host), |_, _| story()).await
}

/// A user of the program.
struct TlsPerson {
    address: SocketAddr,
    token: String,
}

impl TlsPerson {
    fn ask(&self, path: &str) -> ApiRequest {
        ApiRequest::to(self.address, path).header("authorization", &format!("Bearer {}", self.token))
    }

    /// Saves a page and waits until it was attempted.
    async fn save(&self, url: &str) -> Value {
        let save = self.ask("/v1/bookmarks").method(Method::POST).header("idempotency-key", url);
        let id = save.json(&json!({ "url": url })).send().await.text("/id");
        loop {
            let bookmark = self.ask(&format!("/v1/bookmarks/{id}")).send().await.json();
            if bookmark["state"] != "processing" {
                return bookmark;
            }
            look_again().await;
        }
    }
}

/// A file of root certificates, removed with this.
struct Roots(PathBuf);

impl Drop for Roots {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[tokio::test]
async fn https_pages_need_a_certificate_of_the_system_roots() {
    in_time(async {
        let (known, stranger) = (Authority::new("known"), Authority::new("stranger"));
        let file = sqlite::fresh_file();
        let roots = Roots(file.path().with_extension("pem"));
        std::fs::write(&roots.0, known.pem()).unwrap();
        let (child, printed) = start_as(&file.url, |command| {
            let command = command.env("SSL_CERT_FILE", &roots.0).env_remove("SSL_CERT_DIR");
            command.arg("--allow-private-addresses")
        })
        .await;
        let (address, token) = address_and_token(&printed);
        let person = TlsPerson { address, token };

        let by_address = pages(&known, "127.0.0.1").await;
        let done = person.save(&by_address.url("/")).await;
        assert_eq!((&done["state"], &done["title"]), (&json!("done"), &json!("The fox")), "{done}");
        let by_name = pages(&known, "localhost").await;
        let done = person.save(&format!("https://localhost:{}/", by_name.address.port())).await;
        assert_eq!((&done["state"], &done["title"]), (&json!("done"), &json!("The fox")), "{done}");

        for (pages, why) in [
            (pages(&stranger, "127.0.0.1").await, "invalid peer certificate: UnknownIssuer"),
            (
                pages(&known, "bookmarks.example").await,
                "invalid peer certificate: certificate not valid for name \"127.0.0.1\"",
            ),
        ] {
            let refused = person.save(&pages.url("/")).await;
            assert_eq!(
                (&refused["errorCode"], &refused["state"], &refused["canRetry"]),
                (&json!("page_untrusted"), &json!("failed"), &json!(true)),
                "{refused}"
            );
            assert_eq!((&refused["title"], pages.requests("/")), (&Value::Null, 0), "no request was sent");
            let mut connection = SqliteConnection::connect(&file.url).await.unwrap();
            let query = sqlx::query_scalar("SELECT error FROM bookmark_now WHERE url = $1");
            let error: String = query.bind(pages.url("/")).fetch_one(&mut connection).await.unwrap();
            assert!(error.contains(&format!("no TLS connection: {why}")), "{error}");
        }
        stop(child).await;
    })
    .await;
}
