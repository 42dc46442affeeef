//! Canonical JSON against `serde_json_canonicalizer`: `cargo bench -p ichido-core --bench canonical`.
//!
//! Both contenders turn the bytes of a body into its canonical bytes. Each round measures both, one after the other, so
//! a busy machine slows both alike; the table shows the median round of each. In the form of RFC 8785 both must produce
//! the same bytes, or nothing is measured.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run stops")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ichido_core::json::{CanonicalForm, Document, Numbers};

/// Rounds per document and form; odd, so the median is one of them.
const ROUNDS: usize = 41;
/// How many bytes each contender reads in one round.
const ROUND_BYTES: usize = 2_000_000;

fn main() {
    // `cargo test` starts it too, and only needs it to compile.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("document | ours | serde_json_canonicalizer | ratio");
    println!("--- | ---: | ---: | ---:");
    for (name, document) in [("1 KiB", order_list(1_024)), ("100 KiB", order_list(102_400))] {
        let document = document.as_bytes();
        let double = CanonicalForm { numbers: Numbers::Double, ..CanonicalForm::default() };
        assert_eq!(ours(document, &double), rival(document), "both must agree before they are measured");
        for (form_name, form) in [("Exact", CanonicalForm::default()), ("Double", double)] {
            let (ours_time, rival_time) = race(document, &form);
            println!(
                "{name} ({} bytes), {form_name} | {ours_time:.2?} | {rival_time:.2?} | {:.2}",
                document.len(),
                rival_time.as_secs_f64() / ours_time.as_secs_f64(),
            );
        }
    }
}

fn ours(document: &[u8], form: &CanonicalForm) -> Vec<u8> {
    let document = Document::parse(document, document.len()).expect("the document is JSON");
    document.canonical(form).expect("the document has a canonical form")
}

fn rival(document: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(document).expect("the document is JSON");
    serde_json_canonicalizer::to_vec(&value).expect("the document has a canonical form")
}

/// The median time of one document for us and for the competitor.
fn race(document: &[u8], form: &CanonicalForm) -> (Duration, Duration) {
    let repeats = u32::try_from(ROUND_BYTES / document.len()).expect("a round is short").max(1);
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let ours_time = time(|| ours(black_box(document), form), repeats);
        let rival_time = time(|| rival(black_box(document)), repeats);
        rounds.push((ours_time, rival_time));
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[ROUNDS / 2]
    };
    let (ours_times, rival_times) = rounds.into_iter().unzip();
    (median(ours_times), median(rival_times))
}

/// The mean time of one call out of `repeats`.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; the library never reads it")]
fn time(contender: impl Fn() -> Vec<u8>, repeats: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..repeats {
        black_box(contender());
    }
    start.elapsed() / repeats
}

/// A list of orders as a shop's service would send it, of about `bytes` bytes.
fn order_list(bytes: usize) -> String {
    let mut text = String::from(r#"{"source":"web","version":3,"orders":["#);
    for number in 0_u32.. {
        if number != 0 {
            text.push(',');
        }
        let cents = number * 37 % 100;
        write!(
            text,
            r#"{{"id":"ord_{number:08}","created_at":"2031-04-{:02}T10:15:{:02}Z","customer":{{"name":"Zoë Müller-{number}","email":"zoe.{number}@example.com","vip":{},"note":"leave at \"Café Zürich\"\nring twice","city":"M\u00fcnchen"}},"items":[{{"sku":"SKU-{number}","title":"Teapot, blue","quantity":{},"price":{}.{cents:02},"weight_kg":1.50}},{{"sku":"SKU-{number}-b","title":"茶碗","quantity":1,"price":1.2e2,"weight_kg":0.25}}],"total":{{"currency":"EUR","amount":{}.{cents:02}}},"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","discount":null}}"#,
            number % 28 + 1,
            number % 60,
            number % 3 == 0,
            number % 5 + 1,
            number % 90 + 10,
            number % 900 + 100,
        )
        .expect("writing to a string does not fail");
        if bytes < text.len() + 500 {
            break;
        }
    }
    text.push_str("]}");
    text
}
