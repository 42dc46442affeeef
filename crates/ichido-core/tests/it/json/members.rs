//! Members: their order, their repeats, and those left out.

use ichido_core::json::{
    CanonicalForm, JsonErrorKind, LeaveOut, MAX_LEAVE_OUT, Pointer, TooManyLeftOut, Unicode,
};

use super::{canonical, canonical_in, leaving_out, refused, refused_in};

#[test]
fn duplicate_members_are_refused() {
    refused(r#"{"a":1,"a":2}"#, 7, JsonErrorKind::DuplicateMember);
    refused(r#"{"a":1,"a":1}"#, 7, JsonErrorKind::DuplicateMember);
    refused(r#"{"":1,"":2}"#, 6, JsonErrorKind::DuplicateMember);
    refused(r#"[{"x":{"a":1,"b":2,"a":3}}]"#, 19, JsonErrorKind::DuplicateMember);
}

#[test]
fn duplicates_are_found_behind_escapes() {
    refused(r#"{"A":1,"\u0041":2}"#, 7, JsonErrorKind::DuplicateMember);
    refused(r#"{"\u0041":1,"A":2}"#, 12, JsonErrorKind::DuplicateMember);
    refused(r#"{"a/b":1,"a\/b":2}"#, 9, JsonErrorKind::DuplicateMember);
    refused(r#"{"\ud83d\ude00":1,"😀":2}"#, 18, JsonErrorKind::DuplicateMember);
    refused(r#"{"\n":1,"\u000a":2}"#, 8, JsonErrorKind::DuplicateMember);
}

#[test]
fn the_first_name_that_repeats_is_the_one_named() {
    refused(r#"{"b":1,"a":2,"b":3,"a":4,"b":5}"#, 13, JsonErrorKind::DuplicateMember);
    let members: Vec<String> = (0..200).map(|number| format!("\"{:03}\":0,", number * 7 % 200)).collect();
    let text = format!("{{{}\"150\":0,\"007\":0}}", members.concat());
    let position = 1 + members.concat().len();
    refused(text, position, JsonErrorKind::DuplicateMember);
}

#[test]
fn equal_names_in_different_objects_are_not_duplicates() {
    let text = r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#;
    assert_eq!(canonical(text), text);
}

#[test]
fn members_are_sorted_at_every_level() {
    assert_eq!(
        canonical(r#"{"b":[{"z":1,"y":{"d":4,"c":3}}],"a":{},"":0,"B":[]}"#),
        r#"{"":0,"B":[],"a":{},"b":[{"y":{"c":3,"d":4},"z":1}]}"#
    );
    assert_eq!(canonical(r#"{"aa":1,"a":2,"ab":3,"a\u0000":4}"#), r#"{"a":2,"a\u0000":4,"aa":1,"ab":3}"#);
}

#[test]
fn members_are_sorted_by_utf16_code_units() {
    // U+1F600 is D83D DE00 in UTF-16, so it comes before U+E000 and U+FFFF, and after U+D7FF.
    let sorted =
        "{\"\u{d7ff}\":1,\"\u{10000}\":2,\"\u{1f600}\":3,\"\u{10ffff}\":4,\"\u{e000}\":5,\"\u{ffff}\":6}";
    let other = "{\"\u{ffff}\":6,\"\u{e000}\":5,\"\u{10ffff}\":4,\"\\ud83d\\ude00\":3,\"\u{10000}\":2,\"\u{d7ff}\":1}";
    assert_eq!(canonical(sorted), sorted);
    assert_eq!(canonical(other), sorted);
}

#[test]
fn named_members_are_left_out() {
    let text = r#"{"amount":5,"meta":{"trace_id":"x","who":"y"},"a/b":1,"~":2,"":3}"#;
    for (pointers, expected) in [
        (&["/amount"][..], r#"{"":3,"a/b":1,"meta":{"trace_id":"x","who":"y"},"~":2}"#),
        (&["/meta/trace_id"], r#"{"":3,"a/b":1,"amount":5,"meta":{"who":"y"},"~":2}"#),
        (&["/meta/trace_id", "/meta/who", "/a~1b", "/~0", "/"], r#"{"amount":5,"meta":{}}"#),
        (&["/meta", "/meta/trace_id", "/meta"], r#"{"":3,"a/b":1,"amount":5,"~":2}"#),
    ] {
        assert_eq!(canonical_in(&leaving_out(pointers), text), expected, "{pointers:?}");
    }
}

#[test]
fn a_name_is_left_out_however_it_is_escaped() {
    assert_eq!(canonical_in(&leaving_out(&["/trace"]), r#"{"\u0074race":1,"b":2}"#), r#"{"b":2}"#);
}

#[test]
fn only_members_of_objects_are_left_out() {
    let text = r#"{"list":[{"id":1,"x":2},[3],4]}"#;
    assert_eq!(canonical_in(&leaving_out(&["/list/0/id"]), text), r#"{"list":[{"x":2},[3],4]}"#);
    let unchanged = [
        "/list/0",
        "/list/1/0",
        "/list/2/x",
        "/list/-",
        "/list/00/id",
        "/list/9/id",
        "/other",
        "/list/0/id/q",
    ];
    assert_eq!(canonical_in(&leaving_out(&unchanged), text), text);
    assert_eq!(canonical_in(&leaving_out(&["/0", "/a"]), "[1]"), "[1]");
    assert_eq!(canonical_in(&leaving_out(&["/0"]), "7"), "7");
}

#[test]
fn left_out_members_must_be_valid_json() {
    let form = leaving_out(&["/a"]);
    // Its numbers need no form, because they are not written.
    assert_eq!(canonical_in(&form, r#"{"a":1e1000000,"b":1}"#), r#"{"b":1}"#);
    refused_in(&form, r#"{"a":{"x":1,"x":2}}"#, 12, JsonErrorKind::DuplicateMember);
    refused_in(&form, r#"{"a":01}"#, 5, JsonErrorKind::LeadingZero);
}

#[test]
fn at_most_64_members_can_be_left_out() {
    let pointers = |count: usize| vec![Pointer::parse("/trace_id").unwrap(); count];
    assert_eq!(MAX_LEAVE_OUT, 64);
    assert!(LeaveOut::new(pointers(64)).is_ok());
    let refused = LeaveOut::new(pointers(65)).unwrap_err();
    assert_eq!(refused, TooManyLeftOut { count: 65 });
    assert_eq!(
        refused.to_string(),
        "65 members to leave out; name at most 64, or one object that contains them all"
    );
}

#[test]
fn with_nfc_names_to_leave_out_are_compared_in_nfc() {
    for pointer in ["/\u{c5}/x", "/A\u{30a}/x"] {
        let form = CanonicalForm { unicode: Unicode::Nfc, ..leaving_out(&[pointer]) };
        for name in ["\u{c5}", "A\u{30a}", "\\u212b"] {
            let text = format!("{{\"{name}\":{{\"x\":1,\"y\":2}}}}");
            assert_eq!(canonical_in(&form, &text), "{\"\u{c5}\":{\"y\":2}}");
        }
    }
    let as_written = leaving_out(&["/\u{c5}"]);
    assert_eq!(canonical_in(&as_written, "{\"A\u{30a}\":1}"), "{\"A\u{30a}\":1}");
}
