//! What the server says, heard over real connections.

mod answers;
mod client;
mod faults;
