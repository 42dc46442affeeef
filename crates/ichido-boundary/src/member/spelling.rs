//! Spelling: finds the known name that an unknown one is meant to be.

/// The shortest known name that is compared letter by letter.
///
/// Short words are close to too many others.
const MIN_CHARS: usize = 5;

/// From this length on, two letters may differ.
const LONG_CHARS: usize = 9;

/// Returns the known name that is meant, if one is close enough.
///
/// A name that differs only in case or hyphens always counts as a typo. Beside the known name, any other must be one
/// letter off a long name, because a member of the file's own may resemble one of ours.
pub(super) fn meant(
    name: &str,
    known: &[&'static str],
    is_there: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    let longest = known.iter().map(|one| one.len()).max().unwrap_or_default();
    // A close name is not much longer, and a file's names can have any length.
    if longest + LONG_CHARS < name.len() {
        return None;
    }
    let bare = bare(name);
    let same = known.iter().find(|one| self::bare(one) == bare);
    let close = known.iter().find(|one| {
        let known = self::bare(one);
        if is_there(one) { is_slip(&bare, &known) } else { is_close(&bare, &known) }
    });
    same.or(close).copied()
}

/// Returns the letters and digits, in lower case.
fn bare(name: &str) -> String {
    name.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns whether few letters must be changed, added, removed or swapped, or only the plural differs.
fn is_close(name: &str, known: &str) -> bool {
    let allowed = match known.len() {
        0..MIN_CHARS => 0,
        MIN_CHARS..LONG_CHARS => 1,
        _ => 2,
    };
    singular(name) == singular(known) || strsim::osa_distance(name, known) <= allowed
}

/// Returns whether one letter of a long name is off, and not only the plural differs.
fn is_slip(name: &str, known: &str) -> bool {
    LONG_CHARS <= known.len() && singular(name) != singular(known) && strsim::osa_distance(name, known) == 1
}

/// Returns the name without a plural ending: `retries` is `retry`, `statuses` is `status`.
fn singular(name: &str) -> String {
    if let Some(rest) = name.strip_suffix("ies") {
        return format!("{rest}y");
    }
    if let Some(rest) = name.strip_suffix("ses") {
        return format!("{rest}s");
    }
    let cut = name.strip_suffix('s').filter(|rest| !rest.is_empty() && !rest.ends_with(['s', 'u']));
    cut.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant_by(name: &str, known: &[&'static str]) -> Option<&'static str> {
        meant(name, known, |_| false)
    }

    #[test]
    fn typo_is_matched_to_the_nearest_name() {
        let known = ["retry", "headers", "allow", "drop", "max_attempts", "state_changing", "days", "status"];
        for (name, expected) in [
            ("retries", "retry"),
            ("header", "headers"),
            ("Headers", "headers"),
            ("Allow", "allow"),
            ("allwo", "allow"),
            ("drops", "drop"),
            ("maxAttempts", "max_attempts"),
            ("max-attempt", "max_attempts"),
            ("state_chagning", "state_changing"),
            ("day", "days"),
            ("statuses", "status"),
        ] {
            assert_eq!(meant_by(name, &known), Some(expected), "{name}");
        }
        for name in ["", "crop", "deny", "attempts", "jitter", "version", "$schema", "x_retry_after"] {
            assert_eq!(meant_by(name, &known), None, "{name}");
        }
        assert_eq!(meant_by(&"a".repeat(1 << 20), &known), None);
    }

    #[test]
    fn similar_member_is_not_a_typo_beside_the_known_one() {
        assert_eq!(meant("owners", &["owner"], |_| true), None);
        assert_eq!(meant("Owner", &["owner"], |_| true), Some("owner"));
        for own in ["owned", "min_attempts", "max_attempt", "fingerprints"] {
            assert_eq!(meant(own, &["owner", "max_attempts", "fingerprint"], |_| true), None, "{own}");
        }
    }

    #[test]
    fn slip_in_a_long_name_is_a_typo_even_beside_the_known_one() {
        for slip in ["fingerprnt", "fingerpirnt", "fingerprimt"] {
            assert_eq!(meant(slip, &["owner", "fingerprint"], |_| true), Some("fingerprint"), "{slip}");
        }
    }
}
