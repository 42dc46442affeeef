//! Tests the HTTP destination against misbehaving receivers, over real sockets and real TLS.
// Spec: D7 to D10, D18, F2.

mod answers;
mod ask;
mod faults;
mod kept;
mod link_local;
mod redirects;
mod request;
mod settings;
mod tls;
mod tried;
