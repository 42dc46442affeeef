//! Tests of the server over real connections.

mod answers;
mod client;
mod faults;
mod format;
mod limits;
mod process;
