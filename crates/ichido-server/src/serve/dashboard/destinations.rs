//! The pages of destinations: how fast they are called, what stops them, and how to change it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{Method, StatusCode, Uri};
use ichido_core::series::SeriesSubject;
use ichido_core::text::percent_encoded;
use ichido_http::clock;

use super::super::destinations::{Destination, Destinations};
use super::super::problem::{Code, Problem};
use super::super::request::query_pairs;
use super::chart_data::RATE_WINDOW;
use super::chart_texts::Texts;
use super::charts::{ChartSubject, Charts, LinkedNumber, shown_count};
use super::message::Notice;
use super::message_texts::Fact;
use super::overview::chart_range;
use super::queue::{put_number, set_by};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::sign_in::{check_names, read_form};
use super::texts::fill;
use super::{Dashboard, see_other};

#[derive(Template)]
#[template(path = "destinations.html")]
struct DestinationsPage {
    shell: Shell,
    ct: &'static Texts,
    rows: Vec<DestinationRow>,
    /// Over which time the calls are counted.
    counted: String,
}

#[derive(Template)]
#[template(path = "destination.html")]
struct DestinationPage {
    shell: Shell,
    ct: &'static Texts,
    row: DestinationRow,
    notice: Option<Notice>,
    facts: Vec<Fact>,
    charts: Charts,
    can_act: bool,
    /// Whether an operator paused it, or it asked for a pause.
    is_paused: bool,
    /// What a resume does.
    resume_effect: &'static str,
    /// What the form begins with.
    rate: String,
}

/// A destination in a table.
struct DestinationRow {
    name: String,
    /// The path of its page.
    href: String,
    mark: &'static str,
    class: &'static str,
    condition: &'static str,
    note: Option<String>,
    pace: String,
    concurrency: String,
    queues: Vec<String>,
    /// Names and numbers; each leads to the destination's charts, unless it is 0.
    counts: Vec<(&'static str, LinkedNumber)>,
}

/// Lists the destinations.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, PageRefusal> {
    let ct = visitor.charts();
    let found: Destinations = dashboard.read(visitor.caller()?, "/v1/destinations").await?;
    let recent = dashboard.charts.recent(&dashboard.api).await?;
    let row = |destination: &Destination| {
        let counts = recent.get(&SeriesSubject::Destination(destination.name.clone()));
        let counts = counts.map_or((0, 0), |counts| (counts.executed, counts.throttled));
        row(&visitor, destination, counts)
    };
    let mut shell = dashboard.shell(&visitor, ct.destinations);
    shell.live = Some("/live".to_owned());
    let minutes = (RATE_WINDOW.as_secs() / 60).to_string();
    let counted = fill(ct.counted_within, &[("minutes", &minutes)]);
    let page = DestinationsPage { shell, ct, rows: found.destinations.iter().map(row).collect(), counted };
    Ok(html(StatusCode::OK, &page))
}

/// Shows a destination.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let ct = visitor.charts();
    let query = query_pairs(&uri)?;
    let did = query.iter().find(|(name, _)| name == "did").map(|(_, did)| did.as_str());
    // Somebody else may have changed it since; the address stays.
    let notice = |destination: &Destination| {
        let is_paused = destination.paused || destination.paused_until.is_some();
        let text = match did? {
            "pace" => ct.did_pace,
            "pause" if destination.paused => ct.did_pause_destination,
            "resume" if !is_paused => ct.did_resume_destination,
            _ => return None,
        };
        Some(Notice { class: "ok", text: text.to_owned() })
    };
    page(&dashboard, &visitor, &name, &uri, StatusCode::OK, notice).await
}

/// Sets the maximum rate of calls.
pub(super) async fn set_pace(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let (uri, target) = (request.uri().clone(), format!("/v1/destinations/{}/pace", segment(&name)));
    match put_number(&dashboard, &visitor, request, "rate", &target, parse_rate).await? {
        None => Ok(see_other(&dashboard.base, &format!("{}?did=pace", path_of(&name)))),
        notice => page(&dashboard, &visitor, &name, &uri, StatusCode::UNPROCESSABLE_ENTITY, |_| notice).await,
    }
}

