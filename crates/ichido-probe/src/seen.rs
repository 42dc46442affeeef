//! What was seen of a target, and what can be said about it.

use std::cell::Cell;

use ichido_core::ledger::Profile;
use ichido_core::text::{bounded, visible};

use crate::exchange::{EffectCount, Exchange, Patience, ProbeRequest, ProbeResponse, Received};
use crate::kit::KEY;
use crate::target::Condition;

/// What the probe says about a rule, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The target keeps the rule.
    Pass(String),
    /// The target breaks the rule.
    Fail(String),
    /// There is nothing to test.
    NotApplicable(String),
    /// Whether the target keeps the rule was not seen.
    Unverified(String),
}

impl Verdict {
    /// Returns the verdict as a word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pass(_) => "pass",
            Self::Fail(_) => "fail",
            Self::NotApplicable(_) => "not applicable",
            Self::Unverified(_) => "unverified",
        }
    }

    /// Returns the verdict with another text of why.
    pub(crate) fn map(self, of: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Pass(why) => Self::Pass(of(why)),
            Self::Fail(why) => Self::Fail(of(why)),
            Self::NotApplicable(why) => Self::NotApplicable(of(why)),
            Self::Unverified(why) => Self::Unverified(of(why)),
        }
    }

    /// Returns why.
    pub fn why(&self) -> &str {
        let (Self::Pass(why) | Self::Fail(why) | Self::NotApplicable(why) | Self::Unverified(why)) = self;
        why
    }
}

/// Ends a judgement early.
pub(crate) type Judged<T> = Result<T, Verdict>;

/// The recorded exchanges of a rule.
pub(crate) struct Seen<'a> {
    pub(crate) exchanges: &'a [Exchange],
    pub(crate) effects: &'a EffectCount,
    pub(crate) profile: Profile,
    /// Why the count may not be the last word.
    pub(crate) doubt: Cell<Doubt>,
}

/// Why effects are counted again before a rule is called broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The count decides nothing, or is as expected.
    #[default]
    None,
    /// There are too few: the counter may be late.
    Missing,
    /// There are too many: the counter may count the requests of others.
    Excess,
}

pub(crate) fn fail<T>(why: impl Into<String>) -> Judged<T> {
    Err(Verdict::Fail(why.into()))
}

pub(crate) fn unverified<T>(why: impl Into<String>) -> Judged<T> {
    Err(Verdict::Unverified(why.into()))
}

pub(crate) fn not_applicable<T>(why: impl Into<String>) -> Judged<T> {
    Err(Verdict::NotApplicable(why.into()))
}

impl<'a> Seen<'a> {
    pub(crate) fn request(&self, index: usize) -> Judged<&'a ProbeRequest> {
        let missing = || Verdict::Unverified("not all requests were sent".to_owned());
        self.exchanges.get(index).map(|exchange| &exchange.request).ok_or_else(missing)
    }

    /// Returns the response to the request of this index, which must have one, and not one of a busy target.
    pub(crate) fn response(&self, index: usize) -> Judged<&'a ProbeResponse> {
        let response = self.any_response(index)?;
        if response.is_busy() && self.exchanges[index].request.patience != Patience::Once {
            let (purpose, status) = (self.exchanges[index].request.purpose, response.status);
            let tries = self.exchanges[index].earlier.len() + 1;
            return Err(Verdict::Unverified(format!(
                "{purpose} got {status} at each of {tries} tries: the API is busy, or limits requests"
            )));
        }
        Ok(response)
    }

    /// Whether the response is marked as a replay, and not because the probe itself sent the request again.
    pub(crate) fn is_marked(&self, index: usize) -> Judged<bool> {
        let response = self.response(index)?;
        Ok(is_marked(response) && self.exchanges[index].earlier.is_empty())
    }

    /// Returns the response to the request of this index, even one of a busy target.
    pub(crate) fn any_response(&self, index: usize) -> Judged<&'a ProbeResponse> {
        let request = self.request(index)?;
        match &self.exchanges[index].received {
            Received::Response(response) => Ok(response),
            Received::Cut => Err(Verdict::Unverified(format!("{} was cut", request.purpose))),
            Received::Closed(why) | Received::Nothing(why) => {
                let why = format!("{} got no response: {why}", request.purpose);
                // Only an API that responds to such requests at all breaks a rule by silence.
                let responds = self.exchanges[..index].iter().any(|one| match &one.received {
                    Received::Response(response) => response.is_success(),
                    Received::Cut => true,
                    Received::Closed(_) | Received::Nothing(_) | Received::NotConnected(_) => false,
                });
                if responds { fail(why) } else { Err(Verdict::Unverified(why)) }
            }
            Received::NotConnected(why) => {
                Err(Verdict::Unverified(format!("{} was not sent: {why}", request.purpose)))
            }
        }
    }

    /// Returns the status, or `None` if the target closed the connection without a response.
    pub(crate) fn status(&self, index: usize) -> Judged<Option<u16>> {
        self.request(index)?;
        match &self.exchanges[index].received {
            Received::Closed(_) => Ok(None),
            _ => self.response(index).map(|response| Some(response.status)),
        }
    }

    /// Returns the response to a request that was sent until the action was no longer in flight.
    pub(crate) fn done(&self, index: usize) -> Judged<&'a ProbeResponse> {
        let response = self.response(index)?;
        if !self.is_in_flight(response) {
            return Ok(response);
        }
        let tries = match self.exchanges[index].earlier.len() {
            0 => "1 try".to_owned(),
            repeats => format!("{} tries", repeats + 1),
        };
        let purpose = self.exchanges[index].request.purpose;
        fail(format!("{purpose} is still in flight after {tries}: {}", shown(response)))
    }

    /// Returns the response to a request that the target must accept, or nothing can be tested.
    pub(crate) fn accepted(&self, index: usize) -> Judged<&'a ProbeResponse> {
        let response = self.response(index)?;
        if response.is_success() && !self.is_in_flight(response) {
            return Ok(response);
        }
        let purpose = self.request(index)?.purpose;
        not_applicable(format!(
            "{purpose} was not accepted: {}; pass a request that the API accepts",
            shown(response)
        ))
    }

    /// Ends the judgement unless the control was accepted: a request of the target as it is, under a key of its own.
    ///
    /// A refusal says something about a rule only if a request that keeps the rule is accepted.
    pub(crate) fn control(&self) -> Judged<()> {
        self.accepted(0).map(drop)
    }

    /// Ends the judgement unless the second request was sent while the first was in flight.
    pub(crate) fn overlap(&self, first: usize, second: usize, condition: Condition) -> Judged<()> {
        // One that was turned away at first came at another time.
        let is_turned_away =
            |one: &Exchange| one.earlier.iter().any(|one| matches!(one, None | Some(429 | 503)));
        if let (Some(one), Some(other)) = (self.exchanges.get(first), self.exchanges.get(second))
            && other.is_with_previous
            && !is_turned_away(one)
            && !is_turned_away(other)
        {
            return Ok(());
        }
        let (first, second) = (self.request(first)?.purpose, self.request(second)?.purpose);
        unverified(format!(
            "{second} was not sent while {first} was in flight: --provoke {condition} did not slow it down for 1 s"
        ))
    }

    /// Fails unless this many effects were counted. Without a counter it says nothing.
    pub(crate) fn effects_are(&self, least: u64, most: u64) -> Judged<()> {
        match self.effects {
            EffectCount::Counted(count) if *count < least || most < *count => {
                self.doubt.set(if *count < least { Doubt::Missing } else { Doubt::Excess });
                let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
                fail(format!("{} instead of {wanted}", counted(*count)))
            }
            EffectCount::Counted(_) | EffectCount::NotCounted => Ok(()),
            EffectCount::Failed(why) => Err(Verdict::Unverified(format!("the counter failed: {why}"))),
        }
    }

    /// Whether a response says that the action is still in flight.
    pub(crate) fn is_in_flight(&self, response: &ProbeResponse) -> bool {
        is_in_flight(self.profile, response)
    }
}

