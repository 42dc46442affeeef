//! The real SDK against servers on this machine: one that plays Bedrock and checks what it is asked, and one that says just what a case gives it.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod answers;
mod environment;
mod fixture;
mod forms;
mod logs;
mod lost;
mod raw;
mod refusals;
mod regions;
mod settings;
