//! `ichido config`.

use super::program::{WorkerProcess, ichido, run};
use crate::folder;

const MOCK_QUEUE: &str = "[destinations.mock]\nkind = \"mock\"\n[queues.q]\ndestination = \"mock\"\n";

#[test]
fn init_file_passes_check_and_is_never_overwritten() {
    let folder = folder::fresh();
    let made = run(folder.path(), &["config", "init"], "");
    assert_eq!(made.code, Some(0), "{made:?}");
    let checked = run(folder.path(), &["config", "check"], "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let file = format!("SQLite, {}\n", folder.path().join("ichido.db").display());
    // Durations have the units of the file.
    let times = [
        "every 200ms when idle, stops within 25s, keeps finished messages for 90d",
        " 10m ",
        " for 365d ",
        " 15s ",
    ];
    for text in [&*file, "orders", "mock", "http://127.0.0.1:8090/orders "].into_iter().chain(times) {
        assert!(checked.out.contains(text), "{text} in {}", checked.out);
    }
    let path = folder.write("ichido.toml", "# mine\n");
    let again = run(folder.path(), &["config", "init"], "");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(std::fs::read_to_string(path).expect("it is there"), "# mine\n");
    let shown = run(folder.path(), &["config", "init", "-"], "");
    assert!(shown.out.starts_with("# The configuration of Ichido"), "{shown:?}");
}

#[test]
fn config_error_has_location_and_code_2() {
    let folder = folder::fresh();
    folder.write("mine.toml", "[queues.orders]\ndestination = \"broker\"\nparalel = 1\n");
    let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.err.contains("mine.toml:2:15 queues.orders.destination: "), "{}", checked.err);
    assert!(checked.err.contains("mine.toml:3:1 queues.orders.paralel: "), "{}", checked.err);
    let missing = run(folder.path(), &["config", "check", "nowhere.toml"], "");
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.err.contains("create one with `ichido config init`"), "{}", missing.err);
}

#[test]
fn invalid_store_url_is_refused_with_location_and_without_url() {
    let folder = folder::fresh();
    for (url, why) in [
        ("mysql://x", "is not a supported database"),
        ("ichido.db", "is not a supported database"),
        ("sqlite:", "is not an SQLite file"),
        ("sqlite:a.db?mode=ro", "is not an SQLite file"),
        ("sqlite::memory:", "is an in-memory database"),
    ] {
        folder.write("mine.toml", &format!("[store]\nurl = \"{url}\"\n"));
        let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.err.contains("mine.toml:2:7 store.url: "), "{url}: {}", checked.err);
        assert!(checked.err.contains(why), "{url}: {}", checked.err);
        assert!(!checked.err.contains("mysql"), "an address may hold a password: {}", checked.err);
    }
    for url in ["postgres://db/ichido", "postgresql://db/ichido"] {
        folder.write("mine.toml", &format!("[store]\nurl = \"{url}\"\n{MOCK_QUEUE}"));
        let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
        assert!(checked.code == Some(0) && checked.out.contains("store: PostgreSQL\n"), "{checked:?}");
    }
}

/// A device has no end and a pipe may never start: neither is read, and of a file at most the length of a secret.
#[test]
fn secret_file_has_a_size_limit() {
    let folder = folder::fresh();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    folder.write("long", &"x".repeat((1 << 20) + 1));
    for (reference, why) in [
        ("/dev/zero", "cannot read /dev/zero: it is not a regular file"),
        ("pipe", "pipe: it is not a regular file"),
        (".", "it is not a regular file"),
        ("long", "it is larger than 1048576 bytes"),
    ] {
        folder.write("mine.toml", &format!("[worker]\naudit_key = \"file:{reference}\"\n"));
        let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.err.contains("mine.toml:2:13 worker.audit_key: "), "{}", checked.err);
        assert!(checked.err.contains(why), "{reference}: {}", checked.err);
    }
    let endless = run(folder.path(), &["config", "check", "/dev/zero"], "");
    assert_eq!(endless.code, Some(2), "{endless:?}");
    assert!(endless.err.contains("it is not a regular file"), "{}", endless.err);
    folder.write("long", &"#".repeat((4 << 20) + 1));
    let long = run(folder.path(), &["config", "check", "long"], "");
    assert!(long.err.contains("is larger than 4194304 bytes"), "{}", long.err);
}

