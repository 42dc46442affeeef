//! The README's first minute: its commands run as they stand there, in an empty folder, and say what it shows.

use std::process::{Command, Stdio};

use super::program::ServeProcess;
use crate::folder;

const README: &str = include_str!("../../../../../README.md");
const ADDRESS: &str = "127.0.0.1:4180";

/// The commands of the section, each with what it shows.
fn steps() -> Vec<(&'static str, &'static str)> {
    let (_, section) = README.split_once("\n## In a minute\n").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let block = |text: &'static str| text.split("\n```").next().expect("it ends");
    let steps = section.split("```sh\n").skip(1);
    steps.map(|step| (block(step), block(step.split("```text\n").nth(1).expect("what it shows")))).collect()
}

/// Whether a text has what is shown, in order; `…` stands for anything.
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
async fn the_first_minute_of_the_readme_is_true() {
    assert!(README.contains("\ncargo run --release -- serve "), "the command that starts it");
    let folder = folder::fresh();
    let server = ServeProcess::start(folder.path(), &[]);
    let steps = steps();
    assert_eq!(steps.len(), 4);
    for (command, shown) in steps {
        assert!(command.contains(ADDRESS), "{command}");
        // A test takes a free port, where the page takes the usual one.
        let command = command.replace(ADDRESS, &server.address.to_string());
        let ran = Command::new("sh").args(["-ec", &command]).stderr(Stdio::inherit()).output();
        let said = String::from_utf8(ran.expect("a shell").stdout).expect("text");
        assert!(has(&said, shown), "{command}\nshows\n{shown}\nand said\n{said}");
    }
}

#[test]
fn what_is_shown_must_be_there_in_order() {
    assert!(has("a b c d", "a … c …"));
    assert!(!has("a b c d", "c … a"));
    assert!(!has("a b c d", "… e"));
}
