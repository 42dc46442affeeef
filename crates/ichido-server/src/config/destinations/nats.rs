//! NATS `JetStream` destinations: validated here, connected when a worker starts.

use ichido::destination::nats::{Credentials, NatsPlan, NatsSettings};

use super::super::document::Section;
use super::PLACEHOLDER;

/// Reads a NATS destination: its address for display, and how to connect to it.
pub(super) fn read(section: &Section<'_>) -> Option<(String, NatsPlan)> {
    let placeholder = || PLACEHOLDER.to_owned();
    let settings = NatsSettings {
        urls: section.all_resolved("urls").unwrap_or_else(|| vec![placeholder()]),
        credentials: section.section("credentials").and_then(|inside| credentials(section, &inside)),
        trusted_roots: section.resolved("trusted_roots"),
        connect_timeout: section.get_or_default("connect_timeout"),
        timeout: section.get_or_default("timeout"),
        settle_grace: section.get_or_default("settle_grace"),
        ..NatsSettings::new(PLACEHOLDER, section.get("subject").unwrap_or_else(placeholder))
    };
    let plan = settings.resolve().map_err(|faults| section.report_all(faults)).ok()?;
    Some((format!("{}, {}", plan.servers(), settings.subject), plan))
}

/// Reads the credentials for the server.
fn credentials(section: &Section<'_>, inside: &Section<'_>) -> Option<Credentials> {
    let [password, token, nkey, creds] =
        ["password", "token", "nkey", "creds"].map(|name| inside.resolved(name));
    match ["user", "password", "token", "nkey", "creds"].map(|name| inside.has(name)) {
        [true, true, false, false, false] => {
            Some(Credentials::Password { user: inside.resolved("user")?, password: password? })
        }
        [false, false, true, false, false] => token.map(Credentials::Token),
        [false, false, false, true, false] => nkey.map(Credentials::Nkey),
        [false, false, false, false, true] => creds.map(Credentials::Creds),
        _ => {
            section.report(
                "credentials",
                "must set exactly one kind of credentials: user and password, or token, or nkey, or creds",
            );
            None
        }
    }
}
