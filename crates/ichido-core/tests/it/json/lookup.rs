//! Reading a document: values and pointers.

use std::borrow::Cow;

use ichido_core::json::{Document, JsonValue, Kind, LineColumn, MAX_DEPTH, Pointer, PointerError};

fn document(text: &str) -> Document<'_> {
    Document::parse(text.as_bytes(), 1 << 16).expect("the test writes JSON")
}

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).expect("the test writes a pointer")
}

#[test]
fn value_accessors_match_only_their_kind() {
    let document = document(r#"[null,true,-1.50,"a\u0041",[],{}]"#);
    let values: Vec<_> = document.root().elements().collect();
    let kinds: Vec<_> = values.iter().map(|value| value.kind()).collect();
    assert_eq!(kinds, [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object]);
    let truths: Vec<_> = values.iter().map(|value| value.as_bool()).collect();
    assert_eq!(truths, [None, Some(true), None, None, None, None]);
    let numbers: Vec<_> = values.iter().map(|value| value.as_number_text()).collect();
    assert_eq!(numbers, [None, None, Some("-1.50"), None, None, None]);
    let strings: Vec<_> = values.iter().map(|value| value.as_str()).collect();
    assert_eq!(strings, [None, None, None, Some(Cow::from("aA")), None, None]);
    assert!(values.iter().all(|value| value.elements().count() == 0 && value.members().count() == 0));
    assert!(values.iter().all(|value| value.get("").is_none()));
}

#[test]
fn a_string_outlives_the_document_it_was_read_from() {
    let text = String::from(r#"{"idempotency_key":"k-1"}"#);
    let key = document(&text).root().get("idempotency_key").and_then(JsonValue::as_str);
    assert!(matches!(key, Some(Cow::Borrowed("k-1"))));
}

#[test]
fn members_come_in_the_order_of_the_text() {
    let document = document(r#"{"b":[1,[2]],"a":{"x":{}},"\n":3}"#);
    let members: Vec<_> =
        document.root().members().map(|(name, value)| (name.into_owned(), value.kind())).collect();
    let expected = [("b", Kind::Array), ("a", Kind::Object), ("\n", Kind::Number)];
    assert_eq!(members, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn elements_step_over_what_they_hold() {
    let document = document(r#"[[1,[2,{"a":[3]}]],{"b":[4]},5]"#);
    let kinds: Vec<_> = document.root().elements().map(JsonValue::kind).collect();
    assert_eq!(kinds, [Kind::Array, Kind::Object, Kind::Number]);
}

#[test]
fn a_member_is_found_by_its_unescaped_name() {
    let members: Vec<String> =
        (0..100).map(|number| format!("\"n{}\":{number}", number * 37 % 100)).collect();
    let text = format!("{{{},\"\\u00e9\":true,\"\u{ffff}\":false,\"😀\":null}}", members.join(","));
    let document = document(&text);
    let root = document.root();
    for number in 0..100 {
        let value = root.get(&format!("n{}", number * 37 % 100)).unwrap();
        assert_eq!(value.as_number_text(), Some(number.to_string().as_str()));
    }
    assert_eq!(root.get("é").and_then(JsonValue::as_bool), Some(true));
    assert_eq!(root.get("\u{ffff}").and_then(JsonValue::as_bool), Some(false));
    assert_eq!(root.get("😀").map(JsonValue::kind), Some(Kind::Null));
    assert!(root.get("n100").is_none());
}

#[test]
fn a_pointer_leads_through_members_and_elements() {
    // The example of RFC 6901, section 5.
    let document = document(
        r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#,
    );
    let number = |text: &str| document.at(&pointer(text)).and_then(JsonValue::as_number_text);
    for (text, expected) in [
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ] {
        assert_eq!(number(text), Some(expected), "{text}");
    }
    assert_eq!(document.at(&pointer("/foo")).map(JsonValue::kind), Some(Kind::Array));
    assert_eq!(document.at(&pointer("/foo/0")).and_then(JsonValue::as_str), Some("bar".into()));
    for text in
        ["/foo/2", "/foo/01", "/foo/-", "/foo/+1", "/foo/", "/foo/99999999999999999999", "/nope", "/a~1b/x"]
    {
        assert!(document.at(&pointer(text)).is_none(), "{text}");
    }
}

#[test]
fn a_pointer_is_written_as_it_is_read() {
    for text in ["/", "//", "/a", "/a~1b/m~0n", "/~01", "/~0~1", "/é/0"] {
        assert_eq!(pointer(text).to_string(), text);
    }
    let twice = document(r#"{"~1":1,"/":2}"#);
    assert_eq!(twice.at(&pointer("/~01")).and_then(JsonValue::as_number_text), Some("1"));
}

#[test]
fn a_pointer_must_name_something_inside_the_document() {
    assert_eq!(Pointer::parse(""), Err(PointerError::Empty));
}

#[test]
fn pointers_outside_the_grammar_are_refused() {
    assert_eq!(Pointer::parse("a/b"), Err(PointerError::NoSlash));
    assert_eq!(Pointer::parse("#/a"), Err(PointerError::NoSlash));
    assert_eq!(Pointer::parse("/a~"), Err(PointerError::BadEscape { position: 2 }));
    assert_eq!(Pointer::parse("/~1/~2"), Err(PointerError::BadEscape { position: 4 }));
    assert_eq!(Pointer::parse("/~é"), Err(PointerError::BadEscape { position: 1 }));
}

#[test]
fn pointers_are_bounded() {
    let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    assert!(Pointer::parse(&long(Pointer::MAX_BYTES)).is_ok());
    assert_eq!(Pointer::parse(&long(Pointer::MAX_BYTES + 1)), Err(PointerError::TooLong));
    assert!(Pointer::parse(&"/a".repeat(MAX_DEPTH)).is_ok());
    assert_eq!(Pointer::parse(&"/a".repeat(MAX_DEPTH + 1)), Err(PointerError::TooDeep));
}

#[test]
fn debug_output_shows_no_content() {
    let document = document(r#"{"password":"hunter2"}"#);
    let shown = format!("{document:?} {:?}", document.root().get("password"));
    assert_eq!(shown, "Document { bytes: 22, .. } Some(Value(String))");
}

#[test]
fn a_value_knows_where_it_begins() {
    let text = " [ null , true,false ,{ } , [ [] , {\"a\" : null,\"b\":{\"c\":[ ]}}],\"s\" , -1,[{}]\n]";
    let document = document(text);
    let mut values = vec![document.root()];
    let mut starts = Vec::new();
    while let Some(value) = values.pop() {
        let first = text.as_bytes()[value.position()];
        let expected = match value.kind() {
            Kind::Null => b'n',
            Kind::Bool if value.as_bool() == Some(true) => b't',
            Kind::Bool => b'f',
            Kind::Number => b'-',
            Kind::String => b'"',
            Kind::Array => b'[',
            Kind::Object => b'{',
        };
        assert_eq!(char::from(first), char::from(expected), "at {}", value.position());
        starts.push(value.position());
        values.extend(value.elements());
        values.extend(value.members().map(|(_, member)| member));
    }
    starts.sort_unstable();
    let count = starts.len();
    starts.dedup();
    assert_eq!((starts.len(), count), (15, 15), "each value has a place of its own");
}

#[test]
fn location_counts_lines_and_characters() {
    let place = |text: &[u8], position| LineColumn::new(text, position).to_string();
    assert_eq!(place(b"", 0), "1:1");
    assert_eq!(place(b"ab\ncd", 2), "1:3");
    assert_eq!(place(b"ab\ncd", 3), "2:1");
    assert_eq!(place("\u{e9}\u{1f600}x".as_bytes(), 6), "1:3");
    assert_eq!(place(b"ab", 99), "1:3");
}
