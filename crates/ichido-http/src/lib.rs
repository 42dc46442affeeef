//! The parts that every HTTP side of Ichido shares.
//!
//! Guarantee: a request is written once. The client resends it only if the connection returns it whole, with not a byte written.
//!
//! Start at [`client::HttpClient`]. [`guard`] knows the addresses that are not called unless the configuration allows it, and [`trust`]
//! reads the certificates that TLS trusts.

pub mod client;
pub mod guard;
pub mod trust;
pub mod url;
