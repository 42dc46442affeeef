//! Which party requires the key, and which owns the outcome.

use ichido_core::json::{JsonValue, Kind};

use super::{Enabled, KeyRequirement, Reaction, RequireKey};
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
    "require_key_for_state_changing" = ValidateOnly,
}

/// The mode that is `validate_only` and requires the key in one word.
const REQUIRING: &str = "require_key_for_state_changing";

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
        /// What the boundary does about idempotency. `require_key_for_state_changing` is `validate_only` with a required key.
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
    /// `require_key` next to a mode other than `enabled`.
    require_key: Option<RequireKey>,
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
            Some(Mode::ValidateOnly) => {
                let is_required = self.validate_only.require_header_when_state_changing;
                is_required.unwrap_or_else(|| self.require_key().is_some_and(RequireKey::is_on))
            }
            Some(Mode::Enabled) => self.require_key().is_some_and(RequireKey::is_on),
            Some(Mode::Disabled) | None => false,
        }
    }

    fn require_key(&self) -> Option<&RequireKey> {
        if self.mode == Some(Mode::Enabled) {
            self.enabled.require_key.as_ref()
        } else {
            self.require_key.as_ref()
        }
    }

    /// Returns which requests need a key, if the file says so in detail.
    pub fn key_requirement(&self) -> Option<&KeyRequirement> {
        self.require_key()?.requirement()
    }

    /// Returns the JSON pointer to `require_key`.
    pub fn require_key_pointer(&self) -> String {
        let is_enabled = self.mode == Some(Mode::Enabled);
        let base = if is_enabled { self.enabled_pointer() } else { "/http/idempotency" };
        format!("{base}/require_key")
    }

    /// Returns the JSON pointer to the reaction to a missing key, whether it exists or not.
    pub(crate) fn missing_key_pointer(&self) -> String {
        if self.declared_reaction().is_none() && self.key_requirement().is_some() {
            return format!("{}/missing_key", self.require_key_pointer());
        }
        match self.mode {
            Some(Mode::Enabled) => format!("{}/on_missing_key", self.enabled_pointer()),
            Some(Mode::ValidateOnly | Mode::Disabled) | None => {
                "/http/idempotency/validate_only/on_missing_key".to_owned()
            }
        }
    }

    /// Returns whether the file has two reactions to a missing key that differ.
    pub(crate) fn has_two_reactions(&self) -> bool {
        let detailed = self.key_requirement().and_then(|required| required.missing_key.as_ref());
        detailed.is_some_and(|detailed| self.declared_reaction().is_some_and(|other| other != detailed))
    }

    /// Returns the reaction to a state-changing request without a key, if the file has one.
    pub fn on_missing_key(&self) -> Option<&Reaction> {
        self.declared_reaction().or_else(|| self.key_requirement()?.missing_key.as_ref())
    }

    /// Returns the reaction in `on_missing_key`.
    fn declared_reaction(&self) -> Option<&Reaction> {
        match self.mode {
            Some(Mode::Enabled) => self.enabled.on_missing_key.as_ref(),
            Some(Mode::ValidateOnly | Mode::Disabled) | None => self.validate_only.on_missing_key.as_ref(),
        }
    }
}

impl FromJson for Idempotency {
    fn schema() -> Schema {
        let mut members = IdempotencyMembers::members();
        for member in &mut members {
            if let ("enabled", Schema::Object(inside)) = (member.name, &mut member.schema) {
                member.schema = Schema::Flattened(std::mem::take(inside));
            }
        }
        Schema::Object(members)
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        // Read twice, because the mode says where the members are; the second time an invalid mode is reported.
        let mode = Option::<Mode>::read_member(at, "mode", &mut ReadContext::default());
        let is_flat = mode == Some(Mode::Enabled) && !at.has("enabled");
        let beside = if is_flat { Enabled::NAMES } else { &["require_key"] };
        at.object(&[IdempotencyMembers::NAMES, beside].concat(), context)?;
        let mut members = IdempotencyMembers::read_members(at, context);
        let mut require_key = None;
        if is_flat {
            members.enabled = read_flat(at, context)?;
        } else if mode != Some(Mode::Enabled) {
            require_key = Option::read_member(at, "require_key", context);
        }
        if at.value().get("mode").and_then(JsonValue::as_str).as_deref() == Some(REQUIRING) {
            members.validate_only.require_header_when_state_changing.get_or_insert(true);
        }
        let unread_members = match mode {
            _ if is_flat => Vec::new(),
            Some(Mode::Enabled) => contradictions(at, &members.enabled),
            Some(Mode::ValidateOnly | Mode::Disabled) | None => misplaced_members(at),
        };
        Ok(Self { members, unread_members, require_key, is_flat })
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
    inside.invalid.into_iter().for_each(|invalid| context.refuse(invalid));
    Ok(enabled)
}

/// Returns the members next to `enabled` that contradict those inside it.
fn contradictions(at: LocatedValue<'_>, enabled: &Enabled) -> Vec<&'static str> {
    let present = Enabled::NAMES.iter().copied().filter(|name| at.has(name));
    let mut context = ReadContext::default();
    let beside = Enabled::read(at, &mut context).ok();
    // An unreadable member is a contradiction.
    let beside = beside.filter(|_| context.invalid.is_empty());
    present.filter(|name| beside.as_ref().is_none_or(|beside| !beside.agrees(enabled, name))).collect()
}

/// Returns the members of `enabled` that guarantee something although the mode is another.
fn misplaced_members(at: LocatedValue<'_>) -> Vec<&'static str> {
    let guarantees = |name: &str| {
        at.value().get(name).is_some_and(|value| match (name, value.as_str().as_deref(), value.as_bool()) {
            ("owner", Some("adapter"), _) => false,
            ("require_key", ..) => value.as_bool() == Some(false),
            (_, Some(word), _) => !NOTHING.iter().any(|one| one.eq_ignore_ascii_case(word)),
            (_, _, Some(truth)) => truth,
            _ => value.kind() != Kind::Null && value.members().next().is_some(),
        })
    };
    Enabled::NAMES.iter().copied().filter(|name| guarantees(name)).collect()
}