/// Stops all calls.
pub(super) async fn pause(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    act(&dashboard, &visitor, &name, "pause", request).await
}

/// Ends a pause.
pub(super) async fn resume(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    act(&dashboard, &visitor, &name, "resume", request).await
}

async fn act(
    dashboard: &Dashboard,
    visitor: &Visitor,
    name: &str,
    action: &'static str,
    request: Request,
) -> Result<Response, PageRefusal> {
    let (head, body) = request.into_parts();
    // A pause has no end, so one that was asked for is not ignored.
    read_form(&head.headers, body).await?.check(visitor.t(), &[])?;
    check_names(visitor.t(), &query_pairs(&head.uri)?, &[])?;
    let target = format!("/v1/destinations/{}/{action}", segment(name));
    dashboard.call(visitor.caller()?, Method::POST, &target, String::new()).await?;
    Ok(see_other(&dashboard.base, &format!("{}?did={action}", path_of(name))))
}

async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    name: &str,
    uri: &Uri,
    status: StatusCode,
    notice: impl FnOnce(&Destination) -> Option<Notice>,
) -> Result<Response, PageRefusal> {
    let found: Destinations = dashboard.read(visitor.caller()?, "/v1/destinations").await?;
    let destination =
        found.destinations.into_iter().find(|destination| destination.name == name).ok_or_else(|| {
            Problem::new(Code::DestinationUnknown, "the destination is not in this server's configuration")
        })?;
    let range = chart_range(uri)?;
    let (subject, now) = (SeriesSubject::Destination(name.to_owned()), dashboard.sampler.now(clock::now()));
    let series = dashboard.charts.series(&dashboard.api, &subject, range, now).await?;
    let (ct, path) = (visitor.charts(), path_of(name));
    let mut shell = dashboard.shell(visitor, name);
    shell.live = Some("/live".to_owned());
    shell.here.clone_from(&path);
    let asked = destination.paused_until.is_some();
    let page = DestinationPage {
        ct,
        row: row(visitor, &destination, (series.total.executed, series.total.throttled)),
        notice: notice(&destination),
        facts: facts(visitor, &destination),
        charts: Charts::new(ct, ChartSubject::Destination, range, &path, &series),
        can_act: visitor.can_act(),
        is_paused: asked || destination.paused,
        resume_effect: if asked { ct.end_pause_effect } else { ct.resume_effect },
        rate: destination.rate_set.or(destination.rate_configured).map_or_else(String::new, shown_rate),
        shell,
    };
    Ok(html(status, &page))
}

fn row(visitor: &Visitor, destination: &Destination, (calls, throttled): (u64, u64)) -> DestinationRow {
    let ct = visitor.charts();
    let when = |at: &Option<String>| at.as_deref().map_or_else(String::new, |at| visitor.time(at).short);
    let (mark, class, condition) = match destination.circuit.as_str() {
        _ if destination.paused || destination.paused_until.is_some() => ("pause", "warn", ct.waits),
        "open" => ("down", "bad", ct.down),
        "half_open" => ("half", "warn", ct.probing),
        _ if destination.slowed => ("half", "warn", ct.slow),
        _ if calls == 0 => ("idle", "quiet", ct.quiet),
        _ => ("go", "good", ct.up),
    };
    let note = match (destination.paused, &destination.paused_until) {
        (true, _) => {
            let who = destination.paused_by.as_deref().unwrap_or(visitor.t().a_person);
            let when = when(&destination.paused_at);
            Some(fill(visitor.t().paused_by, &[("who", who), ("when", &when)]))
        }
        (false, Some(_)) => Some(fill(ct.asked_pause, &[("until", &when(&destination.paused_until))])),
        (false, None) => None,
    };
    let number = |count| LinkedNumber {
        text: shown_count(count),
        href: (0 < count).then(|| path_of(&destination.name)),
    };
    DestinationRow {
        name: destination.name.clone(),
        href: path_of(&destination.name),
        mark,
        class,
        condition,
        note,
        pace: shown_pace(ct, destination.rate),
        concurrency: shown_concurrency(ct, destination.max_parallel),
        queues: destination.queues.clone(),
        counts: vec![(ct.calls, number(calls)), (ct.throttled, number(throttled))],
    }
}