// Spec: H8.
#[test]
fn http_destination_without_guarantee_does_not_start() {
    let folder = folder::fresh();
    let text =
        "[queues.q]\ndestination = \"d\"\n[destinations.d]\nkind = \"http\"\nurl = \"http://a.test/\"\n";
    folder.write("ichido.toml", text);
    for command in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"], &["worker"]] {
        let refused = run(folder.path(), command, "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for part in [
            "ichido.toml:3:15 destinations.d.guarantee: is missing",
            "`idempotent`: ",
            "`keyed`: ",
            "`none`: ",
        ] {
            assert!(refused.err.contains(part), "{part} in {}", refused.err);
        }
    }
    assert!(!folder.path().join("ichido.db").exists(), "it leaves no file behind");
}

// Spec: H8.
#[test]
fn config_traps_are_refused_and_default_store_is_used() {
    let folder = folder::fresh();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    for arguments in [&["config", "check", "pipe"][..], &["config", "show", "--config", "pipe"]] {
        let refused = run(folder.path(), arguments, "");
        assert!(refused.code == Some(2) && refused.err.contains("it is not a regular file"), "{refused:?}");
    }
    folder.write("mine.toml", "[destinations.mock]\nkind = \"mock\"\n");
    for command in [&["config", "check", "mine.toml"][..], &["serve", "--config", "mine.toml"]] {
        let refused = run(folder.path(), command, "");
        assert!(refused.code == Some(2) && refused.err.contains("mine.toml: has no queue"), "{refused:?}");
    }
    folder.write("mine.toml", MOCK_QUEUE);
    for arguments in [&["config", "check", "mine.toml"][..], &["config", "check", "--config", "mine.toml"]] {
        let checked = run(folder.path(), arguments, "");
        assert!(checked.code == Some(0) && checked.out.contains("mock"), "{checked:?}");
    }
    let lost = run(folder.path(), &["worker", "--config", "mine.toml"], "");
    assert!(
        lost.code == Some(3) && lost.err.contains("no store found") && lost.err.contains("`ichido serve`"),
        "a new store would hide a typing error: {lost:?}"
    );
    assert!(!lost.err.contains("--server"), "a worker takes no server: {lost:?}");
    folder.write("ichido.db", "");
    drop(WorkerProcess::start(folder.path(), &["--config", "mine.toml"]));
    let size =
        std::fs::metadata(folder.path().join("ichido.db")).expect("the store that the help names").len();
    assert_ne!(size, 0);
}

