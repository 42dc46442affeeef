//! Findings, for people and for machines.

use ichido_boundary::report::{Findings, github, json, mermaid, people, sarif, summary};
use ichido_boundary::{Boundary, Finding, check, rules};
use serde_json::Value;

use super::set::{Set, value};

/// The starting set with one status too many and a header that is dropped.
fn broken() -> (Vec<Boundary>, Vec<Finding>) {
    let set = Set::starting().with("bff_to_gateway.json", "/http/retry/retry_on_status", "[409, 503]").with(
        "gateway_to_adapter.json",
        "/headers/gateway_outbound/drop",
        r#"["ichido-hops"]"#,
    );
    let files = set.read().unwrap_or_else(|error| panic!("{error}"));
    let findings = check(&files);
    (files, findings)
}

#[test]
fn text_report_shows_location_problem_and_help() {
    let (files, findings) = broken();
    let found = Findings::open(&findings);
    let text = people(&found);
    let first = text.split("\n\n").next().unwrap_or_default();
    let expected = "error ICH-B022: A request is retried only after statuses that allow it
  where: bff_to_gateway.json:80:9 (/http/retry/retry_on_status/0)
  what:  the bff would retry after 409
  help:  For a BFF or gateway, use only 502, 503 and 504 in `retry_on_status`; for the browser and the adapter, only 408, 429 and 500 to 599.";
    assert_eq!(first, expected);
    assert_eq!(files[1].text().lines().nth(80 - 1).map(str::trim), Some("409,"));
    let judged = "4 files (browser_to_bff, bff_to_gateway, gateway_to_adapter, adapter)";
    assert_eq!(summary(&found, &files), format!("{judged}: 1 error, 1 warning\n"));
    let none = Findings::open(&[]);
    let clean = format!("{judged}, {} rules: no findings\n", rules().count());
    assert_eq!((people(&none), summary(&none, &files)), (String::new(), clean));
}

#[test]
fn findings_are_sorted_by_location() {
    let (mut files, findings) = broken();
    files.reverse();
    assert_eq!(check(&files), findings);
    assert!(findings.is_sorted_by_key(|finding| &finding.place));
}

#[test]
fn json_has_every_part_of_a_finding() {
    let (files, findings) = broken();
    let report = value(&json(&Findings::open(&findings), files.len()));
    assert_eq!((&report["files"], &report["errors"], &report["warnings"]), (&4.into(), &1.into(), &1.into()));
    let first = &report["findings"][0];
    assert_eq!(first["rule"], "ICH-B022");
    assert_eq!(first["severity"], "error");
    assert_eq!(first["file"], "bff_to_gateway.json");
    assert_eq!((&first["line"], &first["column"]), (&80.into(), &9.into()));
    assert_eq!(first["pointer"], "/http/retry/retry_on_status/0");
    assert_eq!(first["what"], "the bff would retry after 409");
    assert!(
        ["title", "why", "help"].iter().all(|part| first[part].as_str().is_some_and(|text| !text.is_empty()))
    );
    assert_eq!(value(&json(&Findings::open(&[]), 0))["findings"], Value::Array(Vec::new()));
}

#[test]
fn sarif_lists_all_rules_and_points_into_them() {
    let (_, mut findings) = broken();
    findings[0].place.file = "a b/\u{e9}.json".to_owned();
    let report = value(&sarif(&Findings::open(&findings), "0.1.0"));
    assert_eq!(report["version"], "2.1.0");
    let run = &report["runs"][0];
    let listed = run["tool"]["driver"]["rules"].as_array().expect("a list");
    assert_eq!(listed.len(), rules().count());
    for (result, finding) in run["results"].as_array().expect("a list").iter().zip(&findings) {
        let index =
            result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).expect("an index");
        assert_eq!(listed[index]["id"], finding.rule.id);
        assert_eq!(result["ruleId"], finding.rule.id);
        assert_eq!(result["level"], finding.rule.severity.as_str());
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert_eq!(region["startLine"], finding.place.at.line);
        assert_eq!(region["startColumn"], finding.place.at.column);
    }
    let uri = &run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "a%20b/%C3%A9.json");
}

#[test]
fn text_of_a_finding_cannot_end_a_workflow_command() {
    let (_, mut findings) = broken();
    findings.truncate(1);
    findings[0].place.file = "a,b:c.json".to_owned();
    findings[0].what = "50%\n::error::forged".to_owned();
    let text = github(&Findings::open(&findings));
    let start = "::error file=a%2Cb%3Ac.json,line=80,col=9,title=ICH-B022%3A A request is retried";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains(r"::50%25\n::error::forged (/http/retry/retry_on_status/0)%0AHelp: "), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn text_from_files_is_escaped_for_the_terminal() {
    let method = format!("\u{1b}[31m{}", "x".repeat(5_000));
    let text = serde_json::json!({ "boundary": "bff_to_gateway", "http": { "methods": { "allowed": [method] } },
        "headers": { "\u{1b}[2J": { "allow": [] } } });
    let file =
        Boundary::read("b.json", text.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let findings = check(&[file]);
    assert!(findings.iter().any(|finding| finding.rule.id == "ICH-B004"));
    assert!(findings.iter().all(|finding| finding.what.chars().count() <= 400));
    let text = people(&Findings::open(&findings));
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.contains(r"/headers/\u{1b}[2J/allow"), "{text}");
}

#[test]
fn drawing_shows_roles_and_broken_links() {
    let (files, findings) = broken();
    let expected = "flowchart LR
    browser0[\"browser<br/>creates the key\"]
    bff0[\"bff<br/>requires and passes the key\"]
    gateway0[\"gateway<br/>requires and passes the key\"]
    adapter0[\"adapter<br/>owns the outcome\"]
    service0[\"service<br/>does the work\"]
    browser0 -->|\"3 attempts of POST PUT PATCH DELETE, 15000 ms each\"| bff0
    bff0 -->|\"2 attempts of POST, 7000 ms each<br/>ICH-B022\"| gateway0
    gateway0 -->|\"one attempt, 6500 ms<br/>ICH-B013\"| adapter0
    adapter0 -->|\"one attempt, 4000 ms\"| service0
    linkStyle 1 stroke:#c00,stroke-width:3px,color:#c00
";
    assert_eq!(mermaid(&files, &findings), expected);
}

#[test]
fn the_drawing_shows_where_a_file_is_missing() {
    let files = Set::starting().with("bff_to_gateway.json", "", "null").read().expect("they are readable");
    let drawing = mermaid(&files, &check(&files));
    assert!(drawing.contains("    bff0 -.->|\"no file\"| gateway0\n"), "{drawing}");
    assert!(drawing.contains("|\"one attempt, 6500 ms<br/>ICH-B075\"|"), "{drawing}");
}
