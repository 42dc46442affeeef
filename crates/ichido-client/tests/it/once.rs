//! Tests the client against real servers that fail at the byte level.
//!
//! The server counts the effects.

mod budget;
mod done_once;
mod giving_up;
mod hops;
mod profiles;
mod reads;
mod refusals;
mod tls;
mod unkeyed;
mod wire;
