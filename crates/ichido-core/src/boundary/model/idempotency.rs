//! Who requires the key, and who owns the outcome.

use super::{Enabled, Reaction};
use crate::boundary::member::{At, Field, Member, Misfit, Read, Reading, Shape, object, words};

words! {
    /// What a boundary does about idempotency.
    Mode {
        /// It checks that the key is there and passes it on; it stores nothing (SPEC C2).
        ValidateOnly = "validate_only",
        /// It completes idempotency: only the adapter does.
        Enabled = "enabled",
        /// It does nothing.
        Disabled = "disabled",
    }
}

object! {
    /// What a boundary checks that does not own the outcome.
    ValidateOnly {
        /// Whether a state-changing request without a key is stopped here.
        require_header_when_state_changing: Option<bool>,
        /// What is done about a state-changing request without a key.
        on_missing_key: Option<Reaction>,
    }
}

/// Who requires the key, and who owns the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idempotency {
    /// What the boundary does about idempotency.
    pub mode: Option<Mode>,
    /// Whether the receiver's answers carry the key: at all boundaries or at none (SPEC C5).
    pub echo_key: Option<bool>,
    /// What is checked where the mode is `validate_only`.
    pub validate_only: ValidateOnly,
    /// What is promised where the mode is `enabled`. Its members stand in `enabled`, or in `http.idempotency` itself
    /// where there is no `enabled`.
    pub enabled: Enabled,
    /// Where the members of `enabled` stand.
    is_flat: bool,
}

/// How many steps lead to a member of `/http/idempotency`.
const DEPTH: usize = 3;

const KNOWN: [&str; 4] = ["mode", "echo_key", "validate_only", "enabled"];

impl Idempotency {
    /// The JSON pointer to the members of [`Idempotency::enabled`].
    pub const fn enabled_pointer(&self) -> &'static str {
        if self.is_flat { "/http/idempotency" } else { "/http/idempotency/enabled" }
    }

    /// Whether a state-changing request needs a key here.
    pub fn requires_key(&self) -> bool {
        match self.mode {
            Some(Mode::ValidateOnly) => self.validate_only.require_header_when_state_changing == Some(true),
            Some(Mode::Enabled) => self.enabled.require_key == Some(true),
            Some(Mode::Disabled) | None => false,
        }
    }

    /// What is done about a state-changing request without a key, if the file says so.
    pub fn on_missing_key(&self) -> Option<&Reaction> {
        match self.mode {
            Some(Mode::Enabled) => self.enabled.on_missing_key.as_ref(),
            Some(Mode::ValidateOnly | Mode::Disabled) | None => self.validate_only.on_missing_key.as_ref(),
        }
    }
}

impl Read for Idempotency {
    fn shape() -> Shape {
        Shape::Object(vec![
            Member { name: "mode", doc: "What the boundary does about idempotency.", shape: Mode::shape() },
            Member {
                name: "echo_key",
                doc: "Whether the receiver's answers carry the key: at all boundaries or at none.",
                shape: bool::shape(),
            },
            Member {
                name: "validate_only",
                doc: "What is checked where the mode is `validate_only`.",
                shape: <ValidateOnly as Read>::shape(),
            },
            Member {
                name: "enabled",
                doc: "What is promised where the mode is `enabled`; its members may also stand beside `mode`.",
                shape: <Enabled as Read>::shape(),
            },
        ])
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        let mode = Option::read_member(at, "mode", reading)?;
        let is_flat = mode == Some(Mode::Enabled) && !at.has("enabled");
        let known: Vec<&str> =
            if is_flat { KNOWN.iter().chain(Enabled::NAMES).copied().collect() } else { KNOWN.into() };
        at.object(&known, reading)?;
        let enabled = if is_flat {
            let mut inside = Reading::default();
            let enabled = Enabled::read(at, &mut inside)?;
            // At this level it takes `mode` and its neighbours for unknown; deeper down it is right.
            inside.unknown.retain(|pointer| DEPTH < pointer.matches('/').count());
            reading.unknown.append(&mut inside.unknown);
            enabled
        } else {
            Enabled::read_member(at, "enabled", reading)?
        };
        Ok(Self {
            mode,
            echo_key: Option::read_member(at, "echo_key", reading)?,
            validate_only: ValidateOnly::read_member(at, "validate_only", reading)?,
            enabled,
            is_flat,
        })
    }
}

impl Field for Idempotency {
    fn shape() -> Shape {
        <Self as Read>::shape()
    }

    fn read_member(holder: At<'_>, name: &str, reading: &mut Reading) -> Result<Self, Misfit> {
        Ok(Option::<Self>::read_member(holder, name, reading)?.unwrap_or_default())
    }
}
