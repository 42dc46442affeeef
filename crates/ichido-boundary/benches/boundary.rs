//! A thousand boundary files, read and judged: `cargo bench -p ichido-boundary --bench boundary`.
//!
//! The files are 250 hop chains of four, each in its own folder. `clean` is the starting set; in `broken` no hop
//! requires or passes the key, so every file has findings whose locations must be looked up.

#![expect(clippy::expect_used, reason = "a bench that cannot run has nothing better to do than stop")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use ichido_boundary::{Boundary, STARTING, check};

const FILES: usize = 1_000;
/// Odd, so the median is one of them.
const ROUNDS: usize = 11;

fn main() {
    // `cargo test` starts it too, and only needs it to compile.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{FILES} files | findings | median of {ROUNDS}");
    println!("--- | ---: | ---:");
    let spoil = |text: &str| text.replace("idempotency-key", "accept").replace("true", "false");
    for (name, texts) in [
        ("clean", STARTING.map(|(_, text)| text.to_owned())),
        ("broken", STARTING.map(|(_, text)| spoil(text))),
    ] {
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| round(&texts).1).collect();
        times.sort_unstable();
        println!("{name} | {} | {:.1?}", round(&texts).0, times[ROUNDS / 2]);
    }
}

/// The number of findings, and the time to find them.
#[expect(clippy::disallowed_methods, reason = "a bench measures time; nothing of the library sees it")]
fn round(texts: &[String; 4]) -> (usize, Duration) {
    let start = Instant::now();
    let files: Vec<Boundary> = (0..FILES)
        .map(|index| {
            let (chain, at) = (index / texts.len(), index % texts.len());
            let file = format!("{chain}/{}", STARTING[at].0);
            Boundary::read(&file, black_box(&texts[at]).as_bytes()).expect("the file is readable")
        })
        .collect();
    let findings = black_box(check(&files)).len();
    (findings, start.elapsed())
}
