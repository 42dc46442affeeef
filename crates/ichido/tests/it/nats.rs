//! The NATS destination against real servers, and against networks that misbehave (SPEC D7 to D10, F2).
//!
//! Each test starts servers of its own, in temporary folders and on free ports of the loopback, or publishes to the one that the run
//! shares; another that runs on the machine is left alone.

mod credentials;
mod faults;
mod proxy;
mod publish;
mod settings;
mod start;
mod tried;
mod working;
