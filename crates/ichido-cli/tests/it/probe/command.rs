//! The command: what it asks, prints and writes.

use std::process::{Command, Stdio};

use ichido_probe::rules;
use serde_json::{Value, json};

use crate::folder::{self, TempFolder};
use crate::proxy::service::{FakeService, ServiceAction, answer};

/// The exit code and output of a run.
#[derive(Debug)]
pub(super) struct ProbeOutput {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// Runs `ichido probe` to its end, without blocking the test's own services.
pub(super) async fn probe(arguments: &[String]) -> ProbeOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    command.arg("probe").args(arguments).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    ProbeOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub(super) async fn run(arguments: &[&str]) -> ProbeOutput {
    probe(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>()).await
}

/// A service that runs every request, whatever its key.
async fn naive() -> FakeService {
    FakeService::start(|request, before| {
        if request.first.starts_with("GET ") {
            return ServiceAction::ok(&format!("{{\"total\":{before}}}"));
        }
        ServiceAction::Answer(answer("201 Created", &[], &format!("{{\"id\":\"order-{before:08}\"}}")))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_shows_broken_rules_with_replayable_commands() {
    let service = naive().await;
    let url = format!("http://{}/orders", service.address);
    let secret = "Authorization: Bearer s3cret";
    let output = run(&[&url, "--body", r#"{"qty":1}"#, "--header", secret]).await;
    assert_eq!(output.code, Some(1), "{}", output.err);
    for part in [
        "error ICH-P06: A retry gets the first response\n",
        "  expected: same status and body, `Idempotency-Replayed: true`",
        "  fix:      Store status and body under the key",
        "    curl -sS -i -X POST 'http://127.0.0.1:",
        "    # -> 201 {\"id\":\"order-",
        "requests were sent; what they created is marked probe-",
    ] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    assert!(!output.out.contains("s3cret") && !output.err.contains("s3cret"), "{}", output.out);
    assert!(output.err.contains("sends variants of POST http://127.0.0.1:"), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dry_run_shows_every_request_and_sends_none() {
    let service = naive().await;
    let url = format!("http://{}/orders", service.address);
    let output = run(&[&url, "--body", r#"{"qty":1}"#, "--dry-run"]).await;
    assert_eq!((output.code, service.seen().len()), (Some(0), 0), "{}", output.err);
    assert!(
        output.out.contains("(100 at once)") && output.out.contains("nothing was sent"),
        "{}",
        output.out
    );
    assert!(output.out.contains("## ICH-P25: A crash does not cause a second effect\n# not applicable: "));
    let json: Value = serde_json::from_str(&run(&[&url, "--dry-run", "--json"]).await.out).unwrap();
    assert!(json["requests"].as_u64().is_some_and(|count| 100 < count), "{json}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_the_machine_without_consent() {
    // A name for documentation; it is not looked up.
    let output = run(&["http://api.example.invalid/orders"]).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.err.contains("--yes") && output.err.contains("http://api.example.invalid/orders"),
        "{}",
        output.err
    );
}

/// Writes a document with these servers and an operation that takes a quantity; returns its path.
fn document(folder: &TempFolder, servers: &Value) -> String {
    let schema =
        json!({ "type": "object", "required": ["qty"], "properties": { "qty": { "type": "integer" } } });
    let body = json!({ "requestBody": { "content": { "application/json": { "schema": schema } } } });
    let paths = json!({
        "/orders": { "get": {}, "post": body },
        "/orders/{id}": { "delete": {} },
        "/refunds": { "servers": [{ "url": "https://refunds.example.invalid" }], "post": {} },
    });
    folder.write("api.json", &json!({ "servers": servers, "paths": paths }).to_string())
}

fn probed(output: &ProbeOutput) -> Vec<String> {
    let report: Value =
        serde_json::from_str(&output.out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    report["runs"].as_array().unwrap().iter().map(|run| run["url"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_of_a_document_is_asked_for() {
    let service = naive().await;
    let folder = folder::fresh();
    let file = document(&folder, &json!([]));
    let url = format!("http://{}/v1", service.address);
    let asked = run(&[&url, "--openapi", &file]).await;
    assert_eq!((asked.code, service.seen().len()), (Some(2), 0), "{asked:?}");
    let output = run(&[&url, "--openapi", &file, "--yes", "--json"]).await;
    assert!(output.err.contains("DELETE /orders/{id} is skipped: its path has parameters"), "{}", output.err);
    assert_eq!(probed(&output), [format!("{url}/orders"), format!("{url}/refunds")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_a_document_are_where_its_operations_are() {
    let service = naive().await;
    let folder = folder::fresh();
    let address = service.address.to_string();
    let variables = json!({ "at": { "default": address }, "version": { "default": "v2" } });
    let file = document(&folder, &json!([{ "url": "http://{at}/{version}", "variables": variables }]));
    let output = run(&["--openapi", &file, "--yes", "--json"]).await;
    assert_eq!(probed(&output), [format!("http://{address}/v2/orders")]);
    let elsewhere = "POST /refunds is skipped: it is at https://refunds.example.invalid; pass that URL";
    assert!(output.err.contains(elsewhere), "{}", output.err);
    // With a URL, its host is used, and the server's path if the URL has none.
    let file = document(&folder, &json!([{ "url": "v3/" }]));
    let output = run(&[&format!("http://{address}"), "--openapi", &file, "--yes", "--json"]).await;
    assert_eq!(probed(&output), [format!("http://{address}/v3/orders"), format!("http://{address}/refunds")]);
    let output = run(&["--openapi", &file]).await;
    assert_eq!(output.code, Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pasted_curl_commands_become_targets() {
    let service = naive().await;
    let folder = folder::fresh();
    let file = folder.write("order.json", "{\"qty\":1}");
    let url = format!("http://{}/orders", service.address);
    let data = format!("@{file}");
    let line = [
        "--json",
        "--",
        "curl",
        "-sX",
        "POST",
        &url,
        "-H",
        "Host: other",
        "-H",
        "idempotency-key: old",
        "--json",
        &data,
        "-u",
        "ann:s3cret",
    ];
    let output = run(&line).await;
    assert_eq!(probed(&output), std::slice::from_ref(&url));
    assert!(output.err.contains("the header Host is not sent"), "{}", output.err);
    for request in service.seen() {
        assert_eq!(request.all("host"), [service.address.to_string()]);
        assert!(!request.all("idempotency-key").contains(&"old"), "{request:?}");
        assert_eq!(request.one("authorization"), Some("Basic YW5uOnMzY3JldA=="));
    }
    assert!(!output.out.contains("YW5uOnMzY3JldA"), "{}", output.out);
    let refused = run(&["--", "curl", "-k", &url]).await;
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("-k is not supported: the probe verifies certificates"), "{}", refused.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn baseline_accepts_what_it_names_and_reports_are_written() {
    let service = naive().await;
    let folder = folder::fresh();
    let url = format!("http://{}/orders", service.address);
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (junit, sarif, baseline) = (file("probe.xml"), file("probe.sarif"), file("probe.json"));
    let plain = run(&[
        "--json", "--junit", &junit, "--sarif", &sarif, "--", "curl", "-X", "POST", "-d", "qty=1", &url,
    ])
    .await;
    let report: Value = serde_json::from_str(&plain.out).unwrap();
    let findings = report["runs"][0]["findings"].as_array().unwrap();
    let failed: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["verdict"] == "fail")
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect();
    assert!(failed.contains(&"ICH-P06") && plain.code == Some(1), "{failed:?}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert_eq!(xml.matches("<failure ").count(), failed.len());
    let log: Value = serde_json::from_str(&std::fs::read_to_string(&sarif).unwrap()).unwrap();
    assert_eq!(log["runs"][0]["results"].as_array().map(Vec::len), Some(failed.len()));

    let accepted: Vec<String> = failed.iter().map(|id| format!("\"{id}\":\"it is naive\"")).collect();
    folder.write("probe.json", &format!("{{{},\"ICH-P25\":\"never\"}}", accepted.join(",")));
    let output = run(&["--baseline", &baseline, "--", "curl", "-X", "POST", "-d", "qty=1", &url]).await;
    assert_eq!(output.code, Some(0), "{}", output.out);
    assert!(output.err.contains("the baseline lists ICH-P25, which is not broken"), "{}", output.err);
    assert!(output.out.contains(&format!("{} accepted", failed.len())), "{}", output.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_probe_flags_are_reported_together() {
    let flags = [
        "http://127.0.0.1:1/",
        "--profile",
        "own",
        "--provoke",
        "often=x",
        "--count",
        "POST /a",
        "--max-time",
        "soon",
    ];
    let output = run(&flags).await;
    assert_eq!(output.code, Some(2));
    for part in ["4 problems", "--profile", "--provoke", "--count", "--max-time"] {
        assert!(output.err.contains(part), "{part}: {}", output.err);
    }
    assert!(rules().count() == 36, "the help says how many");
}

/// Each command of the guides, as somebody pastes it, but without sending anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_the_guides_are_understood() {
    const GUIDES: [&str; 2] = [
        include_str!("../../../../../docs/guides/probe.md"),
        include_str!("../../../../../docs/guides/acp.md"),
    ];
    let folder = folder::fresh();
    document(&folder, &json!([]));
    std::fs::rename(folder.path().join("api.json"), folder.path().join("openapi.json")).unwrap();
    folder.write("secret.txt", "whsec_cGxKM25teUNER0JLSW5hdmRPSzE1anNs");
    let program = env!("CARGO_BIN_EXE_ichido");
    let mut found = 0;
    for block in GUIDES.iter().flat_map(|guide| guide.split("```sh\n").skip(1)) {
        let block = block.split("```").next().unwrap();
        if !block.starts_with("ichido probe ") {
            continue;
        }
        let command = block.replace("ichido probe ", &format!("{program} probe --dry-run "));
        let output = Command::new("sh").args(["-c", &command]).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{block}: {}", String::from_utf8_lossy(&output.stderr));
        found += 1;
    }
    assert!(4 < found, "{found} commands");
}
