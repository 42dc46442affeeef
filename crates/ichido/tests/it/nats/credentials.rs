//! Credentials: accepted, refused, and with limited permissions; also over TLS.

use std::path::Path;

use ichido::destination::nats::{Credentials, NatsSettings, NatsStartError};
use nats_for_tests::{ADMIN, NatsServer};
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa};

use super::tried::{DENIED, DONE, connect, connected, order, outcome, settings};

const SECRET: &str = "correct-horse-battery";

/// A server with an administrator and these users.
async fn server_with(users: &str) -> NatsServer {
    let (admin, password) = ADMIN;
    let admin = format!("{{user: \"{admin}\", password: \"{password}\"}}");
    let server =
        NatsServer::start_with(&format!("jetstream {{}}\nauthorization {{ users = [ {admin}\n{users} ] }}"))
            .await;
    server.make_stream().await;
    server
}

fn ann(server: &NatsServer, password: &str) -> NatsSettings {
    let (user, password) = ("ann".to_owned(), password.to_owned());
    NatsSettings { credentials: Some(Credentials::Password { user, password }), ..settings(server.url()) }
}

#[tokio::test]
async fn only_known_user_and_nkey_can_connect() {
    let key = KeyPair::new_user();
    let (seed, public) = (key.seed().expect("a seed"), key.public_key());
    let server = server_with(&format!("{{user: ann, password: \"{SECRET}\"}}, {{nkey: \"{public}\"}}")).await;
    connected(&ann(&server, SECRET)).await;
    let keyed = NatsSettings { credentials: Some(Credentials::Nkey(seed)), ..settings(server.url()) };
    assert_eq!(outcome(&connected(&keyed).await, &order("k1")).await, DONE);
    let stranger = KeyPair::new_user().seed().expect("a seed");
    for wrong in [
        ann(&server, "wr0ng-password"),
        settings(server.url()),
        NatsSettings { credentials: Some(Credentials::Nkey(stranger)), ..settings(server.url()) },
        NatsSettings { credentials: Some(Credentials::Token(SECRET.to_owned())), ..settings(server.url()) },
    ] {
        let error = connect(&wrong).await.expect_err("it is refused");
        let text = format!("{error} {error:?} {wrong:?}");
        assert!(matches!(error, NatsStartError::Unauthorized { .. }), "{text}");
        assert!(!text.contains("wr0ng") && !text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
async fn token_can_connect() {
    let server =
        NatsServer::start_with(&format!("jetstream {{}}\nauthorization {{ token: \"{SECRET}\" }}")).await;
    let token =
        NatsSettings { credentials: Some(Credentials::Token(SECRET.to_owned())), ..settings(server.url()) };
    // There is no stream, which it learns after authentication.
    let error = connect(&token).await.expect_err("there is no stream");
    assert!(matches!(error, NatsStartError::NoStream { .. }), "{error}");
}

#[tokio::test]
async fn denied_publish_fails_at_once_and_is_not_done() {
    let server = server_with(&format!(
        "{{user: ann, password: \"{SECRET}\", permissions: {{ publish: [\"$JS.API.STREAM.NAMES\", \"$JS.API.STREAM.INFO.>\"], subscribe: [\"_INBOX.>\"] }} }}"
    ))
    .await;
    // The timeout of a call is longer than the test may take: the server's message ends it.
    let nats = connected(&ann(&server, SECRET)).await;
    assert_eq!(outcome(&nats, &order("k0")).await, DENIED);
    let (first, second, third) = (order("k1"), order("k2"), order("k3"));
    let together = tokio::join!(outcome(&nats, &first), outcome(&nats, &second), outcome(&nats, &third));
    assert_eq!(together, (DENIED, DENIED, DENIED));
    assert_eq!(server.stored().await.len(), 0);
}

#[tokio::test]
async fn unreadable_stream_is_refused_at_startup_with_server_error() {
    let server = server_with(&format!(
        "{{user: ann, password: \"{SECRET}\", permissions: {{ publish: [\"orders.>\"], subscribe: [\"_INBOX.>\"] }} }}"
    ))
    .await;
    let mut wanted = ann(&server, SECRET);
    // No response ever comes; this is how long to wait.
    wanted.timeout = std::time::Duration::from_secs(2);
    wanted.connect_timeout = wanted.timeout;
    let error = loop {
        match connect(&wanted).await.expect_err("it may not ask") {
            // On a busy machine this is too short to connect.
            NatsStartError::Unreachable { .. } => (),
            error => break error,
        }
    };
    let text = error.to_string();
    assert!(matches!(error, NatsStartError::Unreadable { .. }), "{text}");
    assert!(text.contains("Permissions Violation") && text.contains("$JS.API.STREAM.NAMES"), "{text}");
}

#[tokio::test]
async fn tls_accepts_only_trusted_servers() {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, rcgen::KeyPair::generate().expect("a key"));
    let issuer = issuer.expect("it is signed");
    let own = rcgen::KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let certificate = certificate.signed_by(&own, &issuer).expect("it is signed");
    let files = [("cert.pem", certificate.pem()), ("key.pem", own.serialize_pem())];
    let configuration = |folder: &Path| {
        let folder = folder.display();
        format!("jetstream {{}}\ntls {{ cert_file: \"{folder}/cert.pem\", key_file: \"{folder}/key.pem\" }}")
    };
    let server = NatsServer::start_with_files(&files, configuration).await;
    for scheme in ["tls", "nats"] {
        let ours = settings(format!("{scheme}://{}", server.address));
        let trusting = NatsSettings { trusted_roots: Some(issuer.pem()), ..ours.clone() };
        // There is no stream, which it learns after the handshake.
        let error = connect(&trusting).await.expect_err("there is no stream");
        assert!(matches!(error, NatsStartError::NoStream { .. }), "{error}");
        let error = connect(&ours).await.expect_err("it is not trusted");
        assert!(matches!(error, NatsStartError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    }
}
