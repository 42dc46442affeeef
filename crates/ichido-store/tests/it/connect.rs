//! Opening a store that cannot be opened reports why, in the words of the database.

use std::error::Error as _;
use std::io::ErrorKind;

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::testing::postgres::fresh_database;
use tokio::net::TcpListener;

/// Returns the error of opening this URL.
async fn cause(url: &str) -> sqlx::Error {
    match Store::open(url, 2).await.map(drop) {
        Err(error @ StoreError::Unavailable(_)) => {
            assert!(error.source().is_some(), "the chain goes on");
            let StoreError::Unavailable(cause) = error else { unreachable!("it was one") };
            cause
        }
        other => panic!("{other:?}"),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).map(std::borrow::Cow::into_owned)
}

#[tokio::test]
async fn closed_port_is_reported_as_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its number").port();
    drop(listener);
    let error = cause(&format!("postgres://nobody@127.0.0.1:{port}/nothing")).await;
    assert!(matches!(&error, sqlx::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused), "{error:?}");
}

#[tokio::test]
async fn missing_database_is_reported_as_missing() {
    let database = fresh_database().await;
    let (before, after) = database.url.split_once('?').unwrap_or((&database.url, ""));
    let missing = format!("{before}_missing?{after}");
    assert_eq!(code(&cause(&missing).await).as_deref(), Some("3D000"), "invalid_catalog_name");
}

#[tokio::test]
async fn missing_role_is_reported() {
    let database = fresh_database().await;
    let (scheme, rest) = database.url.split_once("://").expect("a URL");
    let (_, host) = rest.split_once('@').expect("a user");
    let error = cause(&format!("{scheme}://nobody_at_all@{host}")).await;
    assert_eq!(code(&error).as_deref(), Some("28000"), "invalid_authorization_specification: {error:?}");
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_reported_as_timed_out() {
    // The system accepts connections, and nobody ever reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let error = cause(&format!("postgres://nobody@127.0.0.1:{port}/nothing?sslmode=disable")).await;
    assert!(matches!(&error, sqlx::Error::Io(io) if io.kind() == ErrorKind::TimedOut), "{error:?}");
}
