//! The options that act on the API, count its effects, or end a run early.

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::command::run;
use crate::folder;
use crate::proxy::service::{FakeService, ReleaseGate, ServiceAction, answer};

/// A service that runs every request, whatever its key, and counts in plain text. A new key with `x-test: slow` is in flight
/// until the next request, and is then lost as a gateway loses it.
async fn counting() -> FakeService {
    let (done, held) = (AtomicUsize::new(0), Mutex::new((HashSet::new(), ReleaseGate::default())));
    FakeService::start(move |request, _| {
        let mut held = held.lock().unwrap();
        held.1.open();
        if request.first.starts_with("GET ") || request.first.contains("/control/") {
            return ServiceAction::ok(&done.load(Ordering::SeqCst).to_string());
        }
        let number = done.fetch_add(1, Ordering::SeqCst);
        let key = request.all("idempotency-key").concat();
        if held.0.insert(key) && request.one("x-test") == Some("slow") {
            held.1 = ReleaseGate::default();
            return ServiceAction::AnswerWhen(held.1.clone(), answer("502 Bad Gateway", &[], ""));
        }
        ServiceAction::Answer(answer("201 Created", &[], &format!("{{\"id\":\"order-{number:08}\"}}")))
    })
    .await
}

fn finding<'a>(report: &'a Value, rule: &str) -> &'a Value {
    let findings = report["runs"][0]["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["rule"] == rule).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_counts_by_command_and_crashes_while_a_request_is_in_flight() {
    let service = counting().await;
    let origin = format!("http://{}", service.address);
    let (url, count, crash) = (
        format!("{origin}/orders"),
        format!("curl -sS -f {origin}/count?of=$PROBE_MARKER"),
        format!("curl -sS -f -X POST {origin}/control/crash"),
    );
    let arguments = [
        &*url,
        "--body",
        r#"{"qty":1}"#,
        "--count-command",
        &count,
        "--crash",
        &crash,
        "--provoke",
        "slow=X-Test: slow",
    ];
    let output = run(&[&arguments[..], &["--json"]].concat()).await;
    assert_eq!(output.code, Some(1), "{}", output.err);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    for (rule, evidence) in
        [("ICH-P06", "2 effects instead of 1"), ("ICH-P25", "2 effects instead of 0 to 1")]
    {
        let finding = finding(&report, rule);
        assert_eq!(
            (&finding["verdict"], &finding["evidence"]),
            (&"fail".into(), &evidence.into()),
            "{finding:#}"
        );
    }
    let transcript = finding(&report, "ICH-P25")["transcript"].as_str().unwrap();
    assert!(
        transcript.contains("sh -c \"$PROBE_CRASH\"") && !transcript.contains("/control/"),
        "{transcript}"
    );
    let of_rule = |rule: &str| {
        format!("GET /count?of=probe-{}-{rule} ", &report["runs"][0]["run"].as_str().unwrap()[6..])
    };
    assert!(service.seen().iter().any(|request| request.first.starts_with(&of_rule("p25"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_tests_a_webhook_consumer() {
    let service = FakeService::plain().await;
    let folder = folder::fresh();
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    let file = folder.write("secret", secret);
    let url = format!("http://{}/hooks", service.address);
    let output =
        run(&["--webhook", &url, "--secret-file", &file, "--body", r#"{"id":"{marker}"}"#, "--json"]).await;
    // It accepts a forged delivery.
    assert_eq!(output.code, Some(1), "{}", output.err);
    let report: Value = serde_json::from_str(&output.out).unwrap();
    let rules: Vec<_> =
        report["runs"][0]["findings"].as_array().unwrap().iter().map(|one| &one["rule"]).collect();
    assert_eq!(rules, ["ICH-W01", "ICH-W02", "ICH-W03", "ICH-W04", "ICH-W05", "ICH-W06"]);
    assert_eq!(finding(&report, "ICH-W01")["verdict"], "pass");
    assert_eq!(finding(&report, "ICH-W02")["evidence"], "a delivery without a signature got 200 ok, not 4xx");
    assert!(service.seen().iter().all(|request| request.one("webhook-id").is_some()));
    assert!(!format!("{}{}", output.out, output.err).contains(&secret[6..]), "{}", output.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_with_warnings_only_exits_with_0() {
    let service = counting().await;
    let folder = folder::fresh();
    let url = format!("http://{}/orders", service.address);
    let arguments = [&*url, "--body", r#"{"qty":1}"#];
    let output = run(&[&arguments[..], &["--json"]].concat()).await;
    let report: Value = serde_json::from_str(&output.out).unwrap();
    let errors = report["runs"][0]["findings"].as_array().unwrap().iter();
    let errors = errors.filter(|one| one["verdict"] == "fail" && one["severity"] == "error");
    let accepted: Vec<String> = errors.map(|one| format!("{}:\"it is naive\"", one["rule"])).collect();
    assert!(report["runs"][0]["warnings"].as_u64().is_some_and(|count| 0 < count), "{report:#}");
    let baseline = folder.write("baseline.json", &format!("{{{}}}", accepted.join(",")));
    let output = run(&[&arguments[..], &["--baseline", &baseline]].concat()).await;
    assert_eq!(output.code, Some(0), "{}{}", output.out, output.err);
    assert!(output.out.contains(" 0 errors, ") && output.out.contains("\nwarning ICH-P"), "{}", output.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_that_reaches_a_bound_fails_and_says_what_it_left_out() {
    let service = counting().await;
    let url = format!("http://{}/orders", service.address);
    let output = run(&[&url, "--body", r#"{"qty":1}"#, "--max-requests", "20"]).await;
    assert_eq!(output.code, Some(1), "{}", output.err);
    let why = "ichido: the run is incomplete: the bound of the run was reached; raise --max-requests or --max-time; \
               not checked: ICH-P07, ICH-P08";
    assert!(output.err.contains(why), "{}", output.err);
    assert!(output.out.contains("the run is incomplete: "), "{}", output.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_probe_recovers_the_api_and_says_what_it_left_out() {
    // From the outage on, no order gets a response.
    let gate = ReleaseGate::default();
    let is_down = Mutex::new(false);
    let held = gate.clone();
    let service = FakeService::start(move |request, _| {
        let mut is_down = is_down.lock().unwrap();
        if request.first.contains("/control/") {
            *is_down = request.first.contains("/outage");
            return ServiceAction::ok("");
        }
        let order = answer("201 Created", &[], "{}");
        if *is_down { ServiceAction::AnswerWhen(held.clone(), order) } else { ServiceAction::Answer(order) }
    })
    .await;
    let origin = format!("http://{}", service.address);
    let control = |word: &str| format!("curl -sS -f -X POST {origin}/control/{word}");
    let url = format!("{origin}/orders");
    let (outage, recover) = (control("outage"), control("recover"));
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_ichido"));
    let body = r#"{"qty":1}"#;
    command.args([
        "probe",
        &url,
        "--body",
        body,
        "--timeout",
        "5m",
        "--outage",
        &outage,
        "--recover",
        &recover,
    ]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_held = |service: &FakeService| {
        let seen = service.seen();
        let outage = seen.iter().position(|request| request.first.contains("/control/outage"));
        outage.is_some_and(|outage| outage + 1 < seen.len())
    };
    let mut count = 1;
    while !is_held(&service) {
        service.until_seen(count).await;
        count += 1;
    }
    let pid = child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    let why = "ichido: the run is incomplete: the run was stopped; not checked: ICH-P27, ICH-P30";
    assert!(err.contains(why), "{err}");
    assert!(service.seen().last().unwrap().first.contains("/control/recover"), "{err}");
    gate.open();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_names_what_is_sent_where_and_what_it_leaves() {
    let output =
        run(&["http://api.example.invalid/orders?token=t0ken-of-ann", "--body", r#"{"qty":1}"#]).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    for part in [
        "sends variants of POST http://api.example.invalid/orders?token=$PROBE_TOKEN with {\"qty\":1}: about ",
        " requests (at most 1000); up to ",
        " take effect, marked probe-",
        ", and nothing removes what they leave",
        "confirm with --yes",
    ] {
        assert!(output.err.contains(part), "{part}: {}", output.err);
    }
    assert!(!output.err.contains("t0ken-of-ann"), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_work_is_found_before_anything_is_sent() {
    let service = counting().await;
    let url = format!("http://{}/orders", service.address);
    let cases: [(&[&str], &str); 5] = [
        (&["--max-requests", "0"], "--max-requests: must be at least 1"),
        (&["--timeout", "0s"], "--timeout: must be more than 0"),
        (&["--max-time", "0s"], "--max-time: must be more than 0"),
        (&["--junit", "/no such folder/probe.xml"], "--junit: cannot write /no such folder/probe.xml"),
        (&["--sarif", "/no such folder/probe.sarif"], "--sarif: cannot write"),
    ];
    for (flags, why) in cases {
        let output = run(&[&[&*url], flags].concat()).await;
        assert!(output.code == Some(2) && output.err.contains(why), "{why}: {}", output.err);
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_not_accepted_ends_the_command() {
    let service = FakeService::start(|_, _| ServiceAction::status("401 Unauthorized")).await;
    let url = format!("http://{}/orders", service.address);
    let output = run(&[&url, "--header", "X-Anything: s3cret-header"]).await;
    let why = "ichido: nothing was tested: the first request was not accepted: 401";
    assert!(output.code == Some(1) && output.err.contains(why), "{}", output.err);
    assert_eq!(service.seen().iter().filter(|request| !request.first.is_empty()).count(), 1);
    let planned = run(&[&url, "--header", "X-Anything: s3cret-header", "--dry-run"]).await;
    assert!(planned.out.contains("$PROBE_X_ANYTHING"), "{}", planned.out);
    assert!(!format!("{}{}{}", output.out, output.err, planned.out).contains("s3cret"), "{}", planned.out);
}
