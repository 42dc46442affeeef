//! Rules about connections and processes that end too early.

use super::with_effects;
use crate::exchange::{Cut, Received, Step};
use crate::kit::{Kit, NotApplicable};
use crate::seen::{Judged, Seen, fail, not_applicable, shown, unverified};
use crate::target::{Command, Condition};

/// Concludes that the retry after a loss succeeds, with one effect beside that of the control.
fn one_effect(seen: &Seen<'_>, what: &str) -> Judged<String> {
    seen.control()?;
    let last = seen.exchanges.len().saturating_sub(1);
    for index in 1..last {
        is_cut(seen, index)?;
    }
    seen.response(last)?;
    seen.effects_are(1, 2)?;
    let last = seen.done(last)?;
    if !last.is_success() {
        return fail(format!("the retry got {}", shown(last)));
    }
    seen.effects_are(2, 2)?;
    Ok(with_effects(seen, what))
}

/// Ends the judgement unless the probe did cut the connection.
fn is_cut(seen: &Seen<'_>, index: usize) -> Judged<()> {
    let why = match &seen.exchanges[index].received {
        Received::Cut => return Ok(()),
        Received::Response(response) => format!("it got {}", shown(response)),
        Received::Closed(why) | Received::Nothing(why) | Received::NotConnected(why) => why.clone(),
    };
    unverified(format!("{} was not cut: {why}", seen.request(index)?.purpose))
}

/// A control, a request whose connection is cut, and its retry.
fn cut_and_retry(kit: &Kit<'_>, purpose: &'static str, cut: Cut) -> Vec<Step> {
    vec![kit.control(), Step::Send(kit.cut(purpose, 1, cut)), Step::Send(kit.polled("the retry", 1))]
}

pub(super) fn response_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    Ok(cut_and_retry(kit, "a request that is cut in its response", Cut::InResponse))
}

pub(super) fn response(seen: &Seen<'_>) -> Judged<String> {
    one_effect(seen, "the retry gets the outcome")
}

pub(super) fn connection_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let mut steps = cut_and_retry(kit, "a request that is cut before its response", Cut::AfterRequest);
    steps.insert(1, Step::Send(kit.cut("a connection without a request", 1, Cut::BeforeRequest)));
    Ok(steps)
}

pub(super) fn connection(seen: &Seen<'_>) -> Judged<String> {
    one_effect(seen, "the retry gets the outcome")
}

pub(super) fn upload_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    if kit.body(1).len() < 2 {
        return Err("the request has no body".to_owned());
    }
    Ok(cut_and_retry(kit, "a request that is cut in its body", Cut::InRequest))
}

pub(super) fn upload(seen: &Seen<'_>) -> Judged<String> {
    one_effect(seen, "the complete request runs")
}

pub(super) fn process_steps(kit: &Kit<'_>) -> Result<Vec<Step>, NotApplicable> {
    let crash = kit.command(Command::Crash)?;
    let request = kit.once("a request in flight when the API is killed", 1);
    let request = kit.provoked(Condition::Slow, request.clone()).unwrap_or(request);
    Ok(vec![Step::During(request, vec![crash]), Step::Send(kit.polled("the retry after the restart", 1))])
}

pub(super) fn process(seen: &Seen<'_>) -> Judged<String> {
    let last = seen.response(1)?;
    seen.effects_are(0, 1)?;
    is_killed(seen, 0)?;
    if seen.is_in_flight(last) {
        return unverified(format!(
            "the retry is still in flight, its claim outlives the probe: {}",
            shown(last)
        ));
    }
    if last.is_success() {
        seen.effects_are(1, 1)?;
    } else if last.status != seen.profile.numbers().unknown_status && last.status / 100 != 5 {
        // SPEC F2: an unknown outcome may be reported; it is never run again.
        return unverified(format!("the retry got {}, which says nothing about the outcome", shown(last)));
    }
    Ok(with_effects(seen, &format!("the retry after the restart got {}", last.status)))
}

/// Ends the judgement unless the API was killed while this request was in flight.
fn is_killed(seen: &Seen<'_>, index: usize) -> Judged<()> {
    let why = match &seen.exchanges[index].received {
        Received::Closed(_) => return Ok(()),
        // A gateway's word for the same.
        Received::Response(response) if matches!(response.status, 502..=504) => return Ok(()),
        Received::Response(response) => {
            return not_applicable(format!(
                "the request got {} before the API was killed; pass --provoke slow='HEADER: VALUE'",
                shown(response)
            ));
        }
        Received::Nothing(why) | Received::NotConnected(why) => why.clone(),
        Received::Cut => "the probe cut it".to_owned(),
    };
    unverified(format!("the API was not killed while the request was in flight: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Exchange;
    use crate::rules::tests::{exchange, judged};
    use crate::seen::Verdict;

    fn lost(received: Received) -> [Exchange; 3] {
        let mut all = [exchange(201, "0"), exchange(201, "1"), exchange(201, "1")];
        all[1].received = received;
        all
    }

    #[test]
    fn a_loss_that_did_not_happen_is_not_judged() {
        let pass = judged(response, &lost(Received::Cut), 2);
        assert_eq!(pass, Verdict::Pass("the retry gets the outcome, 2 effects".to_owned()));
        let closed = judged(response, &lost(Received::Closed("reset".to_owned())), 2);
        let why = "a request was not cut: reset";
        assert_eq!(closed, Verdict::Unverified(why.to_owned()));
    }

    #[test]
    fn a_kill_that_met_no_request_is_not_judged() {
        let of = |first, last| [Exchange { received: first, ..exchange(201, "1") }, exchange(last, "1")];
        let closed = || Received::Closed("reset".to_owned());
        assert!(matches!(judged(process, &of(closed(), 201), 1), Verdict::Pass(_)));
        assert!(matches!(judged(process, &of(closed(), 201), 2), Verdict::Fail(_)));
        assert!(matches!(judged(process, &of(closed(), 404), 0), Verdict::Unverified(_)));
        let answered = judged(process, &of(exchange(201, "1").received, 201), 1);
        assert!(answered.why().contains("pass --provoke slow"), "{answered:?}");
        assert!(matches!(answered, Verdict::NotApplicable(_)), "{answered:?}");
    }
}
