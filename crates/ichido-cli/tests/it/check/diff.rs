//! `--diff` finds what a change loosens, unless its rule is allowed with a reason.

use ichido_boundary::STARTING;
use serde_json::Value;

use super::fixture::{CheckFolder, fresh};

/// The starting set twice, in `old` and in `new`.
fn versions() -> CheckFolder {
    let folder = fresh();
    for (name, text) in STARTING {
        folder.write(&format!("old/{name}"), text);
        folder.write(&format!("new/{name}"), text);
    }
    folder
}

const TTL: (&str, &str) = ("new/gateway_to_adapter.json", "/http/idempotency/enabled/storage/ttl");

#[test]
fn equal_or_stricter_files_loosen_nothing() {
    let folder = versions();
    let nothing = "old files: 4, new files: 4; no change loosens a guarantee\n";
    assert_eq!(folder.check(&["--diff", "old", "new"]).quietly(0), nothing);
    folder.put(TTL.0, TTL.1, r#"{"days": 4}"#);
    assert_eq!(folder.check(&["--diff", "old", "new"]).quietly(0), nothing);
    let back = folder.check(&["--diff", "new", "old"]).quietly(1);
    assert!(back.contains("ICH-B052"), "the reverse change shortens it: {back}");
}

#[test]
fn loosening_is_found_even_if_every_rule_holds() {
    let folder = versions();
    folder.put(TTL.0, TTL.1, r#"{"days": 2}"#);
    folder.check(&["new"]).quietly(0);
    let out = folder.check(&["--diff", "old", "new"]).quietly(1);
    assert!(
        out.starts_with("error ICH-B052: ") && out.contains("\n  where: new/gateway_to_adapter.json:"),
        "{out}"
    );
    assert!(out.contains("\n  what:  retention of outcomes: was 3 days, now 2 days\n"), "{out}");
    let help = "\n  help:  Revert the change, or allow it with a reason: --allow ICH-B052=REASON.\n";
    assert!(out.contains(help), "{out}");
    assert!(out.ends_with("\nold files: 4, new files: 4; 1 change loosens a guarantee\n"), "{out}");
    let json = folder.check(&["--diff", "--format", "json", "old", "new"]).quietly(1);
    let report: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(report["findings"][0]["rule"], "ICH-B052");
}

#[test]
fn old_errors_are_not_reported_as_loosening() {
    let folder = versions();
    for version in ["old", "new"] {
        folder.put(&format!("{version}/adapter.json"), "/observability/redaction", "[]");
    }
    folder.check(&["new"]).quietly(1);
    folder.check(&["--diff", "old", "new"]).quietly(0);
}

#[test]
fn loosening_is_allowed_only_by_its_own_rule() {
    let folder = versions();
    folder.put(TTL.0, TTL.1, r#"{"days": 2}"#);
    let allowed =
        folder.check(&["--diff", "old", "new", "--allow", "ICH-B052=agreed with billing"]).quietly(0);
    assert!(allowed.starts_with("allowed ICH-B052: "), "{allowed}");
    assert!(allowed.contains("\n  reason: agreed with billing\n"), "{allowed}");
    let last = "\nold files: 4, new files: 4; no other change loosens a guarantee, 1 allowed\n";
    assert!(allowed.ends_with(last), "{allowed}");
    folder.put("new/bff_to_gateway.json", "/http/retry/retry_on_status", "[500, 502, 503, 504]");
    let other = folder.check(&["--diff", "old", "new", "--allow", "ICH-B052=agreed with billing"]);
    assert_eq!(other.code, Some(1));
    assert!(other.out.starts_with("error ICH-B022: ") && !other.out.contains("error ICH-B052"), "{other:?}");
}

#[test]
fn removed_file_loosens_guarantees() {
    let folder = versions();
    folder.put("new/bff_to_gateway.json", "", "null");
    let out = folder.check(&["--diff", "old", "new"]).quietly(1);
    assert!(
        out.contains("ICH-B075")
            && out.contains("old/bff_to_gateway.json")
            && out.contains("the file was removed"),
        "{out}"
    );
}

#[test]
fn first_version_with_boundary_files_passes() {
    let folder = versions();
    std::fs::create_dir(folder.path().join("empty")).expect("it can be made");
    // The comparison does not report errors in the new files.
    folder.put("new/adapter.json", "/observability/redaction", "[]");
    for old in ["empty", "missing"] {
        let ended = folder.check(&["--diff", old, "new"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let output = "old files: 0, new files: 4; there is no old guarantee to loosen\n";
        assert_eq!(ended.out, output);
        let noted =
            format!("ichido check: {old}: the old version has no boundary file; nothing was compared\n");
        assert_eq!(ended.err, noted);
        let json = folder.check(&["--diff", "--format", "json", old, "new"]);
        assert_eq!((json.code, json.err), (Some(0), noted));
        assert!(json.out.contains("\"findings\": []"), "{}", json.out);
        // A missing new version is a mistake.
        folder.check(&["--diff", "old", old]).refused();
    }
    // One file is new, the other has changed.
    let (old, new) = (["missing.json", "old/gateway_to_adapter.json"], ["new/bff_to_gateway.json", TTL.0]);
    folder.put(TTL.0, TTL.1, r#"{"days": 2}"#);
    let ended = folder.check(&[&["--diff"], &old[..], &new[..]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("ICH-B052") && ended.err.contains("missing.json"), "{ended:?}");
}

#[test]
fn files_are_split_into_old_and_new() {
    let folder = versions();
    folder.put(TTL.0, TTL.1, r#"{"days": 2}"#);
    let names = |version: &str| STARTING.map(|(name, _)| format!("{version}/{name}"));
    let all = [names("old"), names("new")].concat();
    let arguments: Vec<&str> = std::iter::once("--diff").chain(all.iter().map(String::as_str)).collect();
    assert!(folder.check(&arguments).quietly(1).contains("ICH-B052"));
    let one = folder.check(&["--diff", "old/gateway_to_adapter.json", TTL.0]).quietly(1);
    assert!(one.contains("new files: 1; 1 change loosens") && one.contains("ICH-B052"), "{one}");
}

#[test]
fn unpaired_files_are_refused() {
    let folder = versions();
    let (adapter, gateway) = ("old/adapter.json", "old/gateway_to_adapter.json");
    for (paths, what) in [
        (&["new"][..], "cannot split one path into old and new"),
        (&["old", "new", adapter], "cannot split 3 paths into old and new"),
        (&[adapter, "new"], "are not both files or both folders"),
        (&[adapter, gateway], "describe adapter and gateway_to_adapter"),
        // Three old files and a new one: split in half, they would be paired wrongly.
        (
            &[adapter, gateway, "old/bff_to_gateway.json", "new/adapter.json"],
            "describe adapter and bff_to_gateway",
        ),
    ] {
        let err = folder.check(&[&["--diff"], paths].concat()).refused();
        assert!(err.contains(what), "{paths:?}: {err}");
    }
}

#[test]
fn unreadable_files_of_both_versions_are_reported_together() {
    let folder = versions();
    folder.write("old/adapter.json", "{");
    folder.write("new/adapter.json", "[");
    let err = folder.check(&["--diff", "old", "new"]).refused();
    assert!(err.starts_with("ichido check: 2 problems\n  old/adapter.json:1:2: "), "{err}");
    assert!(err.contains("\n  new/adapter.json:1:2: "), "{err}");
}
