//! Connections to PostgreSQL can be encrypted, and the server authenticated.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::testing::postgres::{Cluster, PgTestDatabase};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use sqlx::{Connection as _, PgConnection};

/// A server with TLS as `localhost`, and its certificate authority.
struct TlsCluster {
    database: PgTestDatabase,
    cluster: Cluster,
    authority: PathBuf,
}

impl TlsCluster {
    async fn start() -> Self {
        let cluster = Cluster::start(&[]).expect("a server");
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, key()).expect("an authority");
        let server_key = key();
        let names = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let server = names.signed_by(&server_key, &authority).expect("a certificate");
        let data = cluster.folder().join("data");
        give(&data, "server.crt", &server.pem());
        give(&data, "server.key", &server_key.serialize_pem());
        let authority = give(&data, "authority.crt", &authority.pem());
        let database = cluster.database().await.expect("a database");
        let mut connection = PgConnection::connect(&database.url).await.expect("connected");
        sqlx::query("ALTER SYSTEM SET ssl = on").execute(&mut connection).await.expect("set");
        sqlx::query("SELECT pg_reload_conf()").execute(&mut connection).await.expect("told");
        let secured = Self { database, cluster, authority };
        while !secured.offers_tls().await {
            tokio::task::yield_now().await;
        }
        secured
    }

    /// Returns the URL with other parameters, and the host's name or address.
    fn url(&self, host: &str, parameters: &str) -> String {
        let (before, _) = self.database.url.split_once('?').expect("parameters");
        let number = format!("127.0.0.1:{}", self.cluster.port());
        format!("{}?{parameters}", before.replace(&number, &format!("{host}:{}", self.cluster.port())))
    }

    async fn offers_tls(&self) -> bool {
        PgConnection::connect(&self.url("localhost", "sslmode=require")).await.is_ok()
    }

    fn verified(&self, host: &str) -> String {
        self.url(host, &format!("sslmode=verify-full&sslrootcert={}", self.authority.display()))
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

/// Writes a file that only the server's user can read, as PostgreSQL requires of its key.
fn give(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
    let owner = fs::metadata(folder).expect("the folder");
    chown(&path, Some(owner.uid()), Some(owner.gid())).expect("given");
    path
}

/// Counts the store's connections, and how many of them are encrypted.
async fn connections(database: &PgTestDatabase) -> (i64, i64) {
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    sqlx::query_as(
        "SELECT count(*), count(*) FILTER (WHERE s.ssl)
         FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
         WHERE a.application_name = 'ichido' AND a.datname = current_database()",
    )
    .fetch_one(&mut connection)
    .await
    .expect("counted")
}

#[tokio::test]
async fn every_connection_is_encrypted_and_knows_its_server() {
    let secured = TlsCluster::start().await;
    let store = Store::open(&secured.verified("localhost"), 2).await.expect("opened");
    store.now().await.expect("asked");
    let (all, encrypted) = connections(&secured.database).await;
    assert!(all > 0, "the store is connected");
    assert_eq!(all, encrypted, "each of them speaks TLS");
}

#[tokio::test]
async fn server_with_a_wrong_certificate_is_refused() {
    let secured = TlsCluster::start().await;
    let other_name = Store::open(&secured.verified("127.0.0.1"), 2).await.map(drop);
    assert!(matches!(other_name, Err(StoreError::Unavailable(_))), "{other_name:?}");
    let strangers = secured.url("localhost", "sslmode=verify-full");
    let unknown_signer = Store::open(&strangers, 2).await.map(drop);
    assert!(matches!(unknown_signer, Err(StoreError::Unavailable(_))), "{unknown_signer:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let cluster = Cluster::start(&[]).expect("a server");
    let database = cluster.database().await.expect("a database");
    let required = database.url.replace("sslmode=disable", "sslmode=require");
    let refused = Store::open(&required, 2).await.map(drop);
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}
