//! The reference of commands in the documentation, written from the command line's own definition.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
const HEAD: &str = "\
# Commands

Every command has `--help`, which also explains its exit codes. Commands that end with a result have `--json`, which prints it for
programs. `--log` and the variable `ICHIDO_LOG` set the log level of standard error. `--color auto|always|never` says when to use
colours; `auto` means on a terminal, unless `NO_COLOR` is set. On a terminal, tables are cut to its width, and ids to as many digits as
tell the rows apart; `--wide` prints whole texts and ids, and exact times instead of ages.

<!-- Generated from the command line: ICHIDO_BLESS=1 cargo test -p ichido-cli reference -->
";
/// Flags that every command has.
const GLOBAL: [&str; 5] = ["help", "log", "version", "color", "wide"];

fn reference() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = HEAD.to_owned();
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(command, &format!("ichido {}", command.get_name()), &mut text);
    }
    text
}

fn describe(command: &Command, path: &str, text: &mut String) {
    let level = "#".repeat(path.split(' ').count());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    write!(text, "\n{level} `{path}`\n\n{about}.\n\n```text\n{usage}\n```\n").expect("a String takes text");
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !GLOBAL.contains(&argument.get_id().as_str()))
        .collect();
    if !arguments.is_empty() {
        text.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for argument in arguments {
        writeln!(text, "| `{}` | {} |", spelling(argument), meaning(argument)).expect("a String takes text");
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        describe(below, &format!("{path} {}", below.get_name()), text);
    }
}

/// Returns the argument as it is typed.
fn spelling(argument: &Arg) -> String {
    let values: Vec<String> =
        argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let takes_values = argument.get_action().takes_values();
    match argument.get_long() {
        Some(long) if takes_values => format!("--{long} {}", values.join(" ")),
        Some(long) => format!("--{long}"),
        None => values.join(" "),
    }
}

/// Returns the argument's help, values, default and variable.
fn meaning(argument: &Arg) -> String {
    let mut parts = vec![argument.get_help().map(ToString::to_string).unwrap_or_default()];
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        parts.push(format!("One of: {}", values.join(", ")));
    }
    if let ([default], true) = (argument.get_default_values(), argument.get_action().takes_values()) {
        parts.push(format!("Default: `{}`", default.to_string_lossy()));
    }
    if let Some(variable) = argument.get_env() {
        parts.push(format!("Variable: `{}`", variable.to_string_lossy()));
    }
    parts.join(". ").replace('|', "\\|").replace('\n', " ")
}

#[test]
fn the_reference_in_the_documentation_is_that_of_the_command_line() {
    let reference = reference();
    if std::env::var_os("ICHIDO_BLESS").is_some() {
        std::fs::write(FILE, &reference).expect("docs/cli.md can be written");
    }
    let written = std::fs::read_to_string(FILE).expect("docs/cli.md");
    assert!(
        written == reference,
        "docs/cli.md is out of date; write it with ICHIDO_BLESS=1 cargo test -p ichido-cli reference"
    );
}
