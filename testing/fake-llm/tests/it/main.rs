//! What the server says, heard over real connections.

mod answers;
mod client;
mod faults;
mod format;
mod limits;
mod process;
