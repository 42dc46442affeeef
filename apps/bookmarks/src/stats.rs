//! The statistics page: the shares of keys, duplicates and retries, and the calls to the model.
//!
//! Guarantee: it has totals of the whole service and nothing about a person or a link. The numbers are those of the
//! metrics page, so the two agree. It is complete without a script.
// SPEC A14, B12.

mod words;

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Response};
use http::HeaderMap;
use http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL};

use self::words::{EN, JA, Words};
use crate::access::allow_totals;
use crate::app::App;
use crate::metrics;
use crate::problem::Problem;

const REQUESTS: &str = "ichido_once_requests_total";
/// Results of requests that had arrived before, under their key or with the same URL.
const REPEATED: [&str; 5] = ["same_content", "replayed", "in_flight", "unknown", "not_stored"];
/// Results of requests that had not.
const NEW: [&str; 2] = ["first", "mismatched"];
/// The counters of calls to the model, in the order of [`Words::model`].
const MODEL: [&str; 6] = [
    "ichido_llm_calls_total",
    "ichido_llm_retries_total",
    "ichido_llm_throttled_total",
    "ichido_llm_unusable_answers_total",
    "ichido_llm_fallbacks_total",
    "ichido_llm_possibly_billed_twice_total",
];

pub(crate) async fn page(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    allow_totals(&app, &headers).await?;
    let page = render(words_for(&headers), &metrics::text());
    Ok(([(CACHE_CONTROL, "no-store")], Html(page)).into_response())
}

/// Returns the texts in the first language of the browser that we speak.
fn words_for(headers: &HeaderMap) -> &'static Words {
    let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|wanted| wanted.to_str().ok());
    let mut tags = wanted.unwrap_or_default().split(',').map(str::trim);
    tags.find_map(|tag| [&EN, &JA].into_iter().find(|words| tag.starts_with(words.language))).unwrap_or(&EN)
}

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    part: u64,
    whole: u64,
}

/// Returns the four shares, in the order of [`Words::shares`].
fn shares(metrics: &str) -> [Share; 4] {
    let count = |labels: &[(&str, &str)]| total(metrics, REQUESTS, labels);
    let sum = |results: &[&str]| results.iter().map(|&result| count(&[("result", result)])).sum::<u64>();
    let (all, keyless, repeated) = (count(&[]), sum(&["keyless"]), sum(&REPEATED));
    let (auto, manual) = (count(&[("attempt", "auto")]), count(&[("attempt", "manual")]));
    [
        Share { part: all.saturating_sub(keyless), whole: all },
        Share { part: repeated, whole: repeated + sum(&NEW) },
        Share { part: count(&[("attempt", "auto"), ("success", "true")]), whole: auto },
        Share { part: manual, whole: auto + manual },
    ]
}

/// Adds up the samples of a metric that have these labels, in Prometheus' text format.
fn total(metrics: &str, name: &str, labels: &[(&str, &str)]) -> u64 {
    let samples =
        metrics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} "));
    // No label has a foreign value, so a label is found as text.
    let has =
        |sample: &str| labels.iter().all(|(name, value)| sample.contains(&format!("{name}=\"{value}\"")));
    samples.filter(|(sample, _)| has(sample)).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

/// Renders the page from our own texts and numbers, so there is nothing to escape.
fn render(words: &Words, metrics: &str) -> String {
    let mut rows = String::new();
    for (what, Share { part, whole }) in words.shares.iter().zip(shares(metrics)) {
        let share = percent(part, whole);
        _ = writeln!(rows, "<tr><th scope=\"row\">{what}</th><td>{share}</td><td>{part} / {whole}</td></tr>");
    }
    let mut calls = String::new();
    for (what, name) in words.model.iter().zip(MODEL) {
        _ = writeln!(calls, "<tr><th scope=\"row\">{what}</th><td>{}</td></tr>", total(metrics, name, &[]));
    }
    let Words { language, title, about, measure, share, count, model_title, back, .. } = words;
    format!(
        r#"<!doctype html>
<html lang="{language}" data-ready>
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{title}</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml" />
<link rel="stylesheet" href="/app.css" />
</head>
<body>
<header class="top"><h1>{title}</h1></header>
<main>
<p>{about}</p>
<table class="stats">
<thead><tr><th scope="col">{measure}</th><th scope="col">{share}</th><th scope="col">{count}</th></tr></thead>
<tbody>
{rows}</tbody>
</table>
<h2>{model_title}</h2>
<table class="stats">
<thead><tr><th scope="col">{measure}</th><th scope="col">{count}</th></tr></thead>
<tbody>
{calls}</tbody>
</table>
<p><a href="/">{back}</a></p>
</main>
</body>
</html>
"#
    )
}

/// Formats a share with one digit after the point; a dash if there is nothing yet.
fn percent(part: u64, whole: u64) -> String {
    let tenths = part.saturating_mul(1_000).saturating_add(whole / 2).checked_div(whole);
    tenths.map_or_else(|| "–".to_owned(), |tenths| format!("{}.{} %", tenths / 10, tenths % 10))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// 8 requests: 2 first, 3 duplicates (1 of them by its URL), 1 other body, 2 without a key.
    const METRICS: &str = "\
# TYPE ichido_once_requests_total counter
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"first\",attempt=\"first\",success=\"true\"} 1
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"first\",attempt=\"auto\",success=\"false\"} 1
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"same_content\",attempt=\"first\",success=\"true\"} 1
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"replayed\",attempt=\"auto\",success=\"true\"} 1
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"replayed\",attempt=\"manual\",success=\"true\"} 1
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"mismatched\",attempt=\"first\",success=\"false\"} 1
ichido_once_requests_total{operation=\"bookmarks.create\",result=\"keyless\",attempt=\"first\",success=\"false\"} 1
ichido_once_requests_total{operation=\"bookmarks.reprocess\",result=\"keyless\",attempt=\"first\",success=\"true\"} 1
ichido_llm_calls_total{model=\"a\"} 5
ichido_llm_calls_total{model=\"b\"} 4
";

    #[test]
    fn shares_are_computed_from_the_metrics() {
        let expected = [(6, 8), (3, 6), (1, 2), (1, 3)].map(|(part, whole)| Share { part, whole });
        assert_eq!(shares(METRICS), expected);
        assert_eq!(total(METRICS, MODEL[0], &[]), 9);
        let page = render(&EN, METRICS);
        for row in ["<td>75.0 %</td><td>6 / 8</td>", "<td>33.3 %</td><td>1 / 3</td>", "<td>9</td>"] {
            assert!(page.contains(row), "no {row} in {page}");
        }
        assert!(render(&JA, "").contains("<td>–</td><td>0 / 0</td>"), "nothing has happened yet");
    }

    #[test]
    fn the_first_known_language_of_the_browser_is_used() {
        for (wanted, language) in
            [("ja-JP,en;q=0.8", "ja"), ("fr, ja;q=0.5", "ja"), ("en", "en"), ("fr", "en"), ("", "en")]
        {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(wanted));
            assert_eq!(words_for(&headers).language, language, "{wanted}");
        }
    }
}
