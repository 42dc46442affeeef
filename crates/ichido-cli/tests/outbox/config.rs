//! `ichido config`.

use super::folder;
use super::program::run;

#[test]
fn the_file_that_init_writes_is_found_right_by_check_and_never_written_over() {
    let folder = folder::fresh();
    let made = run(folder.path(), &["config", "init"], "");
    assert_eq!(made.code, Some(0), "{made:?}");
    let checked = run(folder.path(), &["config", "check"], "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let file = format!("SQLite, {}\n", folder.path().join("ichido.db").display());
    for told in [&*file, "orders", "paper", "http://127.0.0.1:8090"] {
        assert!(checked.out.contains(told), "{told} in {}", checked.out);
    }
    let path = folder.write("ichido.toml", "# mine\n");
    let again = run(folder.path(), &["config", "init"], "");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(std::fs::read_to_string(path).expect("it is there"), "# mine\n");
    let shown = run(folder.path(), &["config", "init", "-"], "");
    assert!(shown.out.starts_with("# The configuration of Ichido"), "{shown:?}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place_and_code_2() {
    let folder = folder::fresh();
    folder.write("mine.toml", "[queues.orders]\ndestination = \"broker\"\nparalel = 1\n");
    let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.err.contains("mine.toml:2:15 queues.orders.destination: "), "{}", checked.err);
    assert!(checked.err.contains("mine.toml:3:1 queues.orders.paralel: "), "{}", checked.err);
    let missing = run(folder.path(), &["config", "check", "nowhere.toml"], "");
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.err.contains("`ichido config init` writes one"), "{}", missing.err);
}

#[test]
fn a_store_that_is_none_is_refused_with_its_place_and_without_its_address() {
    let folder = folder::fresh();
    for (url, why) in [
        ("mysql://x", "names no database that is known"),
        ("ichido.db", "names no database that is known"),
        ("sqlite:", "is no SQLite file"),
        ("sqlite:a.db?mode=ro", "is no SQLite file"),
        ("sqlite::memory:", "is in memory"),
    ] {
        folder.write("mine.toml", &format!("[store]\nurl = \"{url}\"\n"));
        let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.err.contains("mine.toml:2:7 store.url: "), "{url}: {}", checked.err);
        assert!(checked.err.contains(why), "{url}: {}", checked.err);
        assert!(!checked.err.contains("mysql"), "an address may hold a password: {}", checked.err);
    }
    for url in ["postgres://db/ichido", "postgresql://db/ichido"] {
        folder.write("mine.toml", &format!("[store]\nurl = \"{url}\"\n"));
        let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
        assert!(checked.code == Some(0) && checked.out.contains("store: PostgreSQL\n"), "{checked:?}");
    }
}

/// A device has no end, and a pipe may never begin: neither is waited for, and of a file no more is read than a secret may have.
#[test]
fn what_a_secret_refers_to_is_a_file_of_bounded_length() {
    let folder = folder::fresh();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    folder.write("long", &"x".repeat((1 << 20) + 1));
    for (reference, why) in [
        ("/dev/zero", "/dev/zero cannot be read: it is no file"),
        ("pipe", "pipe cannot be read: it is no file"),
        (".", "cannot be read: it is no file"),
        ("long", "long is larger than 1048576 bytes"),
    ] {
        folder.write("mine.toml", &format!("[worker]\naudit_key = \"file:{reference}\"\n"));
        let checked = run(folder.path(), &["config", "check", "mine.toml"], "");
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.err.contains("mine.toml:2:13 worker.audit_key: "), "{}", checked.err);
        assert!(checked.err.contains(why), "{reference}: {}", checked.err);
    }
    let endless = run(folder.path(), &["config", "check", "/dev/zero"], "");
    assert_eq!(endless.code, Some(2), "{endless:?}");
    assert!(endless.err.contains("is larger than 4194304 bytes"), "{}", endless.err);
}
