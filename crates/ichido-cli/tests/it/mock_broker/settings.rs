//! Errors in the flags are reported all at once.

use super::broker::run;

#[test]
fn all_flag_errors_are_reported_together() {
    let (code, err) = run(&[
        "mock-broker",
        "--listen",
        "here",
        "--latency",
        "soon",
        "--slow",
        "2h",
        "--retry-after",
        "1500ms",
        "--fault",
        "nonsense=1",
        "--fault",
        "slow",
        "--fault",
        "reset_after=0.6",
        "--fault",
        "reset_before=0.6",
    ]);
    assert_eq!(code, Some(2));
    assert!(err.starts_with("ichido mock-broker: 7 problems\n"), "{err}");
    for place in ["--listen: ", "--latency: ", "--slow: ", "--retry-after: ", "--fault: "] {
        assert!(err.lines().any(|line| line.trim_start().starts_with(place)), "{place} is not in\n{err}");
    }
}

#[test]
fn address_in_use_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    let (code, err) = run(&["mock-broker", "--listen", &address]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot listen on {address}")), "{err}");
}
