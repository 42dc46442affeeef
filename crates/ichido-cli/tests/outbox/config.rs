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
    for told in ["SQLite", "orders", "paper", "http://127.0.0.1:8090"] {
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
