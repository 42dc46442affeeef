//! A stream of NATS `JetStream`: read and judged here, connected to when a worker starts.

use ichido::destination::nats::{Credentials, NatsPlan, NatsSettings};
use ichido_core::settings::Faults;

use super::super::document::Section;
use super::super::outside::Outside;

/// Reads what there is of NATS in a destination's section: where it is, for people, and how to connect to it.
pub(super) fn read(
    section: &mut Section<'_>,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> (String, Option<NatsPlan>) {
    let urls = urls(section, outside, faults);
    let subject = subject(section, faults);
    let mut settings = NatsSettings::new(STAND_IN, subject.unwrap_or(STAND_IN));
    settings.urls = urls.unwrap_or(settings.urls);
    settings.credentials = credentials(section, outside, faults);
    let place = section.place("trusted_roots");
    if let Some(path) = section.text("trusted_roots", faults) {
        settings.trusted_roots = faults.check(&place, outside.read(path));
    }
    bounds(section, &mut settings, faults);
    match settings.resolve() {
        Ok(plan) => (format!("{}, {}", plan.servers(), settings.subject), Some(plan)),
        Err(problems) => {
            for problem in problems.0 {
                // The settings have the same names in the file.
                faults.add(section.place_within(&problem.place), problem.what);
            }
            (String::new(), None)
        }
    }
}

/// Stands for what is missing, so that the rest is judged all the same. It was said, and so leads to no configuration.
const STAND_IN: &str = "missing";

fn subject<'a>(section: &mut Section<'a>, faults: &mut Faults) -> Option<&'a str> {
    if !section.has("subject") {
        let place = section.place("subject");
        faults.add(place, "is missing; say what messages are published to: subject = \"orders.placed\"");
    }
    section.text("subject", faults)
}

fn urls(section: &mut Section<'_>, outside: &Outside<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let place = section.place("urls");
    if !section.has("urls") {
        faults.add(&place, "is missing; say where the servers are: urls = [\"nats://host:4222\"]");
    }
    let texts = section.texts("urls", faults)?;
    let count = texts.len();
    let urls: Vec<String> =
        texts.into_iter().filter_map(|text| faults.check(&place, outside.resolve(text))).collect();
    (urls.len() == count).then_some(urls)
}

/// Who we are to the server: nobody in particular, unless it is said.
fn credentials(section: &mut Section<'_>, outside: &Outside<'_>, faults: &mut Faults) -> Option<Credentials> {
    let place = section.place("credentials");
    let mut inside = section.section("credentials", faults)?;
    let user = inside.text("user", faults);
    let mut secret = |name: &'static str| {
        let place = inside.place(name);
        let text = inside.text(name, faults);
        text.and_then(|text| faults.check(&place, outside.secret(text)))
    };
    let [password, token, nkey, creds] = ["password", "token", "nkey", "creds"].map(&mut secret);
    let given = ["user", "password", "token", "nkey", "creds"].map(|name| inside.has(name));
    inside.finish(faults);
    match given {
        [true, true, false, false, false] => {
            let user = faults.check(&place, outside.resolve(user?))?;
            Some(Credentials::Password { user, password: password? })
        }
        [false, false, true, false, false] => token.map(Credentials::Token),
        [false, false, false, true, false] => nkey.map(Credentials::Nkey),
        [false, false, false, false, true] => creds.map(Credentials::Creds),
        _ => {
            faults.add(
                place,
                "says no one way to be let in; write user and password, or token, or nkey, or creds",
            );
            None
        }
    }
}

fn bounds(section: &mut Section<'_>, settings: &mut NatsSettings, faults: &mut Faults) {
    let NatsSettings { connect_time_out, time_out, settles_within, .. } = settings;
    for (name, into) in
        [("connect_time_out", connect_time_out), ("time_out", time_out), ("settles_within", settles_within)]
    {
        if let Some(time) = section.time(name, faults) {
            *into = time;
        }
    }
    // A whole that was shortened shortens the part of which nothing was said.
    if !section.has("connect_time_out") {
        settings.connect_time_out = settings.time_out.min(settings.connect_time_out);
    }
    section.holds_time("connect_time_out", settings.connect_time_out);
    section.holds_time("time_out", settings.time_out);
    section.holds_time("settles_within", settings.settles_within);
}
