//! Runs the commands of the README's quick start as written, in an empty folder, and compares their output.

use std::process::{Command, Stdio};

use super::program::ServeProcess;
use crate::folder;

const README: &str = include_str!("../../../../../README.md");
const ADDRESS: &str = "127.0.0.1:4180";

/// Returns the commands of the section, each with its output.
fn steps() -> Vec<(&'static str, &'static str)> {
    let (_, section) = README.split_once("\n## In a minute\n").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let block = |text: &'static str| text.split("\n```").next().expect("it ends");
    let steps = section.split("```sh\n").skip(1);
    steps.map(|step| (block(step), block(step.split("```text\n").nth(1).expect("what it shows")))).collect()
}

/// Returns whether a text contains the shown output, in order; `…` matches anything.
fn has(text: &str, shown: &str) -> bool {
    let parts = shown.split(['…', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let mut rest = text;
    parts.into_iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readme_quickstart_works() {
    assert!(README.contains("\ncargo run --release -- serve "), "the command that starts it");
    let folder = folder::fresh();
    let server = ServeProcess::start(folder.path(), &[]);
    let steps = steps();
    assert_eq!(steps.len(), 4);
    let mut responses = Vec::new();
    for (command, shown) in steps {
        assert!(command.contains(ADDRESS), "{command}");
        // The test uses a free port, where the page uses the default one.
        let command = command.replace(ADDRESS, &server.address.to_string());
        let ran = Command::new("sh").args(["-ec", &command]).stderr(Stdio::inherit()).output();
        let printed = String::from_utf8(ran.expect("a shell").stdout).expect("text");
        assert!(has(&printed, shown), "{command}\nshows\n{shown}\nand said\n{printed}");
        responses.push(printed);
    }
    // The page promises that the second response is the first one, byte for byte.
    let status_and_body = |response: &str| {
        let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        (head.lines().next().expect("a status line").to_owned(), body.to_owned())
    };
    let [first, replay, ..] = &responses[..] else { panic!("two responses: {responses:?}") };
    assert!(!first.contains("idempotency-replayed") && replay.contains("idempotency-replayed: true"));
    assert_eq!(status_and_body(first), status_and_body(replay));
}

#[test]
fn shown_lines_must_appear_in_order() {
    assert!(has("a b c d", "a … c …"));
    assert!(!has("a b c d", "c … a"));
    assert!(!has("a b c d", "… e"));
}
