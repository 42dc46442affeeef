//! Runs the commands of the guide as written.

use std::path::Path;
use std::process::Command;

use ichido_boundary::STARTING;

use super::fixture::{end, fresh};

const GUIDE: &str = include_str!("../../../../../docs/guides/check-boundaries.md");

/// Returns the lines of code that run the check, without the text before the command.
fn commands() -> Vec<&'static str> {
    let lines = GUIDE.lines().map(str::trim);
    let lines = lines.map(|line| line.trim_start_matches("run: ").trim_start_matches("entry: "));
    let runs = |line: &&str| line.starts_with("ichido check ") || line.starts_with("sh -c 'ichido check ");
    lines.filter(runs).collect()
}

#[test]
fn check_guide_commands_run_without_findings() {
    assert_eq!(commands().len(), 10, "{:#?}", commands());
    let folder = fresh();
    for (name, text) in STARTING {
        folder.write(&format!("work/boundaries/{name}"), text);
        folder.write(&format!("work/boundaries/orders/{name}"), text);
        folder.write(&format!("before/boundaries/{name}"), text);
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_ichido")).parent().expect("it is in a folder").to_owned();
    let others = std::env::var_os("PATH").expect("there is a path");
    let path = std::env::join_paths([binary].into_iter().chain(std::env::split_paths(&others)));
    let path = path.expect("folders make a path");
    for command in commands() {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(folder.path().join("work")).env("PATH", &path);
        let ended = end(&mut shell);
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
    }
}
