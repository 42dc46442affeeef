//! Members that look as if they were read, and are not.

use ichido_boundary::{MAX_UNKNOWN, check};

use crate::set::{ADAPTER, BFF, BROWSER, ENABLED, GATEWAY, Set, finds};
use crate::{read, wild};

/// Where the rule finds something, and its text.
#[track_caller]
fn typos(set: &Set) -> Vec<(String, String)> {
    let misspelled = set.findings().into_iter().filter(|one| one.rule.id == "ICH-B006");
    misspelled.map(|one| (one.place.pointer, one.what)).collect()
}

#[test]
fn misspelled_member_is_reported() {
    for (file, pointer, meant) in [
        (BFF, "/http/retries", "retry"),
        (BFF, "/http/Retry", "retry"),
        (BFF, "/header", "headers"),
        (BFF, "/http/retry/maxAttempts", "max_attempts"),
        (BFF, "/http/idempotency/validateOnly", "validate_only"),
        (BROWSER, "/cors/exposed_header", "exposed_headers"),
        (GATEWAY, "/http/idempotency/enabled/requireKey", "require_key"),
        (ADAPTER, "/operations/orders.create/Class", "class"),
    ] {
        let (holder, _) = pointer.rsplit_once('/').expect("it is a pointer");
        let known = format!("{holder}/{meant}");
        // Read or not, a member under its right name stays as it is, unless it is another word.
        let set = Set::starting().with(file, pointer, r#""x""#);
        let set = if typos(&set).is_empty() { set.without(file, &known) } else { set };
        let what = format!("unknown member, which is ignored; did you mean `{meant}`?");
        assert_eq!(typos(&set), [(pointer.to_owned(), what)]);
    }
}

/// The file looks as if it changed the fingerprint, and nothing reads the change.
#[test]
fn slip_beside_the_known_member_is_reported() {
    let pointer = "/http/idempotency/enabled/fingerprnt";
    let found = typos(&Set::starting().with(GATEWAY, pointer, r#"{"include":["identity"]}"#));
    let what = "unknown member, which is ignored; did you mean `fingerprint`?";
    assert_eq!(found, [(pointer.to_owned(), what.to_owned())]);
}

#[test]
fn members_of_other_names_are_not_typos() {
    for (file, pointer) in [
        (BFF, "/version"),
        (BFF, "/owners"),
        (BFF, "/http/retry/jitter"),
        (BFF, "/http/timeouts/connect_timeout_ms"),
        (BROWSER, "/cors/allowed_origins"),
        (BROWSER, "/cors/allowed_methods"),
        (GATEWAY, "/http/idempotency/enabled/storage/table"),
        (GATEWAY, "/http/idempotency/enabled/owners"),
    ] {
        finds(file, pointer, r#""x""#, &[]);
    }
    assert!(check(&wild()).iter().all(|one| one.rule.id != "ICH-B006"));
}

#[test]
fn misspelled_guarantees_next_to_the_mode_are_reported() {
    let flat = read(
        r#"{"boundary":"gateway_to_adapter","http":{"idempotency":{"mode":"enabled","Owner":"adapter",
            "storage":{"TTL":{"days":3}}}}}"#,
    );
    let found: Vec<&str> = flat.misspelled_members().iter().map(|one| one.pointer.as_str()).collect();
    assert_eq!(found, ["/http/idempotency/Owner", "/http/idempotency/storage/TTL"]);
}

#[test]
fn many_unknown_members_hide_no_misspelled_one() {
    let mut set = Set::starting();
    let members = set.file(GATEWAY)["http"].as_object_mut().expect("an object");
    members.extend((0..=MAX_UNKNOWN).map(|number| (format!("a{number}"), true.into())));
    members.insert("Retry".to_owned(), true.into());
    assert_eq!(set.broken(), ["ICH-B006"]);
    finds(GATEWAY, &format!("{ENABLED}/Storage"), "{}", &["ICH-B006"]);
}
