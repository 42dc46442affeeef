use proptest::prelude::*;
use serde_json::json;

use super::*;

fn labels() -> AnswerForm {
    let schema = json!({
        "type": "object",
        "properties": {"label": {"enum": ["FYI", "IGNORE"]}},
        "required": ["label"],
        "additionalProperties": {"type": "number"},
    });
    AnswerForm::new("label", schema).expect("a schema")
}

fn anything() -> AnswerForm {
    AnswerForm::new("anything", json!(true)).expect("a schema")
}

fn read(text: &str) -> Result<(Value, bool), Unusable> {
    labels().read(text).map(|read| (read.value, read.was_repaired))
}

#[test]
fn valid_json_is_read_unchanged() {
    let fyi = json!({"label": "FYI"});
    assert_eq!(read(r#"{"label":"FYI"}"#), Ok((fyi.clone(), false)));
    assert_eq!(read(" \n{\"label\":\"FYI\"}\r\n "), Ok((fyi, false)), "white space is a part of JSON");
    let text = anything().read("\"```json\\n{}\\n```\"").expect("a string");
    assert_eq!(
        (text.value, text.was_repaired),
        (json!("```json\n{}\n```"), false),
        "a fence in a string is its own"
    );
}

#[test]
fn usual_damage_is_repaired() {
    for text in [
        "\u{feff}{\"label\":\"FYI\"}",
        "\u{a0}{\"label\":\"FYI\"}\u{2003}",
        "```json\n{\"label\":\"FYI\"}\n```",
        "```\n{\"label\":\"FYI\"}\n```",
        "```JSON {\"label\":\"FYI\"}```",
        "Here you are:\n\n```json\n{\"label\":\"FYI\"}\n```\nAnything else?",
        "```json\n{\"label\":\"FYI\"}",
        "Sure! {\"label\":\"FYI\"} is what I think.",
        "As [1] and [the other](https://a.example/{x}) say: {\"label\":\"FYI\"} [2]",
        "{label} is {\"label\":\"FYI\"}",
        "{\"label\":\"FYI\"} or, again, {\"label\": \"FYI\"}",
    ] {
        assert_eq!(read(text), Ok((json!({"label": "FYI"}), true)), "{text}");
    }
    let fenced = anything().read("```json\n\"a ``` b\"\n```").expect("a string in a fence");
    assert_eq!(fenced.value, json!("a ``` b"));
}

#[test]
fn ambiguous_text_is_rejected() {
    let expected = Err(Unusable::NoJson("at line 1 column 1".to_owned()));
    assert_eq!(read("FYI"), expected);
    assert_eq!(read(""), Err(Unusable::NoJson("it is empty".to_owned())));
    let two = "{\"label\":\"FYI\"} or {\"label\":\"IGNORE\"}";
    assert_eq!(read(two), Err(Unusable::Ambiguous));
    for text in [
        "{\"label\":\"FYI\",}",
        "{'label':'FYI'}",
        "{\"label\":\"FYI\"",
        "{\"label\":\"FY",
        "[{\"label\":\"FYI\"},{\"label\":\"IGN",
        "```json\n{\"all\":{\"label\":\"FYI\"},",
    ] {
        assert!(matches!(read(text), Err(Unusable::NoJson(_))), "{text}");
    }
}

#[test]
fn cut_off_or_declined_answer_is_never_usable() {
    let reply =
        |finish_reason| Reply { text: r#"{"label":"FYI"}"#.to_owned(), finish_reason, id: None, usage: None };
    assert!(labels().read_reply(&reply(FinishReason::Whole)).is_ok());
    assert_eq!(labels().read_reply(&reply(FinishReason::CutOff)), Err(Unusable::CutOff));
    assert_eq!(labels().read_reply(&reply(FinishReason::Declined)), Err(Unusable::Declined));
}

#[test]
fn errors_contain_no_answer_text() {
    for text in [
        "secret",
        "{\"label\":\"secret\"}",
        "{\"secret\":1}",
        "{\"label\":\"FYI\",\"secret\":\"x\"}",
        "```json\n{\"label\":\"secret\"}\n```",
        "\"secret",
    ] {
        let error = labels().read(text).expect_err("not of the form");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
    assert_eq!(
        labels().read("{\"label\":\"secret\"}").expect_err("another label").to_string(),
        "the answer does not have the requested form: it fails \"/properties/label/enum\" of the schema"
    );
}

#[test]
fn form_needs_valid_name_and_schema() {
    for name in ["", "a b", "ü", &"x".repeat(MAX_NAME_BYTES + 1)] {
        assert!(AnswerForm::new(name, json!({})).is_err(), "{name:?}");
    }
    assert!(AnswerForm::new("x".repeat(MAX_NAME_BYTES), json!({})).is_ok());
    let error = AnswerForm::new("odd", json!({"type": 7})).expect_err("no schema");
    assert!(
        error.to_string().starts_with("the form \"odd\" cannot be used: it is not a JSON Schema"),
        "{error}"
    );
}

#[test]
fn parsing_work_is_bounded() {
    for piece in ["[", "{", "{\"a\":", "[1,", "[\"", "[] ", "[x]"] {
        let text = piece.repeat(repair::MAX_BYTES / piece.len());
        let (_, starts) = repair::outermost(&text);
        assert!(starts <= repair::MAX_STARTS, "{piece:?}");
        assert!(labels().read(&text).is_err(), "{piece:?}");
    }
    let fyi = "{\"label\":\"FYI\"}";
    let long = format!("{}{fyi}", " ".repeat(MAX_TEXT_BYTES));
    assert!(matches!(read(&long), Err(Unusable::NoJson(why)) if why.contains("1048576")));
    let prose = format!("{}{fyi}", "x".repeat(repair::MAX_BYTES));
    assert!(read(&prose).is_err(), "too long to be repaired");
    let whole = format!("{}{fyi}", " ".repeat(repair::MAX_BYTES));
    assert_eq!(read(&whole), Ok((json!({"label": "FYI"}), false)), "valid JSON may be longer");
}

/// JSON whose numbers are all integers: others need not survive a round trip unchanged.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((".{0,6}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reading_never_panics(text in "\\PC{0,60}", damage in "[\\[\\]{}\",:`a\\\\ ]{0,60}") {
        drop(labels().read(&text));
        drop(labels().read(&damage));
        drop(anything().read(&format!("{text}{damage}")));
    }

    #[test]
    fn fenced_value_is_read_back_equal(value in value(), language in "(json|JSON|)") {
        let text = format!("```{language}\n{value:#}\n```");
        prop_assert_eq!(anything().read(&text).map(|read| read.value), Ok(value));
    }

    #[test]
    fn object_in_prose_is_read_back_equal(value in value(), before in "[^\\[\\]{}`]{1,40}", after in "[^\\[\\]{}`]{0,40}") {
        let value = json!({"value": value});
        let text = format!("So: {before} {value} {after}");
        prop_assert_eq!(anything().read(&text), Ok(ParsedAnswer { value, was_repaired: true }));
    }
}
