//! A receiver that is called over HTTP, and the broker of paper, which is one with its settings known.

use std::time::Duration;

use ichido::destination::Destination;
use ichido::destination::http::{
    ANSWER_BYTES_MAX, AnswerRule, Found, FoundRule, HttpSettings, Meaning, ReconcileSettings,
};
use ichido_core::retry::Guarantee;
use ichido_core::settings::Faults;
use ichido_core::settings::size;

use super::super::document::Section;
use super::super::outside::Outside;
use crate::redacted::origin;

/// Where `ichido paper` listens by itself.
const PAPER_URL: &str = "http://127.0.0.1:8090/orders";
/// How long a broker of paper remembers a key at least; it never forgets one.
const PAPER_KEEPS_FOR: Duration = Duration::from_hours(365 * 24);
/// How long a call may still be on its way to a broker on this machine.
const PAPER_SETTLES_WITHIN: Duration = Duration::from_secs(1);
/// Names of header fields whose values are secrets, if a part of the name is one of these.
const SECRET_PARTS: [&str; 7] =
    ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey"];

/// What an answer means, as the file names it.
const MEANINGS: [(&str, Meaning); 8] = [
    ("sent", Meaning::Sent),
    ("processed", Meaning::Processed),
    ("in_progress", Meaning::InProgress),
    ("rate_limited", Meaning::RateLimited),
    ("not_done", Meaning::NotDone),
    ("failed", Meaning::Failed),
    ("bad_request", Meaning::BadRequest),
    ("unauthorized", Meaning::Unauthorized),
];
/// What an answer to a question means.
const FINDINGS: [(&str, Found); 3] =
    [("done", Found::Done), ("not_done", Found::NotDone), ("unknown", Found::Unknown)];

