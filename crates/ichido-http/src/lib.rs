//! HTTP code that every Ichido crate shares.
//!
//! Guarantee: the client writes a request once. It resends a request only if the connection returns it whole, with no
//! byte written. The server rejects bytes with ambiguous framing and limits what each peer can hold.
//!
//! Start at [`client::HttpClient`] and [`server::serve`]. [`guard`] lists the addresses that need explicit
//! permission, and [`trust`] loads the TLS root certificates.

pub mod client;
pub mod clock;
pub mod guard;
pub mod problem;
pub mod server;
pub mod signals;
pub mod signature;
pub mod small_file;
pub mod trust;
pub mod url;
