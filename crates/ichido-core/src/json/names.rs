//! Member names: their canonical order and their repeats.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::tape::Tape;

/// Sorts the names of one object (nodes of `tape`) into canonical order.
///
/// The error is the first name in the text that repeats an earlier one.
pub(super) fn sort(text: &str, tape: &Tape, names: &mut [u32]) -> Result<(), u32> {
    let string = |name: u32| tape.string(text, name);
    if names.iter().any(|&name| string(name).is_escaped()) {
        return sort_as(names, |name| string(name).decode());
    }
    // Neighbours in sorted order have been compared with each other, so two equal names are always found.
    let mut met_equals = false;
    names.sort_unstable_by(|&a, &b| {
        let order = compare(string(a).raw(), string(b).raw());
        met_equals |= order.is_eq();
        order
    });
    if met_equals { sort_as(names, |name| string(name).decode()) } else { Ok(()) }
}

/// Sorts names into the canonical order of what `spell` returns for them.
///
/// The error is the first name in the text that repeats an earlier one.
pub(super) fn sort_as<'a>(names: &mut [u32], spell: impl Fn(u32) -> Cow<'a, str>) -> Result<(), u32> {
    let mut spelled: Vec<(Cow<'a, str>, u32)> = names.iter().map(|&name| (spell(name), name)).collect();
    // Equal names stay in the order of the text, so the later one is the repeat.
    spelled.sort_unstable_by(|(a, a_node), (b, b_node)| compare(a, b).then(a_node.cmp(b_node)));
    let neighbours = spelled.iter().zip(spelled.iter().skip(1));
    let repeats = neighbours.filter(|((a, _), (b, _))| a == b).map(|(_, (_, node))| *node);
    if let Some(first) = repeats.min() {
        return Err(first);
    }
    for (name, (_, node)) in names.iter_mut().zip(spelled) {
        *name = node;
    }
    Ok(())
}

/// Compares two names by their UTF-16 code units.
///
/// UTF-8 sorts by code point, which is the same except for characters above U+FFFF: in UTF-16 they begin with a
/// surrogate (D800 to DFFF), so they precede U+E000 to U+FFFF.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let difference = a.bytes().zip(b.bytes()).find(|(a, b)| a != b);
    match difference {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// Returns the rank of a UTF-8 byte in UTF-16 order.
///
/// Two texts that agree up to this byte are at the same position of a character, so a leading byte is only compared
/// with another.
fn rank(byte: u8) -> u8 {
    match byte {
        // The leading bytes of U+E000 to U+FFFF move beyond F4, the last of those above U+FFFF.
        0xee | 0xef => byte + 0x10,
        _ => byte,
    }
}
