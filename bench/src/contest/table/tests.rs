use super::super::contestant::root;
use super::super::protocol::Task;
use super::super::results::Machine;
use super::super::sample::Sample;
use super::*;

fn results() -> Results {
    let machine = Machine {
        date: "2026-11-18".into(),
        processor: "Xeon".into(),
        cores: 2,
        postgres: "15.18".into(),
        commit: "abc".into(),
    };
    Results { machine, rounds: 3, is_complete: true, is_quick: false, measurements: Vec::new() }
}

fn sample(seconds: f64) -> Sample {
    Sample {
        seconds,
        commits: Some(200),
        wal_bytes: Some(1_200_000),
        process_us: 6_000_000,
        database_us: Some(8_000),
        peak_kib: 51_200,
        p50_us: Some(1_500.0),
        p99_us: Some(250_000.0),
    }
}

fn drained(seconds: &[f64]) -> Measurement {
    let task =
        Task { part: Part::Drain, url: String::new(), count: 1_000, bytes: 200, rate: 0.0, workers: 1 };
    Measurement {
        samples: seconds.iter().map(|it| sample(*it)).collect(),
        ..Measurement::of("Ichido", &task)
    }
}

#[test]
fn a_rate_is_shown_with_its_spread() {
    assert_eq!(ranged(drained(&[0.5, 0.1, 0.2]).rates()), "5,000 [2,000–10,000]");
    assert_eq!(ranged(drained(&[0.5]).rates()), "2,000");
    assert_eq!(ranged(drained(&[]).rates()), NOTHING);
}

#[test]
fn costs_are_per_message() {
    assert_eq!(cost(&drained(&[0.5])), ["400", "5.0", "1,200", "6,000", "8.0", "50"]);
}

#[test]
fn latencies_are_in_milliseconds() {
    assert_eq!(latencies(Some(&drained(&[0.5]))), "1.5 / 250");
    assert_eq!(latencies(None), NOTHING);
}

#[test]
fn numbers_are_grouped_by_thousands() {
    assert_eq!(["1", "12", "999"], [1.0, 12.0, 999.4].map(grouped).each_ref().map(String::as_str));
    assert_eq!(grouped(1_234_567.0), "1,234,567");
}

#[test]
fn only_the_text_between_the_marks_is_replaced() {
    let text = format!("before\n{BEGIN}old\n{END}after\n");
    assert_eq!(between_marks(&text, "new\n"), format!("before\n{BEGIN}new\n{END}after\n"));
}

#[test]
fn each_contestant_has_a_row_in_each_table_of_a_part() {
    let mut all_of_them = results();
    for contestant in &CONTESTANTS {
        let it = Measurement { contestant: contestant.name.to_owned(), ..drained(&[0.5]) };
        all_of_them.measurements.push(it);
    }
    let (one, costs) = (contest(&all_of_them), costs(&all_of_them));
    for contestant in &CONTESTANTS {
        assert!(one.contains(&title(contestant)), "{}", contestant.name);
        assert!(costs.contains(&format!("\n| {} | 400 |", contestant.name)), "{}", contestant.name);
    }
}

#[test]
fn the_pages_show_the_stored_results() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a page");
    let stored = Results::read(&root().join("bench"));
    let remedy = "run `cargo xtask bench report`";
    let readme = read("bench/README.md");
    assert_eq!(between_marks(&readme, &summary(stored.as_ref())), readme, "{remedy}");
    assert_eq!(read("bench/RESULTS.md"), details(stored.as_ref()), "{remedy}");
    let scale = read("docs/scale.md");
    if let Some(stored) = stored {
        assert_eq!(between_marks(&scale, &capacity::text(&stored)), scale, "{remedy}");
    }
}

#[test]
fn before_the_first_run_only_the_contestants_are_listed() {
    assert_eq!(summary(None), "No run is stored yet.\n");
    assert_eq!(details(None), format!("{TITLE}\n{}", settings()));
}

#[test]
fn unfinished_and_quick_runs_say_so() {
    assert!(!heading(&results()).contains("**"));
    assert!(heading(&Results { is_complete: false, ..results() }).contains("**This run is not finished.**"));
    assert!(heading(&Results { is_quick: true, ..results() }).contains("**A quick run"));
}

#[test]
fn a_run_goes_on_only_on_the_same_machine_and_commit() {
    let stored = Results { is_complete: false, ..results() };
    assert!(stored.continues_on(&stored.machine));
    assert!(!results().continues_on(&stored.machine));
    assert!(!stored.continues_on(&Machine { commit: "def".into(), ..stored.machine.clone() }));
}

#[test]
fn goals_are_ratios_within_the_run() {
    let mut measured = results();
    for (name, seconds) in [("Ichido", 0.5), ("awa", 1.0), ("apalis", 2.0), ("least SQL", 0.25)] {
        measured.measurements.push(Measurement { contestant: name.to_owned(), ..drained(&[seconds]) });
    }
    let table = goals::table(&measured);
    assert!(table.contains("| drain, to the fastest peer | 2.00 | ≥ 2.00 | met |"), "{table}");
    assert!(table.contains("| drain, to the least SQL | 0.50 | ≥ 0.60 | **missed** |"), "{table}");
}
