//! A local server that imitates three providers of language models over plain HTTP.
//!
//! It speaks Bedrock's Converse, OpenAI's chat completions and Anthropic's messages.
//!
//! Guarantee: a request is first checked as strictly as the provider documents it. An error is returned in the
//! provider's own format and listed in [`SeenRequests::format_faults`]. A [`Script`] defines the behaviour, and the
//! same script with the same calls behaves the same. It knows nothing of the crates it tests.
//!
//! In a test, [`start`] it; it ends when the [`Fake`] is dropped. The binary `fake-llm` runs it as a process, which
//! takes a script with `--script FILE` or `POST /_script` and reports what it saw with `GET /_seen`. Start at
//! [`script`], then read [`seen`].
//!
//! ```
//! let script = br#"{
//!     "latency": {"uniform_ms": {"least": 5, "most": 20, "seed": 7}},
//!     "limits": [
//!         {"rate": {"bucket": {"calls": 50, "per_ms": 1000, "burst": 5}}},
//!         {"rate": {"tokens": {"tokens": 90000, "per_ms": 60000}}, "endpoint": "/east", "hint": false}
//!     ],
//!     "rules": [
//!         {"do": {"fail": "throttle"}, "first_per_item": 2, "retry_after": {"ms": 250}},
//!         {"do": {"fail": {"model_error": 429}}, "api": "bedrock", "item": "a", "first": 1},
//!         {"do": {"answer": "cut_off"}, "item": "b"},
//!         {"do": {"say": "no JSON at all"}, "item": "c", "latency": {"fixed_ms": 500}},
//!         {"do": "drop_completed", "item": "d", "first": 1}
//!     ]
//! }"#;
//! let fake = fake_llm::start(fake_llm::Script::parse(script)?);
//! let chat = format!("{}/east/v1/chat/completions", fake.url());
//! assert!(fake.seen().format_faults.is_empty());
//! # Ok::<(), fake_llm::script::ScriptError>(())
//! ```

pub mod action;
mod answer;
mod anthropic;
pub mod api;
mod ask;
mod bedrock;
mod clock;
mod limiter;
mod openai;
pub mod pace;
mod play;
mod reply;
mod schema;
pub mod script;
pub mod seen;
mod server;
mod wire;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use script::Script;
pub use seen::SeenRequests;

use server::ServerShared;

/// A server that runs on its own thread until this is dropped.
///
/// The thread has its own runtime and clock: a test that pauses its clock does not pause the server's.
#[derive(Debug)]
pub struct Fake {
    address: SocketAddr,
    shared: Arc<ServerShared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a server on a free port of this machine.
///
/// # Panics
/// If no port or thread is available, which should end a test.
pub fn start(script: Script) -> Fake {
    start_at((Ipv4Addr::LOCALHOST, 0).into(), script).expect("a port and a thread for the server")
}

/// Starts a server at an address.
pub fn start_at(address: SocketAddr, script: Script) -> io::Result<Fake> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = {
        // The start is on the server's own clock, whatever the caller does to its clock.
        let _inside = runtime.enter();
        Arc::new(ServerShared::new(script))
    };
    let (stop, stopped) = oneshot::channel();
    let served = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("fake-llm".to_owned())
        .spawn(move || runtime.block_on(server::serve(listener, served, stopped)))?;
    Ok(Fake { address, shared, stop: Some(stop), thread: Some(thread) })
}

impl Fake {
    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns what it has seen so far.
    pub fn seen(&self) -> SeenRequests {
        self.shared.seen()
    }

    /// Plays another script from its beginning. What was seen is kept.
    pub fn script(&self, script: Script) {
        self.shared.script(script);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
