//! The client against real servers that misbehave on the bytes of the connection; the effects are counted at the far side.

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
