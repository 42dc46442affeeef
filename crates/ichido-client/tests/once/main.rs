//! The client against real servers that misbehave on the bytes of the connection; the effects are counted at the far side.

mod done_once;
mod giving_up;
mod reads;
mod refusals;
mod server;
mod tls;
mod wire;
