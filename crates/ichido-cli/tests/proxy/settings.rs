//! What is wrong with a configuration is said at once, in words, and the exit code means something.

use super::folder;
use super::program::{Proxy, run};
use super::service::Service;

#[test]
fn every_problem_is_reported_at_once_with_its_place_and_mend() {
    let (code, out, err) = run(&[
        "proxy",
        "--role",
        "bff",
        "--upstream",
        "https://a/b",
        "--listen",
        "8080",
        "--name",
        "B",
        "--attempts",
        "99",
        "--backoff",
        "3x",
        "--head-timeout",
        "0s",
        "--connections-max",
        "many",
        "--key-on",
        "post",
        "--allow-headers",
        "a b",
        "--boundary",
        "no-such-file.json",
    ]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.starts_with("ichido proxy: 10 problems\n"), "{err}");
    for place in [
        "--upstream",
        "--listen",
        "--name",
        "--attempts",
        "--backoff",
        "--head-timeout",
        "--connections-max",
        "--key-on",
        "--allow-headers",
        "no-such-file.json",
    ] {
        assert!(err.contains(&format!("\n  {place}: ")), "{place} in {err}");
    }
}

#[test]
fn a_boundary_file_is_refused_with_its_line_and_column() {
    let folder = folder::fresh();
    let upstream = "http://127.0.0.1:1";
    let broken = folder.write("broken.json", "{\n  \"boundary\": \"browser_to_bff\",\n  \"http\": 3\n}");
    let (code, _, err) = run(&["proxy", "--role", "bff", "--upstream", upstream, "--boundary", &broken]);
    assert_eq!(code, Some(2));
    assert!(err.contains("broken.json:3:"), "{err}");
    let elsewhere = folder.write("elsewhere.json", "{\"boundary\": \"gateway_to_adapter\"}");
    let (code, _, err) = run(&["proxy", "--role", "bff", "--upstream", upstream, "--boundary", &elsewhere]);
    assert_eq!(code, Some(2));
    assert!(err.contains("neither receives nor sends"), "{err}");
    let owner = folder.write(
        "owner.json",
        "{\"boundary\": \"browser_to_bff\", \"http\": {\"idempotency\": {\"mode\": \"enabled\"}}}",
    );
    let flags =
        ["proxy", "--role", "bff", "--upstream", upstream, "--boundary", &owner, "--boundary", &owner];
    let (code, _, err) = run(&flags);
    assert_eq!(code, Some(2));
    assert!(err.contains("only the adapter completes idempotency"), "{err}");
    assert!(err.contains("a second file about browser_to_bff"), "{err}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_a_failure_and_no_misuse() {
    let service = Service::plain().await;
    let first = Proxy::start("bff", service.address, &[]);
    let (listen, upstream) = (first.address.to_string(), format!("http://{}", service.address));
    let (code, _, err) = run(&["proxy", "--role", "bff", "--upstream", &upstream, "--listen", &listen]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot listen on {listen}")), "{err}");
}

#[test]
fn misuse_of_the_command_line_is_code_2_and_help_is_code_0() {
    assert_eq!(run(&["proxy"]).0, Some(2));
    assert_eq!(run(&["proxy", "--role", "bishop", "--upstream", "http://a"]).0, Some(2));
    let (code, out, _) = run(&["proxy", "--help"]);
    assert_eq!(code, Some(0));
    for heading in ["Passing on:", "Adapter:", "Limits:"] {
        assert!(out.contains(heading), "{out}");
    }
}
