//! What arrives, counted by what it was (SPEC A14): how much of it has a key, how much had come before, and whose retries those are.

use http::{HeaderMap, HeaderName};
use uuid::Uuid;

use super::problem::{Code, Problem};

/// By queue, by what it was, and by which try of its client it came.
const ARRIVALS: &str = "ichido_arrivals_total";
/// The number of a client's try, and whether a person or the client itself began it: `2; auto`.
const TRY: HeaderName = HeaderName::from_static("ichido-try");

pub(super) fn describe() {
    metrics::describe_counter!(
        ARRIVALS,
        "Messages that arrived: new, same (had come before), conflict, keyless, refused"
    );
}

/// Counts a message that a queue we know was asked to take.
pub(super) fn count(queue: &str, headers: &HeaderMap, ended: Result<&(Uuid, bool), &Problem>) {
    let was = match ended {
        Ok((_, false)) => "new",
        Ok((_, true)) => "same",
        Err(problem) => match problem.code {
            Code::KeyConflict => "conflict",
            Code::KeyMissing => "keyless",
            _ => "refused",
        },
    };
    metrics::counter!(ARRIVALS, "queue" => queue.to_owned(), "result" => was, "try" => try_of(headers))
        .increment(1);
}

/// A client that does not say is taken to try for the first time.
fn try_of(headers: &HeaderMap) -> &'static str {
    let said = headers.get(TRY).and_then(|value| value.to_str().ok()?.split_once(';'));
    match said.map(|(number, cause)| (number.trim(), cause.trim())) {
        None | Some(("1", _)) => "first",
        Some((_, "auto")) => "auto",
        Some((_, "manual")) => "manual",
        Some(_) => "first",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_is_known_by_its_number_and_who_began_it() {
        for (said, known) in [
            (None, "first"),
            (Some("1; manual"), "first"),
            (Some("2; auto"), "auto"),
            (Some("4; manual"), "manual"),
            (Some("4;manual"), "manual"),
            (Some("nonsense"), "first"),
            (Some("2; somebody"), "first"),
        ] {
            let headers = said.map(|said| (TRY, said.parse().expect("a value"))).into_iter().collect();
            assert_eq!(try_of(&headers), known, "{said:?}");
        }
    }
}
