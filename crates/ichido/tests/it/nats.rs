//! Tests the NATS destination against real servers and misbehaving networks.
//!
//! Each test starts its own servers, in temporary folders and on free loopback ports, or publishes to the one that the run
//! shares. Other servers on the machine are left alone.
// Spec: D7 to D10, F2.

mod credentials;
mod faults;
mod proxy;
mod publish;
mod settings;
mod start;
mod tried;
mod working;
