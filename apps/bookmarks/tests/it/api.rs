//! The service from outside: over a real socket, on each database. Nothing sleeps: a case waits for a condition or
//! moves the store's clock.

mod alerts;
mod fixture;
mod jobs;
mod letters;
mod listing;
mod members;
mod models;
mod pages;
mod people;
mod probe;
mod program;
mod removal;
mod retries;
mod same_url;
mod saving;
mod shortcut;
mod signs;
mod stats;
mod tls;
mod transfer;
