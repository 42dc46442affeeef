//! What a rule builds its requests with: one run's keys, one rule's marker, the target's request.

use std::fmt::Write as _;

use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::Profile;
use ichido_core::time::Timestamp;
use ichido_http::signature;

use crate::exchange::{Cut, Patience, ProbeRequest, Step};
use crate::json;
use crate::target::{Command, Condition, Counter, MARKER, Target, UNIQUE};

pub(crate) const KEY: &str = "Idempotency-Key";

/// What a request is for that shows that the target accepts another body at all.
pub(crate) const OWN_BODY: &str = "another body under a key of its own";

/// The key of a rule's control, which no other request of the rule has.
const CONTROL: usize = 0;

/// Why a rule does not apply to a target.
pub(crate) type NotApplicable = String;

/// A rule's requests to a target.
pub(crate) struct Kit<'a> {
    pub(crate) target: &'a Target,
    rule: &'static str,
    run: &'a str,
    pub(crate) now: Timestamp,
}

impl<'a> Kit<'a> {
    pub(crate) const fn new(target: &'a Target, rule: &'static str, run: &'a str, now: Timestamp) -> Self {
        Self { target, rule, run, now }
    }

    /// Returns the text that marks this rule's requests.
    pub(crate) fn marker(&self) -> String {
        format!("{}-{}", self.run, self.rule.rsplit('-').next().unwrap_or_default().to_ascii_lowercase())
    }

    /// Replaces the marker, and what is unique to a key.
    fn marked(&self, text: &str, number: usize) -> String {
        text.replace(MARKER, &self.marker()).replace(UNIQUE, &format!("{}-{number}", self.marker()))
    }

    /// Returns a key of this rule, the same for the same number.
    pub(crate) fn key(&self, number: usize) -> String {
        let number = number.to_string();
        let parts = [self.run.as_bytes(), self.rule.as_bytes(), number.as_bytes()];
        IdempotencyKey::derived("ichido probe", &parts).as_str().to_owned()
    }

    /// Returns the target's request without a key; `number` is the key that its unique texts belong to.
    pub(crate) fn plain(&self, purpose: &'static str, number: usize) -> ProbeRequest {
        let target = self.target;
        let line = |(name, value): &(String, String)| (name.clone(), self.marked(value, number).into_bytes());
        ProbeRequest {
            purpose,
            method: target.method.clone(),
            target: self.marked(&target.path, number),
            headers: target.headers.iter().map(line).collect(),
            body: self.body(number).into_bytes(),
            cut: Cut::Never,
            patience: Patience::UntilAnswered,
        }
    }

    /// Returns the target's request with a key, spelled as in the profile.
    pub(crate) fn keyed(&self, purpose: &'static str, number: usize) -> ProbeRequest {
        let key = self.key(number);
        let value = if self.target.profile == Profile::Ietf { format!("\"{key}\"") } else { key };
        self.with_key(purpose, number, value)
    }

    /// Returns the request that shows that the target accepts such requests at all.
    pub(crate) fn control(&self) -> Step {
        Step::Send(self.keyed("the control, a request under a key of its own", CONTROL))
    }

    /// Returns the target's request with this key line.
    pub(crate) fn with_key(
        &self,
        purpose: &'static str,
        number: usize,
        value: impl Into<Vec<u8>>,
    ) -> ProbeRequest {
        let mut request = self.plain(purpose, number);
        request.set(KEY, value);
        request
    }

    /// Returns a request that is sent again while it is in flight.
    pub(crate) fn polled(&self, purpose: &'static str, number: usize) -> ProbeRequest {
        ProbeRequest { patience: Patience::UntilDone, ..self.keyed(purpose, number) }
    }

    /// Returns a request whose first response counts, even if it says that the target is busy.
    pub(crate) fn once(&self, purpose: &'static str, number: usize) -> ProbeRequest {
        ProbeRequest { patience: Patience::Once, ..self.keyed(purpose, number) }
    }

    /// Returns the request of a cut connection.
    pub(crate) fn cut(&self, purpose: &'static str, number: usize, cut: Cut) -> ProbeRequest {
        ProbeRequest { cut, ..self.once(purpose, number) }
    }

    /// Returns the keyed request with another body.
    pub(crate) fn other_body(
        &self,
        purpose: &'static str,
        number: usize,
    ) -> Result<ProbeRequest, NotApplicable> {
        let mut request = self.keyed(purpose, number);
        let body = self.body(number);
        request.body = json::varied(&body, self.target.vary.as_deref(), &self.marker())?.into_bytes();
        Ok(request)
    }

    /// Returns the target's body under a key.
    pub(crate) fn body(&self, number: usize) -> String {
        self.marked(&self.target.body, number)
    }

    /// Returns the request with the header line that provokes a condition.
    pub(crate) fn provoked(
        &self,
        condition: Condition,
        mut request: ProbeRequest,
    ) -> Result<ProbeRequest, NotApplicable> {
        let found = self.target.provoke.iter().find(|(one, _)| *one == condition);
        let (_, (name, value)) = found.ok_or_else(|| {
            format!(
                "nothing provokes it; pass --provoke {condition}='HEADER: VALUE' for a test build of the API"
            )
        })?;
        request.set(name, value.as_bytes());
        if matches!(condition, Condition::Fail | Condition::Limit) {
            request.patience = Patience::Once;
        }
        Ok(request)
    }

    /// Returns the step that runs a command of the user.
    pub(crate) fn command(&self, command: Command) -> Result<Step, NotApplicable> {
        let found = self.target.commands.iter().find(|(one, _)| *one == command);
        let missing = || format!("the probe cannot act on the API; pass --{command} COMMAND");
        found.map(|(_, line)| Step::Run(command, line.clone())).ok_or_else(missing)
    }

    /// Returns the request with this header line instead of the lines of its name.
    pub(crate) fn instead(
        mut request: ProbeRequest,
        line: Option<&(String, String)>,
        missing: &str,
    ) -> Result<ProbeRequest, NotApplicable> {
        let (name, value) = line.ok_or(missing)?;
        request.set(name, value.as_bytes());
        Ok(request)
    }

    /// Returns a signed delivery of an event, sent `age_secs` after its timestamp.
    pub(crate) fn delivery(&self, purpose: &'static str, number: usize, age_secs: i64) -> ProbeRequest {
        let mut request = self.plain(purpose, number);
        let id = format!("msg_{}", self.key(number));
        let sent = Timestamp::from_secs(self.now.as_millis().div_euclid(1_000) - age_secs);
        let secrets = self.target.webhook.as_ref().map(|webhook| webhook.secret.clone());
        for (name, value) in signature::fields(secrets.as_slice(), &id, sent, &request.body) {
            request.set(name, value);
        }
        request
    }

    /// Returns the request that counts effects.
    pub(crate) fn count(&self) -> Option<ProbeRequest> {
        let Some(Counter::Get { path, .. }) = &self.target.counter else { return None };
        let mut request = self.plain("count the effects", 0);
        "GET".clone_into(&mut request.method);
        request.target = self.marked(path, 0);
        request.body.clear();
        request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        Some(request)
    }
}

/// Returns the name of a run, which all its markers share.
pub fn run_name(random: [u8; 4]) -> String {
    random.iter().fold("probe-".to_owned(), |mut name, byte| {
        // A `String` takes whatever is written to it.
        _ = write!(name, "{byte:02x}");
        name
    })
}
