//! What an answer means for the command that asked.

use ichido_client::next::Why;
use ichido_client::{Answer, Last, Outcome};
use ichido_core::boundary::report::visible;
use ichido_core::verdict::Effect;

use crate::exit::Exit;
use crate::faults::Faults;

/// The answer that was asked for; or how the command ends.
pub(super) fn taken(command: &'static str, answer: Answer) -> Result<Answer, Exit> {
    let status = answer.status;
    if (200..300).contains(&status) {
        return if answer.is_whole { Ok(answer) } else { Err(not_understood("it is longer than is read")) };
    }
    let problem = answer.problem();
    let told = problem.detail.or(problem.title).unwrap_or_else(|| format!("the server answered {status}"));
    let told = visible(&told);
    Err(match status {
        400 | 422 => {
            let mut faults = Faults::default();
            faults.add("what was asked", told);
            Exit::Misconfigured { command, faults }
        }
        401 => Exit::Failed(format!("{told}; commands read it from ICHIDO_TOKEN")),
        409 => Exit::Conflict(told),
        408 | 429 | 502..=504 => Exit::Unreachable(told),
        _ => Exit::Failed(told),
    })
}

/// The answer of a server, as far as there is one that says something.
pub(super) fn of_read(outcome: Outcome) -> Result<Answer, Exit> {
    answered(outcome).map_err(|(why, _)| Exit::Unreachable(why))
}

/// The same for a change, which may have come about although nobody said so.
pub(super) fn of_change(outcome: Outcome) -> Result<Answer, Exit> {
    answered(outcome).map_err(|(why, effect)| {
        let known = match effect {
            Effect::NotDone => "nothing was done",
            Effect::Done | Effect::Unknown => {
                "it is not known whether this was done: look at how it stands before you ask again"
            }
        };
        Exit::Unreachable(format!("{why}; {known}"))
    })
}

fn answered(outcome: Outcome) -> Result<Answer, (String, Effect)> {
    match outcome {
        Outcome::Done { answer, .. } | Outcome::Refused { answer, .. } => Ok(answer),
        // A server of ours says itself what was done.
        Outcome::GaveUp { last: Last::Answer(answer), .. } if answer.problem().code.is_some() => Ok(answer),
        Outcome::GaveUp { why, last, effect, .. } => Err((gave_up(why, &last), effect)),
    }
}

/// Why no outcome was learnt.
pub(crate) fn gave_up(why: Why, last: &Last) -> String {
    let seen = match last {
        Last::Fault { why, .. } => format!("the server cannot be reached: {why}"),
        Last::Answer(answer) => format!("the server answered {}", answer.status),
    };
    format!("{seen}; {why}")
}

/// The answer is none of an Ichido server, or of one that is much newer.
pub(super) fn not_understood(why: impl std::fmt::Display) -> Exit {
    Exit::Failed(format!(
        "the answer is not understood: {why}; is it an Ichido server of this version that is at this address?"
    ))
}
