//! Runs the scripts of the examples as a newcomer does, and compares their output with their pages.
// Spec: D16, E.

mod script;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use ichido_store::testing::postgres;

use crate::folder::{self, TempFolder};
use script::{Example, ScriptOutput};

const ORDERS: Example = Example {
    name: "orders",
    script: "run",
    block: 0,
    page: include_str!("../../../../examples/orders/README.md"),
    requirements: &[
        "C1", "C8", "D1", "D2", "D5", "D6", "D7", "D8", "D9", "D11", "D12", "D13", "D14", "D15", "D16",
        "D17", "D18", "F1", "F5",
    ],
};
const SUMMARIZER: Example = Example {
    name: "summarizer",
    script: "run",
    block: 0,
    page: include_str!("../../../../examples/summarizer/README.md"),
    requirements: &["D3", "E1", "E2", "E3", "E4", "E5", "E6", "A15"],
};

/// The same articles with a language model.
const MODEL: Example = Example {
    script: "run-llm",
    block: 1,
    requirements: &["A10", "B12", "D3", "E1", "E2", "E4", "E5"],
    ..SUMMARIZER
};

/// How often each example runs on both databases; without this variable once, on SQLite only.
const ROUNDS_VARIABLE: &str = "ICHIDO_EXAMPLES_ROUNDS";

/// The databases for the examples of one test; `None` is a file of their own.
async fn databases() -> Vec<Option<postgres::PgTestDatabase>> {
    let Ok(rounds) = std::env::var(ROUNDS_VARIABLE) else { return vec![None] };
    let rounds: usize = rounds.parse().expect("a number of rounds");
    let mut databases = Vec::new();
    for _ in 0..rounds {
        databases.extend([None, Some(postgres::fresh_database().await)]);
    }
    databases
}

/// Checks that an example succeeds, prints what its page shows, and leaves no file and no process behind.
async fn shows_what_its_page_says(example: &Example) {
    for database in databases().await {
        let folder = folder::fresh();
        let url = database.as_ref().map(|database| database.url.as_str());
        let ScriptOutput { code, out, err } = example.run(Path::new(script::BINARY), &folder, url);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        assert_eq!(out.trim(), example.shown());
        script::assert_nothing_is_left(&folder);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_example_matches_its_page() {
    shows_what_its_page_says(&ORDERS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn summarizer_example_matches_its_page() {
    shows_what_its_page_says(&SUMMARIZER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn model_example_matches_its_page() {
    for database in databases().await {
        let (folder, fake) = (folder::fresh(), fake_llm::start(fake_llm::Script::default()));
        let url = database.as_ref().map(|database| database.url.as_str());
        let mut command = MODEL.command(Path::new(script::BINARY), &folder, url);
        let output = command.env("LLM_URL", fake.url()).output().expect("a shell");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), &*err), (Some(0), ""), "{out}");
        assert_eq!(out.trim(), MODEL.shown());
        let faults = fake.seen().format_faults;
        assert!(faults.is_empty(), "{faults:?}");
        script::assert_nothing_is_left(&folder);
    }
}

#[test]
fn example_pages_list_every_covered_requirement() {
    for example in [ORDERS, SUMMARIZER, MODEL] {
        let source = example.source();
        for requirement in example.requirements {
            let has_check = source.lines().any(|line| {
                matches!(line.split_whitespace().next(), Some("check" | "check_soon"))
                    && line.split_whitespace().nth(1) == Some(*requirement)
            });
            assert!(has_check, "{requirement} is not checked by {}", example.name);
        }
        let checks = example.shown().lines().filter(|line| line.starts_with("ok ")).count();
        assert!(example.shown().ends_with(&format!("\n{checks} checks, all ok")), "{}", example.name);
    }
}

/// Wraps the program so that its mock broker ignores keys.
fn with_a_broker_without_keys(folder: &TempFolder) -> std::path::PathBuf {
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = mock-broker ] && set -- \"$@\" --deduplicates false\nexec {} \"$@\"\n",
        script::BINARY
    );
    let path = folder.write("ichido", &script);
    let made = Command::new("chmod").arg("+x").arg(&path).status();
    assert!(made.expect("chmod runs").success());
    path.into()
}

#[test]
fn duplicate_effect_fails_the_example() {
    let (programs, folder) = (folder::fresh(), folder::fresh());
    let ScriptOutput { code, out, .. } = ORDERS.run(&with_a_broker_without_keys(&programs), &folder, None);
    assert_eq!(code, Some(1), "{out}");
    let wanted = "FAIL a server killed after the broker got the order: it takes effect once\n     expected: 2 calls, 1 effects\n     actual:   2 calls, 2 effects\n";
    assert!(out.contains(wanted), "{out}");
    assert!(out.trim().ends_with(" checks failed"), "{out}");
    script::assert_nothing_is_left(&folder);
}

#[test]
fn stopped_example_stops_its_processes() {
    let folder = folder::fresh();
    let mut command = ORDERS.command(Path::new(script::BINARY), &folder, None);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a shell");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    // By now its server and its broker run.
    assert!(lines.any(|line| line.expect("text").starts_with("ok   10 concurrent requests ")));
    assert!(!script::processes(&folder).is_empty());
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(stopped.expect("kill runs").success());
    // Keep reading, so a closed pipe does not end it.
    lines.for_each(drop);
    assert_eq!(child.wait().expect("it is our child").code(), Some(128 + 15));
    script::assert_nothing_is_left(&folder);
}

#[test]
fn example_without_binary_explains_how_to_build_it() {
    let folder = folder::fresh();
    let ScriptOutput { code, err, .. } = ORDERS.run(Path::new("/nowhere/ichido"), &folder, None);
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot find /nowhere/ichido; build it"), "{err}");
    script::assert_nothing_is_left(&folder);
}
