//! Boundary files, chapter by chapter: what loads, what is refused and where.

mod dialect;
mod evading;
mod examples;
mod guarantees;
mod judging;
mod loading;
mod loosening;
mod published;
mod refusing;
mod reports;
mod set;
mod team;

use ichido_boundary::Boundary;

/// Reads a file that is known to be valid.
#[track_caller]
fn read(text: &str) -> Boundary {
    Boundary::read("test.json", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Three files as teams write them today, with members that only they use.
fn wild() -> [Boundary; 3] {
    [
        read(include_str!("wild/browser_to_bff.json")),
        read(include_str!("wild/bff_to_gateway.json")),
        read(include_str!("wild/gateway_to_adapter.json")),
    ]
}