fn facts(visitor: &Visitor, destination: &Destination) -> Vec<Fact> {
    let ct = visitor.charts();
    let when = |at: &Option<String>| at.as_deref().map_or_else(String::new, |at| visitor.time(at).short);
    let file = destination.rate_configured.map_or_else(
        || ct.file_unlimited.to_owned(),
        |rate| fill(ct.pace_a_second, &[("rate", &shown_rate(rate))]),
    );
    let change = (destination.rate_set_by.as_deref(), destination.rate_set_at.as_deref());
    let reason = match destination.rate_set {
        Some(_) => set_by(visitor, change, &file),
        None if destination.slowed => ct.slowed.to_owned(),
        None => ct.as_in_file.to_owned(),
    };
    let circuit = match destination.circuit.as_str() {
        "open" => fill(ct.circuit_open, &[("until", &when(&destination.circuit_open_until))]),
        "half_open" => ct.circuit_half_open.to_owned(),
        _ => ct.circuit_closed.to_owned(),
    };
    let change = (destination.paused_by.as_deref(), destination.paused_at.as_deref());
    let paused = match (destination.paused, &destination.paused_until) {
        (true, _) => format!("{} ({})", ct.waits, set_by(visitor, change, ct.not_paused)),
        (false, Some(_)) => fill(ct.asked_pause, &[("until", &when(&destination.paused_until))]),
        (false, None) => ct.not_paused.to_owned(),
    };
    vec![
        Fact::text(ct.pace, format!("{} ({reason})", shown_pace(ct, destination.rate))),
        Fact::text(ct.pause, paused),
        Fact::text(ct.circuit, circuit),
        Fact::text(ct.concurrency, shown_concurrency(ct, destination.max_parallel)),
        Fact::text(ct.kind, &*destination.kind),
        Fact::code(ct.address, &*destination.address),
    ]
}

fn shown_pace(ct: &Texts, rate: Option<f64>) -> String {
    rate.map_or_else(
        || ct.pace_unlimited.to_owned(),
        |rate| fill(ct.pace_a_second, &[("rate", &shown_rate(rate))]),
    )
}

fn shown_concurrency(ct: &Texts, max_parallel: Option<u32>) -> String {
    max_parallel.map_or_else(
        || ct.concurrency_by_queue.to_owned(),
        |count| fill(ct.concurrency_of, &[("n", &count.to_string())]),
    )
}

/// Returns a rate with at most two decimals, unless it would be 0.
fn shown_rate(rate: f64) -> String {
    let short = format!("{rate:.2}");
    if short == "0.00" {
        return format!("{rate}");
    }
    short.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn parse_rate(text: &str) -> Option<f64> {
    text.parse().ok().filter(|rate: &f64| rate.is_finite())
}

/// Returns the path of a destination's page. It may have any name.
pub(super) fn path_of(name: &str) -> String {
    format!("/destinations/{}", segment(name))
}

fn segment(name: &str) -> String {
    percent_encoded(name, b"_-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short_and_read_back() {
        for (rate, shown) in
            [(2.5, "2.5"), (10.0, "10"), (100.0, "100"), (0.333_33, "0.33"), (0.000_02, "0.00002")]
        {
            assert_eq!(shown_rate(rate), shown);
            assert!(parse_rate(shown).is_some());
        }
        for text in ["fast", "inf", "NaN", "1,5"] {
            assert_eq!(parse_rate(text), None, "{text}");
        }
    }
}
