//! Other spellings and other values of a JSON body.

use serde_json::{Map, Number, Value};

/// Returns the same value with its members in reverse order and other white space; `None` if nothing would change its
/// meaning to a reader that compares bytes.
pub(crate) fn respelled(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    let text = spelled(&value);
    (text != body).then_some(text)
}

fn spelled(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let all = members.iter().rev();
            let all =
                all.map(|(name, value)| format!(" {} : {}", Value::from(name.as_str()), spelled(value)));
            format!("{{{} }}", all.collect::<Vec<_>>().join(","))
        }
        Value::Array(all) => format!("[ {} ]", all.iter().map(spelled).collect::<Vec<_>>().join(" , ")),
        other => other.to_string(),
    }
}

/// Returns the body with another value at `pointer`, or at a member of its choice: a text, else a number, without the
/// marker.
pub(crate) fn varied(body: &str, pointer: Option<&str>, marker: &str) -> Result<String, String> {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else {
        return if body.is_empty() {
            Err("the request has no body".to_owned())
        } else {
            Ok(format!("{body}1"))
        };
    };
    let chosen = pointer.map(str::to_owned).or_else(|| {
        let of = |kind: fn(&Value) -> bool| {
            leaf(&value, &|leaf| kind(leaf) && leaf.as_str().is_none_or(|text| !text.contains(marker)))
        };
        // The counter may read the member that is the marker alone, but hardly one that has more in it.
        let has_more = |leaf: &Value| leaf.as_str().is_some_and(|text| text != marker);
        of(Value::is_string)
            .or_else(|| of(Value::is_number))
            .or_else(|| leaf(&value, &has_more))
            .or_else(|| leaf(&value, &Value::is_string))
    });
    let chosen = chosen.ok_or("the body has no text or number to vary; pass --vary POINTER")?;
    match value.pointer_mut(&chosen) {
        Some(Value::String(text)) => text.push('2'),
        Some(Value::Number(number)) => *number = other_number(number),
        Some(Value::Bool(flag)) => *flag = !*flag,
        Some(_) => return Err(format!("--vary {chosen} is not a text, a number or a boolean")),
        None => return Err(format!("--vary {chosen} points to nothing in the body")),
    }
    Ok(value.to_string())
}

/// Returns a number with another meaning; `1` and `1.0` are one number.
fn other_number(number: &Number) -> Number {
    let next = number.as_i64().and_then(|number| number.checked_add(1)).map(Number::from);
    // A number that is not an integer, or too large for one more, becomes a small one.
    next.unwrap_or_else(|| if number.as_f64() == Some(7.0) { 8.into() } else { 7.into() })
}

/// Returns two spellings of the body's first integer, as `1` and as `1.0`; `None` if it has none.
pub(crate) fn two_spellings(body: &str) -> Option<(String, String)> {
    let mut value: Value = serde_json::from_str(body).ok()?;
    let pointer =
        leaf(&value, &|leaf| leaf.as_i64().is_some_and(|number| number.unsigned_abs() < LAST_EXACT))?;
    let integer = value.to_string();
    let number = value.pointer_mut(&pointer)?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "it is smaller than the first integer that a double cannot hold"
    )]
    let decimal = number.as_i64()? as f64;
    *number = decimal.into();
    Some((integer, value.to_string()))
}

/// All integers up to this one have a double of their own.
const LAST_EXACT: u64 = 1 << 53;

/// Returns the body with this integer at its first number; `None` if it has none.
pub(crate) fn with_number(body: &str, number: u64) -> Option<String> {
    let mut value: Value = serde_json::from_str(body).ok()?;
    let pointer = leaf(&value, &Value::is_number)?;
    *value.pointer_mut(&pointer)? = number.into();
    Some(value.to_string())
}

/// Returns the pointer to the first leaf that is wanted.
fn leaf(value: &Value, is_wanted: &dyn Fn(&Value) -> bool) -> Option<String> {
    let of_member = |(name, value): (&String, &Value)| {
        let name = name.replace('~', "~0").replace('/', "~1");
        leaf(value, is_wanted).map(|rest| format!("/{name}{rest}"))
    };
    match value {
        Value::Object(members) => members.iter().find_map(of_member),
        Value::Array(all) => {
            let mut all = all.iter().enumerate();
            all.find_map(|(index, value)| leaf(value, is_wanted).map(|rest| format!("/{index}{rest}")))
        }
        leaf => is_wanted(leaf).then(String::new),
    }
}

