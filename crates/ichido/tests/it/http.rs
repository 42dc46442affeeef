//! The HTTP destination against receivers that misbehave, over real sockets and real TLS (SPEC D7 to D10, D18, F2).

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
