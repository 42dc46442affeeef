//! Escape codes: a terminal may show colours unless `NO_COLOR` is set; a file or a pipe gets none.

use std::process::{Command, Stdio};

use super::fixture::{bare, run, store};
use crate::dead::fixture::StoreFixture;

/// The start of every escape code.
const ESCAPE: char = '\u{1b}';

/// Returns the names of all commands, as the help lists them.
fn commands(fixture: &StoreFixture, path: &[String]) -> Vec<Vec<String>> {
    let mut command = bare(fixture);
    command.args(path).arg("--help");
    let help = run(command);
    assert_eq!(help.code, Some(0), "{path:?}: {help:?}");
    // The commands themselves are listed in groups, each with its name.
    let before_options = help.out.split("\nOptions:\n").next().unwrap_or_default();
    let is_listed = |part: &&str| part.starts_with("Commands:\n") || path.is_empty();
    let listed = before_options.split("\n\n").filter(is_listed).flat_map(str::lines);
    // A name is indented by two spaces; deeper lines continue a description.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let mut all = vec![path.to_vec()];
    for name in names.filter_map(|line| line.split_whitespace().next()) {
        all.extend(commands(fixture, &[path, &[name.to_owned()]].concat()));
    }
    all
}

/// Runs the command in a terminal; returns everything that appears there.
fn at_terminal(fixture: &StoreFixture, arguments: &[String], no_color: bool) -> String {
    let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
    let line = format!("{} {}", env!("CARGO_BIN_EXE_ichido"), quoted.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &line, "typescript"]).current_dir(fixture.folder());
    script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("ICHIDO_STORE").env_remove("ICHIDO_SERVER");
    if no_color {
        script.env("NO_COLOR", "1");
    }
    script.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(script.status().expect("script is there, as part of every Linux").success());
    std::fs::read_to_string(fixture.folder().join("typescript")).unwrap()
}

/// Returns whether a text has colours: escape codes that end with an `m`.
fn has_colours(text: &str) -> bool {
    text.split(ESCAPE).skip(1).any(|code| {
        let end = code.trim_start_matches(['[', ';', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        end.starts_with('m')
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn help_has_no_colours_in_pipes_or_with_no_color() {
    let fixture = StoreFixture::on_sqlite().await;
    let all = commands(&fixture, &[]);
    assert!(40 < all.len(), "{} commands are too few to be all", all.len());
    for path in all {
        let help = [&path[..], &["--help".to_owned()]].concat();
        let mut command = bare(&fixture);
        command.args(&help).env("TERM", "xterm");
        let left = run(command);
        assert!(!left.out.contains(ESCAPE) && !left.err.contains(ESCAPE), "{help:?}: {left:?}");
        assert!(!has_colours(&at_terminal(&fixture, &help, true)), "{help:?}");
        assert!(has_colours(&at_terminal(&fixture, &help, false)), "terminal and pipe differ: {help:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_has_no_colours_in_pipes_or_with_no_color() {
    let fixture = StoreFixture::on_sqlite().await;
    let ids = fixture.dead("orders", 3).await;
    let id = ids[0].to_string();
    let folder = fixture.folder();
    std::fs::write(folder.join("lines"), "{\"key\":\"a\",\"body\":1}\n{\"key\":\"a\",\"body\":2}\n{\n")
        .unwrap();
    std::fs::create_dir(folder.join("boundaries")).unwrap();
    let mut starting = bare(&fixture);
    starting.args(["check", "--init"]).current_dir(folder.join("boundaries"));
    assert_eq!(run(starting).code, Some(0));
    let gateway = folder.join("boundaries/bff_to_gateway.json");
    let broken = std::fs::read_to_string(&gateway).unwrap().replace("\"idempotency-key\",", "");
    std::fs::write(&gateway, broken).unwrap();
    let on_store: &[&[&str]] = &[
        &["messages", "list"],
        &["messages", "show", &id],
        &["messages", "events", &id],
        &["messages", "cancel", &id],
        &["messages", "list", "--state", "none"],
        &["queues", "list"],
        &["queues", "pause", "orders"],
        &["dead", "list"],
        &["dead", "show", &id],
        &["dead", "requeue", "--all", "--dry-run"],
        &["dead", "discard", "--queue", "orders", "--reason", "test", "--yes"],
        &["dead", "operations"],
        &["dead", "decide", "done", &id],
        &["ledger", "list"],
        &["token", "create", "night watch", "--role", "viewer"],
        &["token", "list"],
        &["audit", "seal"],
        &["audit", "verify"],
        &["audit", "head"],
        &["send", "orders", "--ndjson", "lines"],
    ];
    let elsewhere: &[&[&str]] = &[
        &["config", "show", "--origin"],
        &["config", "check"],
        &["config", "check", "nowhere.toml"],
        &["check", "boundaries"],
        &["check", "--list"],
        &["check", "--explain", "ICH-B020"],
        &["completions", "bash"],
        &["nonsense"],
        &["worker", "--config", "nowhere.toml"],
        &["proxy"],
    ];
    for arguments in on_store.iter().chain(elsewhere) {
        let is_on_store = on_store.contains(arguments);
        let mut command = if is_on_store { store(&fixture, arguments) } else { bare(&fixture) };
        if !is_on_store {
            command.args(*arguments);
        }
        command
            .args(if arguments[0] == "nonsense" { &[][..] } else { &["--log", "debug"] })
            .env("TERM", "xterm");
        let left = run(command);
        assert!(!left.out.is_empty() || !left.err.is_empty(), "{arguments:?} says nothing");
        assert!(!left.out.contains(ESCAPE) && !left.err.contains(ESCAPE), "{arguments:?}: {left:?}");
        let url = ["--store".to_owned(), fixture.url.clone()];
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        all.extend(url.into_iter().filter(|_| is_on_store));
        let seen = at_terminal(&fixture, &all, true);
        assert!(!has_colours(&seen), "{arguments:?}: {seen:?}");
    }
    let coloured = at_terminal(&fixture, &["check".to_owned(), "boundaries".to_owned()], false);
    assert!(has_colours(&coloured), "terminal and pipe differ: {coloured:?}");
}
