use proptest::prelude::*;

use super::*;
use crate::digest::{BodyRules, is_same_body};

const PARTS: RequestParts<'static> = RequestParts {
    operation: "orders.create",
    identity: "tenant-1/alice",
    method: "POST",
    path: "/v1/orders",
    query: "dry=0",
    media_type: "application/json",
    digest: Digest::from_bytes([7; 32]),
    inputs: None,
};

/// A further input with these values.
fn tenant(values: &[&str]) -> Option<Inputs> {
    Inputs::new([("claims/tenant_id", values)])
}

/// Two tenants whose requests differ in nothing else must not share a response.
#[test]
fn every_further_input_counts_and_none_runs_into_the_next() {
    let none: [(&str, &[&str]); 0] = [];
    assert_eq!(Inputs::new(none), None, "stored fingerprints still match");
    let of = |inputs: &[(&str, &[&str])]| Inputs::new(inputs.iter().copied());
    let others = [
        of(&[("a", &["b"])]),
        of(&[("a", &["c"])]),
        of(&[("a", &[])]),
        of(&[("a", &[""])]),
        of(&[("a", &["", ""])]),
        of(&[("a", &["b", "c"])]),
        of(&[("a", &["bc"])]),
        of(&[("a", &["b"]), ("c", &[])]),
        of(&[("a", &[]), ("b", &["c"])]),
        of(&[("ab", &[])]),
    ];
    for (index, one) in others.iter().enumerate() {
        assert!(!others[index + 1..].contains(one), "{index}");
    }
    assert_eq!(tenant(&["a"]), tenant(&["a"]));
}

#[test]
fn every_part_counts() {
    let first = Fingerprint::new(&PARTS);
    let others = [
        RequestParts { operation: "orders.cancel", ..PARTS },
        RequestParts { identity: "tenant-2/alice", ..PARTS },
        RequestParts { method: "PATCH", ..PARTS },
        RequestParts { path: "/v1/orders/", ..PARTS },
        RequestParts { query: "dry=1", ..PARTS },
        RequestParts { query: "", ..PARTS },
        RequestParts { media_type: "text/plain", ..PARTS },
        RequestParts { digest: Digest::from_bytes([8; 32]), ..PARTS },
        RequestParts { inputs: tenant(&[]), ..PARTS },
        RequestParts { inputs: tenant(&["a"]), ..PARTS },
    ];
    for other in &others {
        assert_ne!(Fingerprint::new(other), first, "{other:?}");
    }
    assert_eq!(Fingerprint::new(&PARTS), first);
}

/// Every way into Ichido compares by the fingerprint, or by digest and media type; both give these results.
#[test]
fn one_rule_says_whether_a_body_under_another_content_type_is_the_same() {
    const JSON: &str = "application/json";
    let rules = BodyRules::default();
    for (one, other, is_same) in [
        ((JSON, "[1, 2]"), ("Application/JSON ; charset=utf-8", "[1,2.0]"), true),
        (("text/plain", "a"), ("TEXT/plain", "a"), true),
        // A charset that a proxy adds, or another one, is not another request.
        (("text/plain", "a"), ("text/plain; charset=utf-8", "a"), true),
        (("text/plain; charset=utf-8", "a"), ("text/plain; charset=latin1", "a"), true),
        (("", "a"), ("application/octet-stream", "a"), true),
        // The same bytes under another type are another request, whether they are canonical JSON or not.
        ((JSON, "[1,2]"), ("text/plain", "[1,2]"), false),
        ((JSON, "[1, 2]"), ("text/plain", "[1, 2]"), false),
        ((JSON, "[1,2]"), ("", "[1,2]"), false),
        ((JSON, "1.0"), ("text/plain", "1"), false),
        ((JSON, "{}"), ("application/merge-patch+json", "{}"), false),
        (("text/plain", "a"), ("text/csv", "a"), false),
        (("text/plain", "a"), ("", "a"), false),
        // And so are other bytes under the same type.
        (("text/plain", "1"), ("text/plain", "1.0"), false),
        ((JSON, "1"), (JSON, "2"), false),
    ] {
        let digest = |(media_type, body): (&str, &str)| {
            Digest::of_body(media_type, body.as_bytes(), &rules).expect("it is valid")
        };
        let print = |body: (&'static str, &str)| {
            Fingerprint::new(&RequestParts { media_type: body.0, digest: digest(body), ..PARTS })
        };
        assert_eq!(print(one) == print(other), is_same, "{one:?} {other:?}");
        assert_eq!(
            is_same_body((one.0, digest(one)), (other.0, digest(other))),
            is_same,
            "{one:?} {other:?}"
        );
    }
}

#[test]
fn fingerprint_parses_back_and_is_not_a_digest() {
    let print = Fingerprint::new(&PARTS);
    assert_eq!(Fingerprint::parse(&print.to_string()), Some(print));
    assert_eq!(Digest::parse(&print.to_string()), None);
    for bad in ["", "v1:", "v2:00", &print.to_string()[1..]] {
        assert_eq!(Fingerprint::parse(bad), None, "{bad}");
    }
}

/// Pinned, because stored fingerprints must match after an upgrade: a change here needs a new version.
#[test]
fn the_scheme_does_not_change_between_releases() {
    assert_eq!(
        Fingerprint::new(&PARTS).to_string(),
        "v1:505828def9380747739becf855b74691f4df86026609381042175fd3abe43b5f"
    );
}

fn texts() -> impl Strategy<Value = [String; 5]> {
    proptest::array::uniform5("[a-c/;]{0,4}")
}

fn print_of(texts: &[String; 5]) -> Fingerprint {
    let [operation, identity, method, path, query] = texts;
    Fingerprint::new(&RequestParts { operation, identity, method, path, query, ..PARTS })
}

proptest! {
    #[test]
    fn fingerprints_are_equal_exactly_when_the_parts_are(a in texts(), b in texts()) {
        prop_assert_eq!(print_of(&a) == print_of(&b), a == b);
    }

    #[test]
    fn a_byte_moved_across_a_border_changes_the_fingerprint(mut parts in texts(), border in 0_usize..4) {
        let before = print_of(&parts);
        if let Some(moved) = parts[border].pop() {
            parts[border + 1].insert(0, moved);
            prop_assert_ne!(print_of(&parts), before);
        }
    }
}
