//! Numbers: one spelling for one value, exact whatever the size.

use ichido_core::json::{JsonErrorKind, MAX_NUMBER_DIGITS};

use super::{DOUBLE, NO_EXPONENT, canonical, canonical_in, refused, refused_in};

#[test]
fn equal_numbers_have_one_spelling() {
    for (expected, spellings) in [
        ("0", &["0", "-0", "0.0", "-0.0", "0e5", "0E-5", "-0.000e+9", "0.00e999999999999999999999"][..]),
        (
            "1",
            &[
                "1", "1.0", "1.00", "1e0", "1E0", "1e+0", "1e-0", "10e-1", "0.1e1", "0.01E+2", "100e-2",
                "1e00",
            ],
        ),
        ("-1", &["-1", "-1.0", "-10e-1", "-0.1e1"]),
        ("100", &["100", "100.00", "1e2", "1.00e2", "1000e-1", "0.001e5"]),
        ("0.1", &["0.1", "0.10", "1e-1", "10e-2", "0.01e1"]),
        ("0.00105", &["0.00105", "1.05e-3", "105e-5", "0.0010500"]),
        ("12.34", &["12.34", "1234e-2", "1.234e1", "0.1234e2", "0.001234e4", "12.3400"]),
        ("1020.304", &["1020.304", "1.020304e3", "1020304e-3", "10203.04e-1"]),
        ("1200", &["1200", "1.2e3", "12e2", "1200.0", "120e1", "0.12e4"]),
    ] {
        for spelling in spellings {
            assert_eq!(canonical(spelling), expected, "{spelling}");
        }
    }
}

#[test]
fn an_integer_beyond_two_to_the_53_stays_itself() {
    for number in
        ["9007199254740993", "-9007199254740993", "18446744073709551617", "123456789012345678901234567890"]
    {
        assert_eq!(canonical(number), number);
    }
    assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
    assert_ne!(canonical("0.1"), canonical("0.1000000000000000055511151231257827"));
}

#[test]
fn a_number_that_is_long_only_in_spelling_is_accepted() {
    assert_eq!(canonical(&format!("1.{}", "0".repeat(2_000))), "1");
    assert_eq!(canonical(&format!("1{}e-2000", "0".repeat(2_000))), "1");
    assert_eq!(canonical(&format!("0.{}1e2001", "0".repeat(2_000))), "1");
    assert_eq!(canonical("0e999999999999999999999"), "0");
    assert_eq!(canonical("-0e-999999999999999999999"), "0");
    assert_eq!(canonical(&format!("1e{}1", "0".repeat(2_000))), "10");
}

#[test]
fn the_bound_counts_the_digits_of_the_normal_form() {
    let longest = "9".repeat(MAX_NUMBER_DIGITS);
    assert_eq!(canonical(&longest), longest);
    assert_eq!(canonical(&format!("-{longest}")), format!("-{longest}"));
    assert_eq!(canonical(&format!("{longest}.00")), longest);
    refused(format!("[{longest}9]"), 1, JsonErrorKind::NumberTooLong);
    refused(format!("{longest}.5"), 0, JsonErrorKind::NumberTooLong);

    assert_eq!(canonical("1e999").len(), MAX_NUMBER_DIGITS);
    refused("1e1000", 0, JsonErrorKind::NumberTooLong);
    // The zero before the point is a digit of the form.
    assert_eq!(canonical("1e-999").len(), "0.".len() + 999);
    refused("1e-1000", 0, JsonErrorKind::NumberTooLong);

    let fraction = format!("0.{}1", "0".repeat(MAX_NUMBER_DIGITS - 2));
    assert_eq!(canonical(&fraction), fraction);
    refused(fraction.replace('1', "01"), 0, JsonErrorKind::NumberTooLong);
}

#[test]
fn a_huge_exponent_costs_no_memory() {
    for number in ["1e1000000", "1e-1000000", "-5E+999999999999999999999999", "1e-99999999999999999999999999"]
    {
        refused(number, 0, JsonErrorKind::NumberTooLong);
    }
    refused(format!("1e{}", "9".repeat(100_000)), 0, JsonErrorKind::NumberTooLong);
    refused("1e9223372036854775807", 0, JsonErrorKind::NumberTooLong);
    refused("0.1e-9223372036854775808", 0, JsonErrorKind::NumberTooLong);
}

#[test]
fn strict_mode_refuses_exponents() {
    assert_eq!(canonical_in(&NO_EXPONENT, "[1,1.50,-0,100]"), "[1,1.5,0,100]");
    refused_in(&NO_EXPONENT, "[1,2.5e3]", 6, JsonErrorKind::Exponent);
    refused_in(&NO_EXPONENT, "0E0", 1, JsonErrorKind::Exponent);
    refused_in(&NO_EXPONENT, "1e1000000", 1, JsonErrorKind::Exponent);
}

#[test]
fn doubles_merge_indistinguishable_numbers() {
    for (text, expected) in [
        ("9007199254740993", "9007199254740992"),
        ("0.1000000000000000055511151231257827", "0.1"),
        ("1e-400", "0"),
        ("-1e-400", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("100", "100"),
        ("1.50", "1.5"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("123456789012345e6", "123456789012345000000"),
        ("123456789012345e7", "1.23456789012345e+21"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("1.5e-6", "0.0000015"),
        ("1.5e-7", "1.5e-7"),
    ] {
        assert_eq!(canonical_in(&DOUBLE, text), expected, "{text}");
    }
}

#[test]
fn a_number_beyond_the_greatest_double_is_refused_as_a_double() {
    assert_eq!(canonical_in(&DOUBLE, "1.7976931348623157e308"), "1.7976931348623157e+308");
    refused_in(&DOUBLE, "[1e309]", 1, JsonErrorKind::NumberTooLarge);
    refused_in(&DOUBLE, "-1e99999999999999999999", 0, JsonErrorKind::NumberTooLarge);
    refused_in(&DOUBLE, format!("[{}]", "9".repeat(400)), 1, JsonErrorKind::NumberTooLarge);
}
