//! Finds or installs the tools that tests need beyond Rust, or says what to install.
//!
//! Guarantee: if [`ensure`] succeeds, everything that the tests call exists. PostgreSQL, nats-server, curl, Node, npm,
//! chromium and strace are installed only as root on Debian, which is usually a container; on any other machine nothing
//! is changed, and the error says what to install. Nothing here starts a server.

mod chromium;
mod curl;
mod debian;
pub(crate) mod deny;
mod nats;
pub(crate) mod node;
mod postgres;
mod program;
pub(crate) mod schemathesis;
mod strace;
pub(crate) mod venv;

use std::path::Path;

/// Ensures that every tool exists, and prints which ones it found.
pub fn ensure(root: &Path) -> Result<(), String> {
    let postgres = postgres::ensure(root)?;
    println!("PostgreSQL {} in {}", postgres.major, postgres.folder.display());
    println!("nats-server {}", nats::NATS.ensure(root)?);
    println!("curl {}", curl::CURL.ensure(root)?);
    println!("node {}", node::NODE.ensure(root)?);
    println!("npm {}", node::NPM.ensure(root)?);
    println!("chromium {}", chromium::CHROMIUM.ensure(root)?);
    match chromium::SHELL.ensure(root) {
        Ok(version) => println!("chromium-headless-shell {version}"),
        Err(advice) => println!("{advice}"),
    }
    node::ensure_packages(root, node::FOLDER)?;
    node::ensure_packages(root, node::OPENAPI_FOLDER)?;
    // Other systems do not have it, and the tests that use it are not built there.
    if cfg!(target_os = "linux") {
        println!("strace {}", strace::STRACE.ensure(root)?);
    }
    schemathesis::ensure(root).map(drop)
}
