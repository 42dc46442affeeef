//! Findings for people and for machines; all formats report the same ones.

use serde_json::Value;

use super::fixture::{CheckFolder, fresh, starting};

/// The starting set with two errors in one file and a warning in another.
fn broken() -> CheckFolder {
    let folder = starting();
    folder.put("bff_to_gateway.json", "/http/retry/retry_on_status", "[502, 500]");
    folder.put(
        "bff_to_gateway.json",
        "/headers/gateway_inbound/allow",
        r#"["ichido-hops", "traceparent", "content-type", "authorization"]"#,
    );
    folder.put("adapter.json", "/observability/redaction", "[]");
    folder
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Rule, severity, file, line and column of each finding, in order.
type FindingRow = (String, String, String, u64, u64);

fn rows(folder: &CheckFolder) -> Vec<FindingRow> {
    let report = parsed(&folder.check(&["--format", "json", "."]).quietly(1));
    let findings = report["findings"].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let whole = |value: &Value| value.as_u64().expect("a whole number");
    findings
        .iter()
        .map(|one| {
            (
                text(&one["rule"]),
                text(&one["severity"]),
                text(&one["file"]),
                whole(&one["line"]),
                whole(&one["column"]),
            )
        })
        .collect()
}

#[test]
fn human_report_has_problem_location_and_help() {
    let folder = starting();
    folder.put("bff_to_gateway.json", "/http/retry/retry_on_status", "[502, 500]");
    let expected = "\
error ICH-B022: A request is retried only after statuses that allow it
  where: bff_to_gateway.json:98:9 (/http/retry/retry_on_status/1)
  what:  the bff would retry after 500
  help:  For a BFF or gateway, use only 502, 503 and 504 in `retry_on_status`; for the browser and the adapter, only 408, 429 and 500 to 599.

why: ichido check --explain ICH-B022
4 files (browser_to_bff, bff_to_gateway, gateway_to_adapter, adapter): 1 error, 0 warnings
";
    let found = folder.check(&["."]).quietly(1);
    let line = found.split("json:").nth(1).and_then(|rest| rest.split(':').next()).expect("a line");
    let text = std::fs::read_to_string(folder.path().join("bff_to_gateway.json")).expect("readable");
    let line: usize = line.parse().expect("a number");
    assert_eq!(text.lines().nth(line - 1).map(str::trim), Some("500"), "the line is that of the value");
    assert_eq!(found, expected.replace(":98:", &format!(":{line}:")));
    assert!(!found.contains('\u{1b}'), "colours are for terminals");
}

#[test]
fn json_report_has_counts_and_complete_findings() {
    let folder = broken();
    let report = parsed(&folder.check(&["--format", "json", "."]).quietly(1));
    assert_eq!((&report["files"], &report["errors"], &report["warnings"]), (&4.into(), &2.into(), &1.into()));
    let findings = report["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 3);
    for finding in findings {
        for member in ["rule", "severity", "file", "pointer", "what", "title", "why", "help"] {
            assert!(finding[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {finding}");
        }
    }
    let clean = parsed(&starting().check(&["--format", "json", "."]).quietly(0));
    assert_eq!(clean, parsed(r#"{"files": 4, "errors": 0, "warnings": 0, "findings": [], "allowed": []}"#));
}

#[test]
fn sarif_report_matches_schema_and_locations() {
    let folder = broken();
    let log = parsed(&folder.check(&["--format", "sarif", "."]).quietly(1));
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().is_some_and(|schema| schema.ends_with("sarif-2.1.0.json")));
    let [run] = log["runs"].as_array().expect("runs").as_slice() else { panic!("one run") };
    let driver = &run["tool"]["driver"];
    assert_eq!(
        (&driver["name"], &driver["version"]),
        (&"ichido check".into(), &env!("CARGO_PKG_VERSION").into())
    );
    let rules = driver["rules"].as_array().expect("rules");
    for rule in rules {
        assert!(rule["id"].is_string() && rule["shortDescription"]["text"].is_string(), "{rule}");
        assert!(rule["help"]["text"].is_string() && rule["help"]["markdown"].is_string(), "{rule}");
        assert!(
            matches!(rule["defaultConfiguration"]["level"].as_str(), Some("error" | "warning")),
            "{rule}"
        );
    }
    let results = run["results"].as_array().expect("results");
    let places = results.iter().map(|result| {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("a small one");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert_eq!(result["suppressions"], parsed("[]"), "with all results or with none");
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()));
        let [location] = result["locations"].as_array().expect("locations").as_slice() else {
            panic!("one place")
        };
        let place = &location["physicalLocation"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let whole = |value: &Value| value.as_u64().filter(|whole| 1 <= *whole).expect("one or more");
        let (uri, region) = (text(&place["artifactLocation"]["uri"]), &place["region"]);
        (
            text(&result["ruleId"]),
            text(&result["level"]),
            uri,
            whole(&region["startLine"]),
            whole(&region["startColumn"]),
        )
    });
    assert_eq!(places.collect::<Vec<FindingRow>>(), rows(&folder));
    let clean = parsed(&starting().check(&["--format", "sarif", "."]).quietly(0));
    assert_eq!(clean["runs"][0]["results"], parsed("[]"), "nothing found is said as well");
}

#[test]
fn github_report_has_one_annotation_per_finding() {
    let folder = broken();
    let out = folder.check(&["--format", "github", "."]).quietly(1);
    let places = out.lines().map(|line| {
        let (command, message) =
            line.strip_prefix("::").and_then(|rest| rest.split_once("::")).expect("a command");
        assert!(message.contains("%0AHelp: "), "{line}");
        let (severity, properties) = command.split_once(' ').expect("properties");
        let values: Vec<(&str, &str)> =
            properties.split(',').map(|property| property.split_once('=').expect("a property")).collect();
        let [("file", file), ("line", line), ("col", column), ("title", title)] = values[..] else {
            panic!("{values:?}")
        };
        let rule = title.split("%3A").next().expect("an id").to_owned();
        let whole = |text: &str| text.parse().expect("a whole number");
        (rule, severity.to_owned(), file.to_owned(), whole(line), whole(column))
    });
    assert_eq!(places.collect::<Vec<FindingRow>>(), rows(&folder));
    assert_eq!(starting().check(&["--format", "github", "."]).quietly(0), "");
}

#[test]
fn file_name_cannot_end_an_annotation() {
    let folder = fresh();
    folder.write("a,b:c%.json", r#"{"boundary": "browser_to_bff"}"#);
    let out = folder.check(&["--format", "github", "."]).quietly(1);
    assert!(out.lines().all(|line| line.contains(" file=a%2Cb%3Ac%25.json,line=1,col=")), "{out}");
}

#[test]
fn human_report_lists_errors_first_and_totals_last() {
    let out = broken().check(&["."]).quietly(1);
    let heads = out.lines().filter(|line| line.starts_with("error ") || line.starts_with("warning "));
    let heads: Vec<&str> = heads.map(|line| line.split(':').next().unwrap_or_default()).collect();
    assert_eq!(heads, ["error ICH-B010", "error ICH-B022", "warning ICH-B090"]);
    assert!(out.ends_with(": 2 errors, 1 warning\n"), "{out}");
    let folder = starting();
    let alone = folder.check(&["bff_to_gateway.json"]).quietly(0);
    let output = "1 file (bff_to_gateway; no file for browser_to_bff, gateway_to_adapter, adapter), ";
    assert!(alone.starts_with(output), "{alone}");
}

#[test]
fn allowed_findings_appear_in_every_format() {
    let folder = starting();
    folder.put("adapter.json", "/observability/redaction", "[]");
    let shown = |format| folder.check(&["--format", format, "--allow", "ICH-B090=50%, agreed: ops", "."]);
    let json = parsed(&shown("json").quietly(0));
    assert_eq!((&json["warnings"], &json["findings"]), (&0.into(), &parsed("[]")));
    let allowed = &json["allowed"][0];
    assert_eq!((&allowed["rule"], &allowed["reason"]), (&"ICH-B090".into(), &"50%, agreed: ops".into()));
    let github = shown("github").quietly(0);
    assert!(github.starts_with("::notice file=adapter.json,line="), "{github}");
    assert!(github.contains(",title=allowed ICH-B090%3A ") && github.lines().count() == 1, "{github}");
    assert!(github.ends_with("%0AAllowed: 50%25, agreed: ops\n"), "{github}");
    let sarif = parsed(&shown("sarif").quietly(0));
    let [result] = sarif["runs"][0]["results"].as_array().expect("results").as_slice() else { panic!("one") };
    let suppression = &result["suppressions"][0];
    assert_eq!(suppression, &parsed(r#"{"kind": "external", "justification": "50%, agreed: ops"}"#));
    let mermaid = shown("mermaid");
    assert_eq!(mermaid.code, Some(0));
    assert!(mermaid.err.contains("allowed ICH-B090: ") && !mermaid.out.contains("ICH-B090"), "{mermaid:?}");
}

#[cfg(unix)]
#[test]
fn odd_file_names_are_escaped_for_people_and_complete_for_machines() {
    let folder = fresh();
    let name = "a\u{202e}b \\c\n::error::\u{1b}[2J.json";
    folder.write(name, r#"{"boundary": "browser_to_bff", "headers": {"x\u202e\n,:%": {"allow": []}}}"#);
    let shown = |format| folder.check(&["--format", format, "."]).quietly(1);
    let sarif = parsed(&shown("sarif"));
    let uri = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "a%E2%80%AEb%20%5Cc%0A%3A%3Aerror%3A%3A%1B%5B2J.json");
    assert_eq!(parsed(&shown("json"))["findings"][0]["file"], name);
    let github = shown("github");
    assert!(
        github.lines().all(|line| line.starts_with("::error file=a") || line.starts_with("::warning file=a"))
    );
    assert!(github.contains("b \\c%0A%3A%3Aerror%3A%3A\\u{1b}[2J.json,line=1,"), "{github}");
    assert!(github.contains(r"(/headers/x\u{202e}\n,:%25/allow)"), "{github}");
    let human = shown("human");
    assert!(human.contains(r"(/headers/x\u{202e}\n,:%/allow)"), "{human}");
    for text in [human, github] {
        let steers = |one: char| (one.is_control() && one != '\n') || one == '\u{202e}';
        assert!(!text.contains(steers), "{text:?}");
    }
}

#[test]
fn mermaid_shows_broken_links_in_red() {
    let folder = broken();
    let expected = r#"flowchart LR
    browser0["browser<br/>creates the key"]
    bff0["bff<br/>requires and passes the key"]
    gateway0["gateway<br/>requires and passes the key"]
    adapter0["adapter<br/>owns the outcome"]
    service0["service<br/>does the work"]
    browser0 -->|"3 attempts of POST PUT PATCH DELETE, 15000 ms each"| bff0
    bff0 -->|"2 attempts of POST, 7000 ms each<br/>ICH-B010<br/>ICH-B022"| gateway0
    gateway0 -->|"one attempt, 6500 ms"| adapter0
    adapter0 -->|"one attempt, 4000 ms<br/>ICH-B090"| service0
    linkStyle 1 stroke:#c00,stroke-width:3px,color:#c00
"#;
    assert_eq!(folder.check(&["--format", "mermaid", "."]).quietly(1), expected);
    let clean = starting().check(&["--format", "mermaid", "."]).quietly(0);
    assert!(clean.starts_with("flowchart LR\n") && !clean.contains("linkStyle"), "{clean}");
}

#[test]
fn machine_formats_report_unreadable_files() {
    let folder = starting();
    folder.write("adapter.json", "{\n  3");
    let arguments = |format| ["--format", format, ".", "gone.json"];
    let json = folder.check(&arguments("json"));
    let report = parsed(&json.out);
    let findings = report["findings"].as_array().expect("a list");
    let told: Vec<_> = findings.iter().map(|one| (&one["rule"], &one["file"], &one["line"])).collect();
    let rule = Value::from("ICH-B000");
    assert_eq!(told, [(&rule, &"adapter.json".into(), &2.into()), (&rule, &"gone.json".into(), &1.into())]);
    let sarif = folder.check(&arguments("sarif"));
    assert_eq!(parsed(&sarif.out)["runs"][0]["results"].as_array().map(Vec::len), Some(2));
    let github = folder.check(&arguments("github"));
    assert!(
        github.out.starts_with("::error file=adapter.json,line=2,col=3,title=ICH-B000"),
        "{}",
        github.out
    );
    assert!(github.out.contains("::no such file or folder%0A"), "{}", github.out);
    let mermaid = folder.check(&arguments("mermaid"));
    assert_eq!(mermaid.out, "", "half a way is not drawn");
    for ended in [json, sarif, github, mermaid] {
        assert_eq!(ended.code, Some(2));
        assert!(ended.err.starts_with("ichido check: 2 problems\n  adapter.json:2:3: "), "{}", ended.err);
    }
}
