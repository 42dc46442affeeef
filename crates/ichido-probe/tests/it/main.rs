//! The probe against a service that can be broken in every way, and its pages.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod controls;
mod hostile;
mod pages;
mod replay;
mod service;
mod switches;
