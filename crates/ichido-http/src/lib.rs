//! The parts that every HTTP side of Ichido shares.
//!
//! Guarantee: the client writes a request once, and resends it only if the connection returns it whole, with not a byte written. A server
//! refuses bytes whose framing is in doubt, and no peer can hold more than its share.
//!
//! Start at [`client::HttpClient`] and [`server::serve`]. [`guard`] knows the addresses that are not called unless the configuration allows it, and [`trust`]
//! reads the certificates that TLS trusts.

pub mod client;
pub mod clock;
pub mod guard;
pub mod problem;
pub mod server;
pub mod signals;
pub mod trust;
pub mod url;
