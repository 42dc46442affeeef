//! What the tests need beyond Rust: found, or installed, or asked for.
//!
//! Guarantee: when [`ensure`] succeeds, everything that the tests call is there. PostgreSQL, nats-server, curl, Node, npm, chromium and strace are
//! installed only as root on Debian, where a container is the usual case; anyone else's machine is left alone and told
//! what to install. Nothing here starts a server.

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

use std::path::Path;

/// Makes sure of every tool and says which ones it found.
pub fn ensure(root: &Path) -> Result<(), String> {
    let postgres = postgres::ensure(root)?;
    println!("PostgreSQL {} in {}", postgres.major, postgres.folder.display());
    println!("nats-server {}", nats::NATS.ensure(root)?);
    println!("curl {}", curl::CURL.ensure(root)?);
    println!("node {}", node::NODE.ensure(root)?);
    println!("npm {}", node::NPM.ensure(root)?);
    println!("chromium {}", chromium::CHROMIUM.ensure(root)?);
    node::ensure_packages(root, node::FOLDER)?;
    node::ensure_packages(root, node::OPENAPI_FOLDER)?;
    // Elsewhere there is no such thing, and the tests that use it are not built.
    if cfg!(target_os = "linux") {
        println!("strace {}", strace::STRACE.ensure(root)?);
    }
    schemathesis::ensure(root).map(drop)
}