/// Returns the body with the first member that is null left out, and with it; if none is null, with one more that is.
pub(crate) fn null_and_absent(body: &str) -> Option<(String, String)> {
    let Ok(Value::Object(members)) = serde_json::from_str(body) else { return None };
    let name = members.iter().find(|(_, value)| value.is_null()).map_or("note", |(name, _)| name).to_owned();
    let with = |value: Option<Value>| {
        let mut members: Map<String, Value> = members.clone();
        match value {
            Some(value) => members.insert(name.clone(), value),
            None => members.remove(&name),
        };
        Value::Object(members).to_string()
    };
    Some((with(Some(Value::Null)), with(None)))
}

/// Returns the texts and numbers of a JSON document that say something about it: at least 8 characters.
pub(crate) fn telling_values(body: &[u8]) -> Vec<String> {
    const MIN_CHARS: usize = 8;
    let mut found = leaves(body);
    found.retain(|text| MIN_CHARS <= text.chars().count());
    found
}

/// Returns the texts and numbers of a JSON document that are not links.
pub(crate) fn values_without_links(body: &[u8]) -> Vec<String> {
    let mut found = leaves(body);
    found.retain(|text| !is_link(text));
    found
}

/// Whether a text is a link.
pub(crate) fn is_link(text: &str) -> bool {
    text.starts_with('/') || text.contains("://")
}

/// Returns the texts and numbers of a JSON document.
fn leaves(body: &[u8]) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Number(number) => found.push(number.to_string()),
            Value::Array(all) => all.iter().for_each(|value| collect(value, found)),
            Value::Object(members) => members.values().for_each(|value| collect(value, found)),
            Value::Null | Value::Bool(_) => (),
        }
    }
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_slice(body) {
        collect(&value, &mut found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_has_the_same_value() {
        let body = r#"{"a":1,"b":[1,{"c":"x"}]}"#;
        let other = respelled(body).unwrap();
        assert_ne!(other, body);
        assert_eq!(
            serde_json::from_str::<Value>(&other).unwrap(),
            serde_json::from_str::<Value>(body).unwrap()
        );
        assert_eq!(respelled("7"), None);
    }

    #[test]
    fn a_varied_body_keeps_the_marker() {
        let body = r#"{"qty":2,"ref":"probe-1"}"#;
        assert_eq!(varied(body, None, "probe-1").unwrap(), r#"{"qty":3,"ref":"probe-1"}"#);
        assert_eq!(varied(body, Some("/ref"), "probe-1").unwrap(), r#"{"qty":2,"ref":"probe-12"}"#);
        assert!(varied(body, Some("/no"), "probe-1").unwrap_err().contains("points to nothing"));
        let body = r#"{"ref":"probe-1","url":"/probe-1-2"}"#;
        assert_eq!(varied(body, None, "probe-1").unwrap(), r#"{"ref":"probe-1","url":"/probe-1-22"}"#);
        assert_eq!(varied("a=1", None, "m").unwrap(), "a=11");
        assert!(varied("", None, "m").is_err());
    }

    #[test]
    fn a_text_is_varied_before_a_number() {
        assert_eq!(varied(r#"{"n":1,"s":"x"}"#, None, "m").unwrap(), r#"{"n":1,"s":"x2"}"#);
    }

    #[test]
    fn a_varied_number_has_another_meaning() {
        let largest = i64::MAX.to_string();
        for number in ["1", "1.0", "7.0", "0.5", "-1", "1e300", &largest, "18446744073709551615"] {
            let other = varied(&format!("[{number}]"), None, "m").unwrap();
            let of = |text: &str| serde_json::from_str::<Value>(text).unwrap()[0].as_f64().unwrap();
            assert!(of(&other).total_cmp(&of(&format!("[{number}]"))).is_ne(), "{number}: {other}");
        }
    }

    #[test]
    fn an_integer_has_two_spellings() {
        let (integer, decimal) = two_spellings(r#"{"a":0.5,"b":1}"#).unwrap();
        assert_eq!((&*integer, &*decimal), (r#"{"a":0.5,"b":1}"#, r#"{"a":0.5,"b":1.0}"#));
        assert_eq!(two_spellings(r#"{"a":1.5,"b":9007199254740992}"#), None);
    }

    #[test]
    fn null_differs_from_absent() {
        let (null, absent) = null_and_absent(r#"{"a":1}"#).unwrap();
        assert_eq!((&*null, &*absent), (r#"{"a":1,"note":null}"#, r#"{"a":1}"#));
        let (null, absent) = null_and_absent(r#"{"a":1,"b":null}"#).unwrap();
        assert_eq!((&*null, &*absent), (r#"{"a":1,"b":null}"#, r#"{"a":1}"#));
        assert_eq!(null_and_absent("[1]"), None);
    }
}