/// Reads what there is of HTTP in a destination's section: where it is, for people, and the destination.
pub(super) fn read(
    section: &mut Section<'_>,
    is_paper: bool,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> (String, Option<Destination>) {
    let url = url(section, is_paper, outside, faults);
    let known = url.clone().unwrap_or_else(|| PAPER_URL.to_owned());
    let mut settings = if is_paper { paper(&known) } else { HttpSettings::new(known) };
    headers(section, &mut settings, outside, faults);
    let secrets = secrets(section, &mut settings, outside, faults);
    bounds(section, &mut settings, faults);
    guarantee(section, &mut settings, faults);
    answers(section, &mut settings, faults);
    reconcile(section, &mut settings, outside, faults);
    hold(section, &settings, is_paper);
    match settings.resolve() {
        _ if url.is_none() => (String::new(), None),
        Ok(http) => (origin(&settings.url).to_owned(), Some(http.into())),
        Err(problems) => {
            for problem in problems.0 {
                let path = in_file(&problem.place, &settings, &secrets);
                faults.add(section.place_within(&path), problem.what);
            }
            (String::new(), None)
        }
    }
}

/// The broker of paper as it answers (SPEC D18).
fn paper(url: &str) -> HttpSettings {
    let conflict = |error: &str, means| AnswerRule {
        status: "409".to_owned(),
        at: Some(("/error".to_owned(), error.to_owned())),
        means,
    };
    let found = |status: &str, at: (&str, &str), means| FoundRule {
        status: status.to_owned(),
        at: Some((at.0.to_owned(), at.1.to_owned())),
        means,
    };
    HttpSettings {
        guarantee: Guarantee::HonoursKeys { keeps_for: PAPER_KEEPS_FOR },
        settles_within: PAPER_SETTLES_WITHIN,
        echoes_key: true,
        receipt_pointer: Some("/broker_order_id".to_owned()),
        rules: vec![
            conflict("already_processed", Meaning::Processed),
            conflict("in_progress", Meaning::InProgress),
        ],
        reconcile: Some(ReconcileSettings {
            url: format!("{}/orders/by-key/{{key}}", origin(url)),
            rules: vec![
                found("200", ("/status", "accepted"), Found::Done),
                found("404", ("/error", "no_such_order"), Found::NotDone),
            ],
        }),
        ..HttpSettings::new(url)
    }
}

/// Tells what holds where the file says nothing.
fn hold(section: &Section<'_>, settings: &HttpSettings, is_paper: bool) {
    for (name, time) in [
        ("connect_time_out", settings.connect_time_out),
        ("answer_time_out", settings.answer_time_out),
        ("total_time_out", settings.total_time_out),
        ("settles_within", settings.settles_within),
    ] {
        section.holds_time(name, time);
    }
    section.holds("answer_bytes_max", format_args!("{:?}", size::shown(settings.answer_bytes_max as u64)));
    let keeps_for = match settings.guarantee {
        Guarantee::HonoursKeys { keeps_for } => Some(keeps_for),
        Guarantee::Repeatable | Guarantee::Nothing => None,
    };
    section.holds("honours_key", keeps_for.is_some());
    if let Some(keeps_for) = keeps_for {
        section.holds_time("keeps_keys_for", keeps_for);
    }
    section.holds("repeatable", settings.guarantee == Guarantee::Repeatable);
    section.holds("echoes_key", settings.echoes_key);
    section.holds("key_pointer", format_args!("{:?}", settings.key_pointer));
    section.holds("allow_link_local", "[]");
    if is_paper {
        // What somebody says is shown in its place; what is known of a broker of paper is no secret.
        section.holds("url", format_args!("{PAPER_URL:?}"));
        section.holds(
            "receipt_pointer",
            format_args!("{:?}", settings.receipt_pointer.as_deref().unwrap_or_default()),
        );
        section.holds(
            "rules",
            written(settings.rules.iter().map(|rule| (&rule.status, &rule.at, word(&MEANINGS, rule.means)))),
        );
        if let Some(ReconcileSettings { url, rules }) = &settings.reconcile {
            let rules =
                written(rules.iter().map(|rule| (&rule.status, &rule.at, word(&FINDINGS, rule.means))));
            section.holds("reconcile", format_args!("{{ url = {url:?}, rules = {rules} }}"));
        }
    }
}

/// What a meaning is called in the file.
fn word<M: Copy + PartialEq, const N: usize>(words: &[(&'static str, M); N], means: M) -> &'static str {
    words.iter().find(|(_, known)| *known == means).map_or("", |(word, _)| *word)
}

/// Rules as TOML.
fn written<'a>(
    rules: impl Iterator<Item = (&'a String, &'a Option<(String, String)>, &'static str)>,
) -> String {
    let rules = rules.map(|(status, at, means)| {
        let at = at.as_ref().map(|(at, is)| format!("at = {at:?}, is = {is:?}, ")).unwrap_or_default();
        format!("{{ status = {status:?}, {at}means = {means:?} }}")
    });
    format!("[{}]", rules.collect::<Vec<_>>().join(", "))
}

fn url(
    section: &mut Section<'_>,
    is_paper: bool,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> Option<String> {
    if !section.has("url") {
        section.get("url");
        if is_paper {
            return Some(PAPER_URL.to_owned());
        }
        faults.add(section.place("url"), "is missing; say where messages are posted to: url = \"https://…\"");
        return None;
    }
    let text = section.text("url", faults)?;
    let place = section.place("url");
    faults.check(&place, outside.resolve(text))
}

fn headers(
    section: &mut Section<'_>,
    settings: &mut HttpSettings,
    outside: &Outside<'_>,
    faults: &mut Faults,
) {
    let Some(fields) = section.section("headers", faults) else { return };
    for (name, value) in fields.chosen() {
        let place = fields.place(name);
        let Some(text) = value.as_str() else {
            faults.add(place, format!("is {}; write a text in quotes, or \"env:NAME\"", value.kind()));
            continue;
        };
        let lower = name.to_lowercase();
        let is_secret = SECRET_PARTS.iter().any(|part| lower.contains(part));
        let resolved = if is_secret { outside.secret(text) } else { outside.resolve(text) };
        if let Some(value) = faults.check(&place, resolved) {
            settings.headers.push((name.to_owned(), value));
        }
    }
}

/// Reads what is secret; of each secret that calls are signed with, which one it is in the file.
fn secrets(
    section: &mut Section<'_>,
    settings: &mut HttpSettings,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> Vec<usize> {
    let mut indexes = Vec::new();
    let references = section.texts("signing_secrets", faults).unwrap_or_default();
    for (index, reference) in references.into_iter().enumerate() {
        let place = section.place_within(&format!("signing_secrets[{index}]"));
        if let Some(secret) = faults.check(&place, outside.secret(reference)) {
            settings.signing_secrets.push(secret);
            indexes.push(index);
        }
    }
    let place = section.place("trusted_roots");
    if let Some(path) = section.text("trusted_roots", faults) {
        settings.trusted_roots = faults.check(&place, outside.read(path));
    }
    let hosts = section.texts("allow_link_local", faults).unwrap_or_default();
    settings.allow_link_local = hosts.into_iter().map(str::to_owned).collect();
    indexes
}

/// Where a setting stands in the file: mostly under the same name.
fn in_file(place: &str, settings: &HttpSettings, secrets: &[usize]) -> String {
    let index = |name: &str| {
        let index: usize = place.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
        Some(index)
    };
    // In the file header fields have names, and what could not be referred to is counted with the rest.
    if let Some((name, _)) = index("headers").and_then(|index| settings.headers.get(index)) {
        format!("headers.{name}")
    } else if let Some(index) = index("signing_secrets").and_then(|index| secrets.get(index)) {
        format!("signing_secrets[{index}]")
    } else if place == "guarantee" {
        "keeps_keys_for".to_owned()
    } else {
        place.to_owned()
    }
}

fn bounds(section: &mut Section<'_>, settings: &mut HttpSettings, faults: &mut Faults) {
    let HttpSettings { connect_time_out, answer_time_out, total_time_out, settles_within, .. } = settings;
    for (name, into) in [
        ("connect_time_out", connect_time_out),
        ("answer_time_out", answer_time_out),
        ("total_time_out", total_time_out),
        ("settles_within", settles_within),
    ] {
        if let Some(time) = section.time(name, faults) {
            *into = time;
        }
    }
    // A total that was shortened shortens the parts of which nothing was said.
    let total = settings.total_time_out;
    for (name, part) in [
        ("connect_time_out", &mut settings.connect_time_out),
        ("answer_time_out", &mut settings.answer_time_out),
    ] {
        if !section.has(name) {
            *part = total.min(*part);
        }
    }
    let bytes = section.size("answer_bytes_max", 1..=ANSWER_BYTES_MAX, faults);
    settings.answer_bytes_max = bytes.unwrap_or(settings.answer_bytes_max);
}

/// What it promises about repetitions (SPEC F2): nothing, unless it is said.
fn guarantee(section: &mut Section<'_>, settings: &mut HttpSettings, faults: &mut Faults) {
    let honours = section.flag("honours_key", faults);
    let keeps_for = section.time("keeps_keys_for", faults);
    let repeatable = section.flag("repeatable", faults);
    let before = match settings.guarantee {
        Guarantee::HonoursKeys { keeps_for } => Some(keeps_for),
        Guarantee::Repeatable | Guarantee::Nothing => None,
    };
    let honours_key = honours.unwrap_or(before.is_some() && repeatable != Some(true));
    settings.guarantee = match (honours_key, keeps_for.or(before), repeatable) {
        (true, _, Some(true)) => {
            faults.add(
                section.place("repeatable"),
                "is true beside honours_key = true; say one: a key stops a second effect, or a second effect does no harm",
            );
            return;
        }
        (true, Some(keeps_for), _) => Guarantee::HonoursKeys { keeps_for },
        (true, None, _) => {
            if !section.has("keeps_keys_for") {
                faults.add(
                    section.place("keeps_keys_for"),
                    "is missing beside honours_key = true; say how long the receiver remembers a key, such as \"24h\"",
                );
            }
            return;
        }
        (false, _, _) if section.has("keeps_keys_for") => {
            faults.add(
                section.place("keeps_keys_for"),
                "says how long keys are kept, and honours_key = true is missing; say it, or take this out",
            );
            return;
        }
        (false, _, Some(true)) => Guarantee::Repeatable,
        (false, _, _) => Guarantee::Nothing,
    };
}

fn answers(section: &mut Section<'_>, settings: &mut HttpSettings, faults: &mut Faults) {
    if let Some(echoes) = section.flag("echoes_key", faults) {
        settings.echoes_key = echoes;
    }
    if let Some(pointer) = section.text("key_pointer", faults) {
        pointer.clone_into(&mut settings.key_pointer);
    }
    if let Some(pointer) = section.text("receipt_pointer", faults) {
        settings.receipt_pointer = Some(pointer.to_owned());
    }
    if let Some(rows) = section.rows("rules", faults) {
        let rules = rows.into_iter().map(|row| rule(row, &MEANINGS, faults));
        settings.rules = rules.map(|(status, at, means)| AnswerRule { status, at, means }).collect();
    }
}

fn reconcile(
    section: &mut Section<'_>,
    settings: &mut HttpSettings,
    outside: &Outside<'_>,
    faults: &mut Faults,
) {
    let Some(mut inside) = section.section("reconcile", faults) else { return };
    let place = inside.place("url");
    let url = inside.text("url", faults).and_then(|text| faults.check(&place, outside.resolve(text)));
    let rows = inside.rows("rules", faults).unwrap_or_default();
    let rules = rows.into_iter().map(|row| rule(row, &FINDINGS, faults));
    let rules = rules.map(|(status, at, means)| FoundRule { status, at, means }).collect();
    match url {
        Some(url) => settings.reconcile = Some(ReconcileSettings { url, rules }),
        None if inside.has("url") => {}
        None => faults.add(place, "is missing; say whom to ask, with {key} where the key goes"),
    }
    inside.finish(faults);
}

/// Stands for a status that is missing.
const STATUS_STAND_IN: &str = "200";

/// One rule: status, pointer with its text, and what it means.
type Rule<M> = (String, Option<(String, String)>, M);

/// Reads a rule. What is wrong with it was said, and something stands for it, so that the others keep their numbers.
fn rule<M: Copy, const N: usize>(
    mut row: Section<'_>,
    meanings: &[(&'static str, M); N],
    faults: &mut Faults,
) -> Rule<M> {
    let status = match row.text("status", faults) {
        None if !row.has("status") => {
            faults
                .add(row.place("status"), "is missing; write one, or two with a dash: \"409\", \"520-527\"");
            None
        }
        status => status,
    };
    let at = match (row.text("at", faults), row.text("is", faults)) {
        (Some(at), Some(is)) => Some((at.to_owned(), is.to_owned())),
        (None, None) => None,
        _ => {
            faults.add(
                row.own_place(),
                "at and is belong together: where in the answer's JSON, and what must be there",
            );
            None
        }
    };
    let means = row.needed_word("means", meanings, faults);
    row.finish(faults);
    (status.unwrap_or(STATUS_STAND_IN).to_owned(), at, means.unwrap_or(meanings[0].1))
}
