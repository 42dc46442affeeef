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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn color_flag_overrides_pipe_and_environment_but_not_json() {
    let fixture = StoreFixture::on_sqlite().await;
    fixture.dead("orders", 1).await;
    let list = |arguments: &[&str]| {
        let mut command = store(&fixture, &[&["messages", "list"], arguments].concat());
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        run(command).out
    };
    assert!(!has_colours(&list(&[])));
    assert!(list(&["--color", "always"]).contains("\u{1b}[1;31mdead\u{1b}[0m"));
    assert!(!has_colours(&list(&["--color", "always", "--json"])));
    let url = ["--store", &fixture.url].map(str::to_owned);
    let at_terminal = |arguments: &[&str], no_color| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        at_terminal(&fixture, &arguments.chain(url.clone()).collect::<Vec<_>>(), no_color)
    };
    assert!(has_colours(&at_terminal(&["messages", "list"], false)));
    assert!(!has_colours(&at_terminal(&["messages", "list"], true)), "NO_COLOR");
    assert!(!has_colours(&at_terminal(&["messages", "list", "--color", "never"], false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_fits_the_terminal_unless_it_is_wide() {
    let fixture = StoreFixture::on_sqlite().await;
    let ids = fixture.dead("orders", 3).await;
    let url = &fixture.url;
    let shown = |flags: &str| {
        // `script` gives the terminal no size of its own.
        let line =
            format!("stty cols 80 && {} dead list {flags} --store {url}", env!("CARGO_BIN_EXE_ichido"));
        let mut script = Command::new("script");
        script.args(["--quiet", "--command", &line, "typescript"]).current_dir(fixture.folder());
        script.env("TERM", "xterm").env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null());
        assert!(script.status().expect("script is there, as part of every Linux").success());
        let text = std::fs::read_to_string(fixture.folder().join("typescript")).unwrap();
        text.lines()
            .filter(|line| line.contains("orders") && !line.contains("stty"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let narrow = shown("");
    assert_eq!(narrow.len(), 3, "{narrow:?}");
    for line in &narrow {
        assert!(line.trim_end().chars().count() <= 80 && line.contains('…'), "{narrow:?}");
        assert!(ids.iter().all(|id| !line.contains(&id.to_string())), "ids are cut: {narrow:?}");
    }
    let names_one = |word: &str| ids.iter().filter(|id| id.to_string().starts_with(word)).count() == 1;
    assert!(narrow.iter().all(|line| line.split_whitespace().any(names_one)), "{narrow:?}");
    let wide = shown("--wide").concat();
    assert!(ids.iter().all(|id| wide.contains(&id.to_string())) && !wide.contains('…'), "{wide}");
    assert!(wide.contains("BAD_REQUEST: no such symbol"), "{wide}");
}
