//! Where a key is required, as a yes or no, or in detail.

use ichido_core::json::Kind;

use super::Reaction;
use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema, members};

/// Whether a state-changing request without a key is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequireKey {
    /// For every state-changing method, or for none.
    Always(bool),
    /// For these methods and operations.
    For(KeyRequirement),
}

members! {
    /// The requests that need a key, and the response without one.
    KeyRequirement {
        /// The methods that need a key: all state-changing ones. Without `state_changing`, these are the state-changing ones.
        apply_to_methods: Option<Vec<String>>,
        /// The operations that need a key, or true for all. The key is required by method, so these are always covered.
        require_header_on_route_operations: Option<RouteOperations>,
        /// The response to a state-changing request without a key.
        missing_key: Option<Reaction>,
    }
}

/// Operations: all or none of them, or those with these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteOperations {
    /// All, or none.
    All(bool),
    /// Those with these names.
    Named(Vec<String>),
}

impl RequireKey {
    /// Returns whether a key is required.
    pub fn is_on(&self) -> bool {
        match self {
            Self::Always(is_on) => *is_on,
            Self::For(required) => match &required.require_header_on_route_operations {
                Some(RouteOperations::All(is_on)) => *is_on,
                Some(RouteOperations::Named(names)) => !names.is_empty(),
                None => true,
            },
        }
    }

    /// Returns the details, if the file has them.
    pub const fn requirement(&self) -> Option<&KeyRequirement> {
        match self {
            Self::Always(_) => None,
            Self::For(required) => Some(required),
        }
    }
}

impl FromJson for RequireKey {
    fn schema() -> Schema {
        Schema::AnyOf(vec![Schema::Bool, Schema::Object(KeyRequirement::members())])
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        match at.kind() {
            Kind::Bool => bool::read(at, context).map(Self::Always),
            Kind::Object => {
                at.object(KeyRequirement::NAMES, context)?;
                Ok(Self::For(KeyRequirement::read_members(at, context)))
            }
            Kind::Null | Kind::Number | Kind::String | Kind::Array => {
                Err(at.mismatch("true or false, or an object with apply_to_methods and missing_key"))
            }
        }
    }
}

impl FromJson for RouteOperations {
    fn schema() -> Schema {
        Schema::AnyOf(vec![Schema::Bool, Vec::<String>::schema()])
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        match at.kind() {
            Kind::Bool => bool::read(at, context).map(Self::All),
            Kind::Array => Vec::read(at, context).map(Self::Named),
            Kind::Null | Kind::Number | Kind::String | Kind::Object => {
                Err(at.mismatch("true or false, or an array of operation names"))
            }
        }
    }
}
