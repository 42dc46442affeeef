//! RFC 8785: the samples of its text, its table of numbers, and the public test vectors.

use super::{DOUBLE, canonical_in, refused_in};
use ichido_core::json::JsonErrorKind;

#[test]
fn the_sample_of_section_3_2_2_has_the_published_form() {
    let text = r#"{
      "numbers": [333333333.33333329, 1E30, 4.50,
                  2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"#;
    let expected = concat!(
        r#"{"literals":[null,true,false],"#,
        r#""numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical_in(&DOUBLE, text), expected);
}

#[test]
fn the_sample_of_section_3_2_3_is_sorted_as_published() {
    let text = r#"{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let expected = concat!(
        r#"{"\r":"Carriage Return","1":"One","#,
        "\"\u{80}\":\"Control\",",
        r#""ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","#,
        "\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
    assert_eq!(canonical_in(&DOUBLE, text), expected);
}

#[test]
fn the_numbers_of_appendix_b_have_the_published_spelling() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let double = f64::from_bits(bits);
        // Three spellings that all read as this double: scientific, in full, and with extra digits.
        for text in [format!("{double:e}"), format!("{double}"), format!("{double:.25e}")] {
            assert_eq!(canonical_in(&DOUBLE, &text), expected, "{bits:016x} as {text}");
        }
    }
}

#[test]
fn values_refused_in_appendix_b_are_refused() {
    refused_in(&DOUBLE, "NaN", 0, JsonErrorKind::NotFinite);
    refused_in(&DOUBLE, "Infinity", 0, JsonErrorKind::NotFinite);
    refused_in(&DOUBLE, r#""\udead""#, 1, JsonErrorKind::LoneSurrogate);
}

#[test]
fn the_public_vectors_have_their_published_form() {
    for (name, text, expected) in VECTORS {
        assert_eq!(canonical_in(&DOUBLE, text), expected.replace('\n', ""), "{name}");
    }
}

/// Name, text and canonical form of each vector; line breaks in the form are for the reader of this file.
/// The vector `values` is the sample of section 3.2.2.
const VECTORS: &[(&str, &str, &str)] = &[
    (
        "arrays",
        r#"[
            56,
            { "d": true, "10": null, "1": [ ] }
        ]"#,
        r#"[56,{"1":[],"10":null,"d":true}]"#,
    ),
    (
        "french",
        r#"{
            "peach": "This sorting order",
            "péché": "is wrong according to French",
            "pêche": "but canonicalization MUST",
            "sin":   "ignore locale"
        }"#,
        r#"{"peach":"This sorting order",
"péché":"is wrong according to French",
"pêche":"but canonicalization MUST",
"sin":"ignore locale"}"#,
    ),
    (
        "structures",
        r#"{
            "1": {"f": {"f": "hi","F": 5} ,"\n": 56.0},
            "10": { },
            "": "empty",
            "a": { },
            "111": [ {"e": "yes","E": "no" } ],
            "A": { }
        }"#,
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},
"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
    ),
    ("unicode", r#"{ "Unnormalized Unicode":"A\u030a" }"#, "{\"Unnormalized Unicode\":\"A\u{30a}\"}"),
    (
        "weird",
        r#"{
            "\u20ac": "Euro Sign",
            "\r": "Carriage Return",
            "\u000a": "Newline",
            "1": "One",
            "\u0080": "Control\u007f",
            "\ud83d\ude02": "Smiley",
            "\u00f6": "Latin Small Letter O With Diaeresis",
            "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "</script>": "Browser Challenge"
        }"#,
        "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\",
\"</script>\":\"Browser Challenge\",\"\u{80}\":\"Control\u{7f}\",
\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",
\"😂\":\"Smiley\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    ),
];