#[test]
fn config_show_includes_flags_and_json() {
    let folder = folder::fresh();
    assert_eq!(run(folder.path(), &["config", "init"], "").code, Some(0));
    let flags =
        ["--listen", "[::1]:80", "--max-connections", "9", "--drain-timeout", "5s", "--store", "sqlite:b.db"];
    let shown = run(folder.path(), &[&["config", "show", "--origin"][..], &flags].concat(), "");
    for line in [
        "url = \"sqlite:b.db\"  # the flag --store\n",
        "listen = \"[::1]:80\"  # the flag --listen\n",
        "max_connections = 9  # the flag --max-connections\n",
        "drain_timeout = \"5s\"  # the flag --drain-timeout\n",
        "head_timeout = \"15s\"  # default\n",
        "[destinations.mock]\nkind = \"mock\"  # ichido.toml:",
        "receipt_pointer = \"/broker_order_id\"  # default\n",
    ] {
        assert!(shown.out.contains(line), "{line} in {}", shown.out);
    }
    let wrong = run(folder.path(), &["config", "show", "--head-timeout", "soon"], "");
    assert!(
        wrong.code == Some(2) && wrong.err.contains("--head-timeout: \"soon\" is not a duration"),
        "{wrong:?}"
    );

    let object = |arguments: &[&str]| {
        let text = run(folder.path(), &[&["config", "--json"], arguments].concat(), "");
        let lines: Vec<serde_json::Value> =
            text.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 1, "{text:?}");
        (text.code, lines[0].clone())
    };
    let (code, shown) = object(&[&["show"][..], &flags].concat());
    let of = |name: &str| {
        let settings = shown["settings"].as_array().expect("a list");
        settings.iter().find(|setting| setting["name"] == name).unwrap_or_else(|| panic!("{name} in {shown}"))
    };
    assert_eq!((code, &of("serve.max_connections")["value"]), (Some(0), &9.into()));
    assert_eq!(of("serve.max_connections")["origin"], "the flag --max-connections");
    assert_eq!(
        (&of("worker.audit_key")["value"], &of("worker.audit_key")["origin"]),
        (&().into(), &().into())
    );
    assert_eq!(of("destinations.mock.circuit")["value"]["rest"], "5s");
    let (code, checked) = object(&["check"]);
    assert_eq!(
        (code, &checked["queues"][0]["name"], &checked["destinations"][0]["guarantee"]),
        (Some(0), &"orders".into(), &"keyed".into())
    );
    folder.write("mine.toml", "[queues.orders]\nparalel = 1\n");
    let (code, checked) = object(&["check", "mine.toml"]);
    assert_eq!((code, checked["problems"].as_array().map(Vec::len)), (Some(2), Some(2)), "{checked}");
    assert_eq!(checked["problems"][1]["place"], "mine.toml:2:1 queues.orders.paralel");
    let (code, made) = object(&["init", "new.toml"]);
    assert_eq!((code, &made["written"]), (Some(0), &"new.toml".into()));
}

// Spec: B5.
#[test]
fn env_file_is_the_origin_of_its_settings() {
    let folder = folder::fresh();
    assert_eq!(run(folder.path(), &["config", "init"], "").code, Some(0));
    folder.write(
        ".env",
        "OUTBOX_PARALLELISM=9\nICHIDO_STORE=postgres://ann:s3cret@db/ichido\nICHIDO__WORKER__NAME='night shift'\nOUTBOX_IDLE_SLEEP_MS=70\n",
    );
    let mut command = ichido(folder.path());
    command.args(["config", "show", "--origin"]).env("OUTBOX_IDLE_SLEEP_MS", "50");
    let shown = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
    for line in [
        "url = \"…\"  # .env:2 ICHIDO_STORE\n",
        "name = \"night shift\"  # .env:3 ICHIDO__WORKER__NAME\n",
        "[queue_defaults]\nparallelism = 9  # .env:1 OUTBOX_PARALLELISM\n",
        "idle_sleep = \"50ms\"  # the variable OUTBOX_IDLE_SLEEP_MS\n",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    folder.write(".env", "\nOUTBOX_PARALLELISM=nine\nICHIDO__WORKER__NAM=x\n");
    let checked = run(folder.path(), &["config", "check"], "");
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(
        checked.err.contains(".env:2 OUTBOX_PARALLELISM: \"nine\" is not a whole number"),
        "{}",
        checked.err
    );
    assert!(checked.err.contains(".env:3 ICHIDO__WORKER__NAM"), "{}", checked.err);
}

#[test]
fn config_schema_lists_every_table() {
    let folder = folder::fresh();
    let printed = run(folder.path(), &["config", "schema"], "");
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let schema: serde_json::Value = serde_json::from_str(&printed.out).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for table in ["store", "serve", "worker", "traces", "alerts", "queue_defaults", "queues", "destinations"]
    {
        assert!(schema["properties"][table].is_object(), "{table}");
    }
}
