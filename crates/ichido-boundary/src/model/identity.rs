//! Turns the file's words about the caller into where the adapter finds its identity.

use ichido_core::json::Kind;

use super::{ClaimPath, Identity, IdentitySource, is_portable, is_token};
use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema};

/// The maximum number of claims that identify a caller together: tenant, organisation, user and some more.
pub const MAX_IDENTITY_CLAIMS: usize = 8;

/// The names that identify the caller: one text, or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityNames(pub Vec<String>);

impl FromJson for IdentityNames {
    fn schema() -> Schema {
        Schema::AnyOf(vec![String::schema(), Vec::<String>::schema()])
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        match at.kind() {
            Kind::String => Ok(Self(vec![String::read(at, context)?])),
            Kind::Array => {
                let names = Vec::read(at, context);
                names.map(Self).map_err(|_| at.wrong("expected a string or an array of strings".to_owned()))
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::Object => {
                Err(at.mismatch("a string or an array of strings"))
            }
        }
    }
}

/// Where the adapter finds the caller's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityRule {
    /// In this header, which a trusted hop sets.
    Header(String),
    /// In these claims of a verified token, which must have all of them.
    Claims(Vec<ClaimPath>), // Invariant: 1..=MAX_IDENTITY_CLAIMS.
    /// By the hash of the API key in this header.
    ApiKey(String),
    /// There is one caller, with this name.
    Single(String),
}

/// Why the file's words do not say where the caller's identity comes from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The source is missing.
    #[error("`source` is missing")]
    NoSource,
    /// The name is missing or empty.
    #[error("`name` is missing")]
    NoName,
    /// Several names where only one is allowed.
    #[error("`name` has several names, which only jwt_claim allows; use one name, or jwt_claim")]
    SeveralNames,
    /// More claims than an identity may have.
    #[error("`name` has more than {MAX_IDENTITY_CLAIMS} claims")]
    TooManyClaims,
    /// Not a claim name.
    #[error("`{0}` is not a claim; use its name, such as sub, or its path, such as actor.actor_id")]
    NotAClaim(String),
    /// Not a header name.
    #[error("`{0}` is not a header name")]
    NotAHeader(String),
    /// A header name that proxies drop.
    #[error("proxies drop the header `{0}`; use a name of letters, digits and hyphens")]
    Dropped(String),
}

impl Identity {
    /// Returns where the adapter finds the caller's identity.
    pub fn rule(&self) -> Result<IdentityRule, IdentityError> {
        let source = self.source.ok_or(IdentityError::NoSource)?;
        let names = self.name.as_ref().map_or(&[][..], |names| &names.0);
        if names.is_empty() || names.iter().any(String::is_empty) {
            return Err(IdentityError::NoName);
        }
        if source == IdentitySource::JwtClaim {
            if MAX_IDENTITY_CLAIMS < names.len() {
                return Err(IdentityError::TooManyClaims);
            }
            let claim =
                |name: &String| ClaimPath::parse(name).ok_or_else(|| IdentityError::NotAClaim(name.clone()));
            return names.iter().map(claim).collect::<Result<_, _>>().map(IdentityRule::Claims);
        }
        let [name] = names else { return Err(IdentityError::SeveralNames) };
        let name = name.clone();
        match source {
            IdentitySource::Single => Ok(IdentityRule::Single(name)),
            _ if !is_token(&name) => Err(IdentityError::NotAHeader(name)),
            _ if !is_portable(&name) => Err(IdentityError::Dropped(name)),
            IdentitySource::ApiKey => Ok(IdentityRule::ApiKey(name)),
            IdentitySource::Header | IdentitySource::JwtClaim => Ok(IdentityRule::Header(name)),
        }
    }
}
