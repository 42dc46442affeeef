//! Which party requires the key, and which owns the outcome.

use ichido_core::json::Kind;

use super::{Enabled, Reaction};
use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema, members, object, words};

words! {
    /// What a boundary does about idempotency.
    Mode {
        /// It checks that the key is present and passes it on; it stores nothing.
        // SPEC C2.
        ValidateOnly = "validate_only",
        /// It owns the outcome: only the adapter does.
        Enabled = "enabled",
        /// It does nothing.
        Disabled = "disabled",
    }
}

object! {
    /// What a boundary checks if it does not own the outcome.
    ValidateOnly {
        /// Whether a state-changing request without a key is refused here.
        require_header_when_state_changing: Option<bool>,
        /// The response to a state-changing request without a key.
        on_missing_key: Option<Reaction>,
    }
}

members! {
    /// The members of `http.idempotency`.
    IdempotencyMembers {
        /// What the boundary does about idempotency.
        mode: Option<Mode>,
        // SPEC C5.
        /// Whether the receiver's responses echo the key: at all boundaries or at none.
        echo_key: Option<bool>,
        /// The checks of the mode `validate_only`.
        validate_only: ValidateOnly,
        /// The guarantees of the mode `enabled`. Its members may also be next to `mode`.
        enabled: Enabled,
    }
}

/// Which party requires the key, and which owns the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idempotency {
    members: IdempotencyMembers,
    /// The members of `enabled` in `http.idempotency` itself that nobody reads: `enabled` contradicts them, or the mode
    /// is another.
    pub unread_members: Vec<&'static str>,
    /// Where the members of `enabled` are.
    is_flat: bool,
}

/// The number of steps to a member of `/http/idempotency`.
const DEPTH: usize = 3;

/// Words for guaranteeing nothing: `"storage": "none"`.
const NOTHING: [&str; 4] = ["none", "off", "disabled", "never"];

/// Gives access to the members as if they were part of this: `idempotency.mode`.
impl std::ops::Deref for Idempotency {
    type Target = IdempotencyMembers;

    fn deref(&self) -> &IdempotencyMembers {
        &self.members
    }
}

impl Idempotency {
    /// Returns the JSON pointer to the members of `enabled`.
    pub const fn enabled_pointer(&self) -> &'static str {
        if self.is_flat { "/http/idempotency" } else { "/http/idempotency/enabled" }
    }

    /// Returns whether a state-changing request needs a key here.
    pub fn requires_key(&self) -> bool {
        match self.mode {
            Some(Mode::ValidateOnly) => self.validate_only.require_header_when_state_changing == Some(true),
            Some(Mode::Enabled) => self.enabled.require_key == Some(true),
            Some(Mode::Disabled) | None => false,
        }
    }

    /// Returns the reaction to a state-changing request without a key, if the file has one.
    pub fn on_missing_key(&self) -> Option<&Reaction> {
        match self.mode {
            Some(Mode::Enabled) => self.enabled.on_missing_key.as_ref(),
            Some(Mode::ValidateOnly | Mode::Disabled) | None => self.validate_only.on_missing_key.as_ref(),
        }
    }
}

impl FromJson for Idempotency {
    fn schema() -> Schema {
        Schema::Object(IdempotencyMembers::members())
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        let mode = Option::read_member(at, "mode", context)?;
        let is_flat = mode == Some(Mode::Enabled) && !at.has("enabled");
        let of_enabled = if is_flat { Enabled::NAMES } else { &[] };
        at.object(&[IdempotencyMembers::NAMES, of_enabled].concat(), context)?;
        let mut members = IdempotencyMembers::read_members(at, context)?;
        if is_flat {
            members.enabled = read_flat(at, context)?;
        }
        let unread_members = match mode {
            _ if is_flat => Vec::new(),
            Some(Mode::Enabled) => contradictions(at, &members.enabled),
            Some(Mode::ValidateOnly | Mode::Disabled) | None => misplaced_members(at),
        };
        Ok(Self { members, unread_members, is_flat })
    }
}

fn read_flat(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Enabled, InvalidValue> {
    let mut inside = ReadContext::default();
    let enabled = Enabled::read(at, &mut inside)?;
    // At this level it counts `mode` and its neighbours as unknown; deeper down it is right.
    let is_deeper = |pointer: &str| DEPTH < pointer.matches('/').count();
    inside.unknown.retain(|pointer| is_deeper(pointer));
    inside.misspelled.retain(|one| is_deeper(&one.pointer));
    context.unknown.append(&mut inside.unknown);
    context.misspelled.append(&mut inside.misspelled);
    Ok(enabled)
}

/// Returns the members next to `enabled` that contradict those inside it.
fn contradictions(at: LocatedValue<'_>, enabled: &Enabled) -> Vec<&'static str> {
    let present = Enabled::NAMES.iter().copied().filter(|name| at.has(name));
    // An unreadable member is a contradiction.
    match Enabled::read(at, &mut ReadContext::default()) {
        Ok(beside) => present.filter(|name| !beside.agrees(enabled, name)).collect(),
        Err(_) => present.collect(),
    }
}

/// Returns the members of `enabled` that guarantee something although the mode is another.
fn misplaced_members(at: LocatedValue<'_>) -> Vec<&'static str> {
    let guarantees = |name: &str| {
        at.value().get(name).is_some_and(|value| match (name, value.as_str().as_deref(), value.as_bool()) {
            ("owner", Some("adapter"), _) => false,
            ("require_key", _, truth) => truth != Some(true),
            (_, Some(word), _) => !NOTHING.iter().any(|one| one.eq_ignore_ascii_case(word)),
            (_, _, Some(truth)) => truth,
            _ => value.kind() != Kind::Null && value.members().next().is_some(),
        })
    };
    Enabled::NAMES.iter().copied().filter(|name| guarantees(name)).collect()
}
