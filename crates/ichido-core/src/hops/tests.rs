use proptest::prelude::*;

use super::*;

fn hop(name: &str, millis: i64, id: &str) -> Hop {
    Hop {
        name: HopName::parse(name).expect("a name"),
        at: Timestamp::from_millis(millis),
        request_id: RequestId::parse(id).expect("an id"),
    }
}

fn longest() -> Hop {
    let letters = "a".repeat(HopName::MAX_LEN);
    let id = "=".repeat(RequestId::MAX_LEN);
    hop(&letters, MAX_MILLIS, &id)
}

#[test]
fn hops_parse_back_as_written() {
    let hops = Hops::default().and(hop("bff", 0, "a:b/c")).and(hop("gateway-1", 1_800_000_000_012, "x"));
    assert_eq!(Hops::read([hops.to_string()]), hops);
    assert_eq!(Hops::read(Vec::<&str>::new()), Hops::default());
    assert_eq!(Hops::default().to_string(), "");
}

#[test]
fn two_lines_are_one_list() {
    let joined = Hops::read([r#"bff;t=1;r="a", gateway;t=2;r="b""#]);
    let apart = Hops::read([r#"bff;t=1;r="a""#, r#"gateway;t=2;r="b""#]);
    assert_eq!(apart, joined);
    assert_eq!(apart.iter().count(), 2);
}

#[test]
fn malformed_value_gives_no_hops() {
    for value in [
        "bff",
        "bff;t=1",
        r#"bff;r="a""#,
        r#"bff;t=1.5;r="a""#,
        r#"bff;t=-1;r="a""#,
        "bff;t=1;r=a",
        r#"bff;t=1;r="""#,
        r#"bff;t=1;r="a b""#,
        r#""bff";t=1;r="a""#,
        r#"BFF;t=1;r="a""#,
        r#"(bff);t=1;r="a""#,
        r#"bff;t=1;r="a","#,
        r#"bff;t=1;r="a", nonsense"#,
        r#"bff;t=1234567890123456;r="a""#,
        "\u{7f}",
        "ö",
    ] {
        assert_eq!(Hops::read([value]), Hops::default(), "{value}");
    }
    let long_name = format!("{};t=1;r=\"a\"", "a".repeat(HopName::MAX_LEN + 1));
    assert_eq!(Hops::read([long_name]), Hops::default());
    let long_id = format!("bff;t=1;r=\"{}\"", "a".repeat(RequestId::MAX_LEN + 1));
    assert_eq!(Hops::read([long_id]), Hops::default());
}

#[test]
fn unknown_parameter_is_ignored() {
    let hops = Hops::read([r#"bff;t=1;r="a";later=?1"#]);
    assert_eq!(hops, Hops::default().and(hop("bff", 1, "a")));
}

#[test]
fn a_ninth_hop_is_not_added_and_nine_are_not_read() {
    let full = (0..MAX_HOPS).fold(Hops::default(), |hops, _| hops.and(longest()));
    assert_eq!(full.clone().and(hop("late", 1, "z")), full);
    let value = full.to_string();
    assert!(value.len() <= MAX_FIELD_BYTES, "{}", value.len());
    assert_eq!(Hops::read([value]), full);
    let nine = vec![r#"bff;t=1;r="a""#; MAX_HOPS + 1];
    assert_eq!(Hops::read(nine), Hops::default());
}

#[test]
fn oversized_value_is_not_parsed() {
    let padded = format!("bff;t=1;r=\"a\"{}", " ".repeat(MAX_FIELD_BYTES));
    assert_eq!(Hops::read([padded]), Hops::default());
    let many = vec![""; MAX_FIELD_BYTES];
    assert_eq!(Hops::read(many), Hops::default());
}

proptest! {
    #[test]
    fn any_bytes_give_bounded_hops_that_read_back_as_themselves(value in any::<Vec<u8>>()) {
        let hops = Hops::read([value]).and(hop("bff", 7, "id"));
        prop_assert!(hops.iter().count() <= MAX_HOPS);
        prop_assert!(hops.to_string().len() <= MAX_FIELD_BYTES);
        prop_assert_eq!(Hops::read([hops.to_string()]), hops);
    }
}
