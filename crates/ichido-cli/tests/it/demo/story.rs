//! Every expectation is met, and the suggested commands work.

use super::program::{DemoProcess, ended, ichido, left};
use crate::folder;

/// How much traffic after the scenario is watched; the variable sets more.
const SENT: &str = "ICHIDO_DEMO_SENT";

/// Returns the rows of the final table: count and description.
fn seen(said: &str) -> Vec<(u64, &str)> {
    let rows =
        said.lines().skip_while(|line| *line != "SEEN  WHAT").skip(1).take_while(|line| !line.is_empty());
    rows.map(|row| row.split_once(' ').unwrap())
        .map(|(count, what)| (count.parse().unwrap(), what.trim()))
        .collect()
}

#[test]
fn demo_shows_every_behaviour_and_leaves_nothing_behind() {
    let folder = folder::fresh();
    let (code, said, err) = ended(&folder, &["demo", "--once", "--listen", "127.0.0.1:0"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{said}");
    let seen = seen(&said);
    for what in [
        "sent on the first attempt",
        "the first response was replayed",
        "used for a different request",
        "retried after a backoff",
        "took effect once",
        "parked",
        "permanent error: dead letter",
        "an alert opened",
        "requeued",
        "an operator decided",
        "reconciled",
        "an alert was resolved",
    ] {
        assert!(seen.iter().any(|(count, row)| 0 < *count && row.contains(what)), "{what}: {said}");
    }
    assert!(said.contains("executed 4 orders, none of them twice"), "{said}");
    assert!(said.ends_with("nothing is left behind\n"), "{said}");
    assert_eq!(left(&folder), [""; 0]);
    // A terminal of common width shows every line unbroken.
    let wide = said.lines().filter(|line| 100 < line.chars().count() && !line.contains(" store "));
    assert_eq!(wide.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn demo_traffic_continues_and_shown_commands_work() {
    let count = std::env::var(SENT).map_or(2, |text| text.parse().unwrap());
    let folder = folder::fresh();
    let mut demo = DemoProcess::start(&folder, &["--listen", "127.0.0.1:0"]);
    demo.until("the broker fails three of ten calls");
    for _ in 0..count {
        demo.until(" → ");
    }
    let shown: Vec<String> =
        demo.output.lines().filter_map(|line| Some(line.strip_prefix("   $ ichido ")?.to_owned())).collect();
    assert!(7 < shown.len(), "{shown:?}");
    for command in shown {
        let ran = ichido(folder.path()).args(command.split(' ')).output().unwrap();
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        assert!(!ran.stdout.is_empty(), "{command}");
    }
    let page = demo.output.lines().find_map(|line| line.strip_prefix("   $ curl '")).unwrap();
    let ran =
        std::process::Command::new("curl").args(["-fsS", page.trim_end_matches('\'')]).output().unwrap();
    assert!(ran.status.success() && ran.stdout.starts_with(b"{\"alerts\":["), "{page}");
    demo.interrupt();
    let (code, said, err) = demo.wait();
    assert_eq!((code, err.as_str()), (Some(0), ""), "{said}");
    assert!(seen(&said).iter().all(|(count, _)| 0 < *count), "{said}");
    assert!(said.contains("none of them twice") && said.ends_with("nothing is left behind\n"), "{said}");
    assert_eq!(left(&folder), [""; 0]);
}