/// Writes a count of effects.
pub(crate) fn counted(count: u64) -> String {
    if count == 1 { "1 effect".to_owned() } else { format!("{count} effects") }
}

/// Says how a refusal that is expected to have this status differs.
pub(crate) fn refused(what: &str, response: &ProbeResponse, expected: u16) -> String {
    match response.status / 100 {
        4 => format!("{what} is refused, but with {}, not {expected}", shown(response)),
        _ => format!("{what} is not refused: {}", shown(response)),
    }
}

/// Fails unless the second response is that of the first request.
pub(crate) fn is_same(first: &ProbeResponse, again: &ProbeResponse, purpose: &str) -> Judged<()> {
    if (first.status, &first.body) == (again.status, &again.body) {
        return Ok(());
    }
    let at = first.body.iter().zip(&again.body).take_while(|(one, other)| one == other).count();
    let place = match (shown(first), shown(again)) {
        // What is shown is cut off before they differ.
        (one, other) if one == other => format!(" (the bodies differ at byte {at})"),
        _ => String::new(),
    };
    fail(format!("{purpose} got {} instead of the first response, {}{place}", shown(again), shown(first)))
}

/// Whether a response says, in this profile, that the action is still in flight.
pub(crate) fn is_in_flight(profile: Profile, response: &ProbeResponse) -> bool {
    let status = response.header("idempotency-status");
    response.status == profile.numbers().in_flight_status
        && if response.status == 202 { status == Some("processing") } else { status != Some("unknown") }
}

/// Whether a response is marked as a replay, in any profile.
pub(crate) fn is_marked(response: &ProbeResponse) -> bool {
    Profile::ALL.into_iter().any(|profile| {
        response
            .header(profile.numbers().replay_marker)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    })
}

/// Whether a request's key came back.
pub(crate) fn is_echoed(request: &ProbeRequest, response: &ProbeResponse) -> bool {
    let sent = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(KEY));
    sent.is_some_and(|(_, value)| response.lines(KEY).any(|line| line == value))
}

/// Shows a response in a few words.
pub(crate) fn shown(response: &ProbeResponse) -> String {
    const MAX_CHARS: usize = 60;
    if response.header("content-type").is_some_and(|kind| kind.contains("html")) {
        return format!("{} with an HTML page", response.status);
    }
    let body = String::from_utf8_lossy(&response.body);
    let body = visible(body.trim());
    let marked = if is_marked(response) { ", marked as a replay" } else { "" };
    if body.is_empty() {
        format!("{}{marked}", response.status)
    } else {
        format!("{} {}{marked}", response.status, bounded(&body, MAX_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_that_share_a_beginning_differ() {
        let of = |end: &str| {
            let body = format!("{}{end}", "x".repeat(10_000)).into_bytes();
            ProbeResponse { status: 201, headers: Vec::new(), body }
        };
        assert_eq!(is_same(&of("1"), &of("1"), "the retry"), Ok(()));
        let Err(verdict) = is_same(&of("1"), &of("2"), "the retry") else { panic!("they are not the same") };
        let why = verdict.why();
        assert!(
            why.contains("xxx… instead of") && why.ends_with("xxx… (the bodies differ at byte 10000)"),
            "{why}"
        );
    }
}
