//! Configuration errors are reported all at once, in words and with a meaningful exit code.

use serde_json::json;

use super::program::{ProxyProcess, run};
use super::service::FakeService;
use crate::folder;

#[test]
fn all_boundary_errors_are_reported_with_location_and_help() {
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
        "--max-connections",
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
        "--max-connections",
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
    let twice = folder.boundary("browser_to_bff.json", &json!({}));
    let flags =
        ["proxy", "--role", "bff", "--upstream", upstream, "--boundary", &twice, "--boundary", &twice];
    let (code, _, err) = run(&flags);
    assert_eq!(code, Some(2));
    assert!(err.contains("a second file describes browser_to_bff"), "{err}");
}

#[test]
fn proxy_refuses_to_start_and_lists_all_errors() {
    let folder = folder::fresh();
    let owner = json!({"http": {"idempotency": {"mode": "enabled"}, "retry": {"retry_on_status": [404]}}});
    let file = folder.boundary("browser_to_bff.json", &owner);
    let found = run(&["check", &file]);
    let errors: Vec<&str> = found.1.lines().filter(|line| line.starts_with("error ICH-")).collect();
    assert!(2 <= errors.len(), "{found:?}");
    let upstream = "http://127.0.0.1:1";
    let (code, out, err) = run(&["proxy", "--role", "bff", "--upstream", upstream, "--boundary", &file]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    for error in errors {
        assert!(err.contains(error), "{error} in {err}");
    }
    assert!(err.contains(&format!("{file}:1:")) && err.contains("help: "), "{err}");
}

#[tokio::test]
async fn proxy_starts_with_warnings() {
    let folder = folder::fresh();
    let file = folder.boundary("browser_to_bff.json", &json!({"observability": {"redaction": null}}));
    let (code, out, _) = run(&["check", &file]);
    assert!(code == Some(1) && out.contains("0 errors, 1 warning"), "{out}");
    let service = FakeService::plain().await;
    drop(ProxyProcess::start("bff", service.address, &["--boundary", &file]));
}

#[tokio::test]
async fn port_in_use_is_code_1() {
    let service = FakeService::plain().await;
    let first = ProxyProcess::start("bff", service.address, &[]);
    let (listen, upstream) = (first.address.to_string(), format!("http://{}", service.address));
    let (code, _, err) = run(&["proxy", "--role", "bff", "--upstream", &upstream, "--listen", &listen]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot listen on {listen}")), "{err}");
}

#[test]
fn usage_error_is_code_2_and_help_is_code_0() {
    assert_eq!(run(&["proxy"]).0, Some(2));
    assert_eq!(run(&["proxy", "--role", "bishop", "--upstream", "http://a"]).0, Some(2));
    let (code, out, _) = run(&["proxy", "--help"]);
    assert_eq!(code, Some(0));
    for heading in ["Forwarding:", "Adapter:", "Limits:"] {
        assert!(out.contains(heading), "{out}");
    }
}

#[test]
fn adapter_reports_all_missing_settings() {
    let adapter = |flags: &[&str]| {
        let (code, _, err) =
            run(&[&["proxy", "--role", "adapter", "--upstream", "http://127.0.0.1:1"], flags].concat());
        assert_eq!(code, Some(2), "{err}");
        err
    };
    let bare = adapter(&[]);
    for place in ["--store", "--operation"] {
        assert!(bare.contains(&format!("\n  {place}: ")), "{place} in {bare}");
    }
    let wrong = adapter(&[
        "--store",
        "sqlite:x",
        "--operation",
        "POST /a/{b}",
        "--operation",
        "GET /c",
        "--operation",
        "POST d",
        "--operation",
        "POST /a/{c}",
        "--guarantee",
        "magic",
        "--class",
        "big",
        "--profile",
        "ours",
        "--ttl",
        "1h",
        "--lease",
        "1ms",
        "--identity",
        "jwt:sub",
        "--timeout",
        "1s",
        "--api-keys",
        "keys",
        "--service-key",
        "mine",
    ]);
    for what in [
        "GET changes nothing",
        "\"d\" is not a path pattern",
        "it matches the same requests",
        "\"magic\" is not valid",
        "\"big\" is not valid",
        "\"ours\" is not valid",
        "at least 24 hours, but the TTL is 3600s; raise it, or give a reason (--short-ttl-reason)",
        "the lease must be between",
        "--jwt-algorithm: verifying a JWT needs",
        "--jwt-key: verifying a JWT needs",
        "--jwt-audience: verifying a JWT needs",
        "--timeout: the adapter makes one attempt",
        "--api-keys: no operation takes",
        "--service-key: \"mine\" is not valid",
    ] {
        assert!(wrong.contains(what), "{what} in {wrong}");
    }
}

#[test]
fn adapter_settings_are_refused_for_other_roles() {
    let flags = ["--identity", "single:shop", "--operation", "POST /a", "--ttl", "24h"];
    let (code, _, err) =
        run(&[&["proxy", "--role", "gateway", "--upstream", "http://127.0.0.1:1"], &flags[..]].concat());
    assert_eq!(code, Some(2));
    for flag in ["--identity", "--operation", "--ttl"] {
        assert!(err.contains(&format!("\n  {flag}: only the adapter deduplicates requests")), "{err}");
    }
}

#[test]
fn unusable_verification_keys_are_refused() {
    let folder = folder::fresh();
    let (short, text) = (
        folder.write("short", "too short\n"),
        folder.write("text", "no key at all, though it is long enough"),
    );
    let api_keys = folder.write("api-keys", "# nobody\nplain alice\n");
    let base = [
        "proxy",
        "--role",
        "adapter",
        "--upstream",
        "http://127.0.0.1:1",
        "--store",
        "sqlite:x",
        "--operation",
        "POST /a",
    ];
    for (flags, what) in [
        (
            ["--identity", "jwt:sub", "--jwt-audience", "a", "--jwt-algorithm", "HS256", "--jwt-key", &short]
                .as_slice(),
            "HS256 needs at least 32",
        ),
        (
            &["--identity", "jwt:sub", "--jwt-audience", "a", "--jwt-algorithm", "RS256", "--jwt-key", &text],
            "not a public key for RS256",
        ),
        (
            &["--identity", "jwt:sub", "--jwt-audience", "a", "--jwt-algorithm", "ES256", "--jwt-key", &text],
            "not a public key for ES256",
        ),
        (
            &["--identity", "jwt:sub", "--jwt-audience", "a", "--jwt-algorithm", "none", "--jwt-key", &text],
            "use HS256, RS256 or ES256",
        ),
        (&["--identity", "api-key:x-api-key", "--api-keys", &api_keys], "line 2 is not"),
        (&["--identity", "api-key:x-api-key"], "the hashes of the API keys"),
        (&["--identity", "header:a b"], "is not a header name"),
        (&["--identity", "cookie:a"], "is not an identity source"),
        (&[], "identity is not configured"),
    ] {
        let (code, _, err) = run(&[&base, flags].concat());
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(what) && !err.contains("though it is long"), "{what} in {err}");
    }
}
