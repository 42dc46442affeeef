//! The server's own TLS, and what it refuses without encryption.

use std::net::SocketAddr;
use std::path::Path;

use ichido_client::ClientSettings;
use ichido_http::server::Stops;
use ichido_http::server::tls::{ServerTls, ServerTlsError, TlsFiles};
use ichido_server::serve::{Access, Serving};
use ichido_server::worker;
use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;
use tokio::net::TcpListener;

use crate::api::configure;
use crate::mounting::answer;

/// Writes a new certificate for loopback, and its key. Returns the certificate.
fn certify(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("server.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("server.key"), made.signing_key.serialize_pem()).unwrap();
    made.cert.pem()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { cert: folder.join("server.pem"), key: folder.join("server.key") }
}

fn config(folder: &Path) -> String {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    format!(
        "{}\n[serve]\ntls = {{ cert = {:?}, key = {:?} }}\n",
        crate::mounting::CONFIG,
        path("server.pem"),
        path("server.key")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_encrypts_with_its_own_certificate() {
    let file = fresh_file();
    let folder = file.folder();
    let roots = certify(folder);
    let store = Store::open(&file.url, 2).await.unwrap();
    let config = configure(&config(folder)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let targets = worker::connect(&config).await.unwrap();
    let access = Access::new(store.clone(), address);
    let serving = Serving::start(&config, &store, targets, access, config.serve.limits).await.unwrap();
    assert!(serving.write_file(&file.url, address).await.is_none(), "commands cannot use it by its address");
    let stops = Stops::default();
    let asking = async {
        let settings = ClientSettings::new(format!("https://{address}"));
        let client = ClientSettings { trusted_roots: Some(roots), ..settings }.resolve().unwrap();
        let queues = answer(client.read("/v1/queues").await.unwrap());
        assert_eq!(queues.status, 200, "{queues:?}");
        stops.stop();
    };
    let (ended, ()) = tokio::join!(serving.until(listener, &stops), asking);
    ended.unwrap();
}

#[test]
fn certificate_is_read_again_when_it_changes() {
    let file = fresh_file();
    let folder = file.folder();
    assert!(matches!(ServerTls::load(files(folder)), Err(ServerTlsError::Read { .. })));
    certify(folder);
    let tls = ServerTls::load(files(folder)).unwrap();
    assert!(!tls.reload().unwrap(), "nothing has changed");
    let key = std::fs::read(folder.join("server.key")).unwrap();
    certify(folder);
    std::fs::write(folder.join("server.key"), &key).unwrap();
    assert!(matches!(tls.reload(), Err(ServerTlsError::Setup { .. })), "the key of another certificate");
    assert!(!tls.reload().unwrap(), "which is said once");
    certify(folder);
    assert!(tls.reload().unwrap());
    std::fs::write(folder.join("server.pem"), "no certificate").unwrap();
    assert!(matches!(tls.reload(), Err(ServerTlsError::Pem { .. })));
}

/// Everybody on the way could read tokens.
#[tokio::test]
async fn server_without_encryption_is_refused_beyond_loopback() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 4180));
    for serve in ["", "public_url = \"http://ichido.example\""] {
        let config = configure(&format!("{}\n[serve]\n{serve}\n", crate::mounting::CONFIG)).unwrap();
        let access = Access::new(store.clone(), everywhere);
        let refused = Serving::start(&config, &store, Vec::new(), access, config.serve.limits).await;
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(error.contains("nothing encrypts") && error.contains("`public_url`"), "{error}");
    }
    let error = configure("[serve]\npublic_url = \"ichido.example\"\n").map(drop).unwrap_err();
    assert!(error.contains("public_url") && error.contains("must begin with https://"), "{error}");
}
