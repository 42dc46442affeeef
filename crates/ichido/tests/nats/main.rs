//! The NATS destination against real servers, and against networks that misbehave (SPEC D7 to D10, F2).
//!
//! Each test starts servers of its own, in temporary folders and on free ports of the loopback; one that runs on the machine anyway is
//! left alone.

#[path = "../worker/fixture.rs"]
#[allow(
    dead_code,
    unused_macros,
    clippy::unwrap_used,
    reason = "what the other suite needs of it, as it is written there"
)]
mod fixture;

mod credentials;
mod faults;
mod proxy;
mod publish;
mod server;
mod settings;
mod start;
mod tried;
mod working;
