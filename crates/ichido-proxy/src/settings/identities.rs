//! Resolves identity sources from flags and files, and reads their keys.

use std::path::Path;
use std::sync::{Arc, Once};

use http::header::HeaderName;
use ichido_boundary::{ClaimPath, Identity as IdentityConfig, IdentityNames, IdentityRule, IdentitySource};
use ichido_core::settings::ConfigErrors;

use super::{Files, refuse_given};
use crate::args::{AdapterArgs, Args};
use crate::identity::{Algorithm, ApiKeys, Identity, Jwt};

/// The largest file with a key or with API keys.
const MAX_BYTES: u64 = 4 << 20;
/// The longest name that can be stored.
const MAX_NAME_BYTES: usize = 256;

/// The identities in use. Each source is read once, and its errors are reported once.
pub(super) struct Identities<'a> {
    flags: &'a AdapterArgs,
    written: Option<&'a IdentityConfig>,
    resolved: Vec<(IdentityRule, Option<Arc<Identity>>)>,
    has_reported: bool,
}

impl<'a> Identities<'a> {
    pub(super) fn new(args: &'a Args, files: &'a Files) -> Self {
        let written = files.sending.as_ref().and_then(|file| file.identity.as_ref());
        Self { flags: &args.adapter, written, resolved: Vec::new(), has_reported: false }
    }

    /// Finds the identity of an operation: from the flag, the operation, or its file.
    pub(super) fn find(
        &mut self,
        location: &str,
        own: Option<&IdentityConfig>,
        faults: &mut ConfigErrors,
    ) -> Option<Arc<Identity>> {
        let rule = self.rule(location, own, faults)?;
        if let Some((_, resolved)) = self.resolved.iter().find(|(known, _)| *known == rule) {
            return resolved.clone();
        }
        let resolved = make(&rule, self.flags, faults).map(Arc::new);
        self.resolved.push((rule, resolved.clone()));
        resolved
    }

    fn rule(
        &mut self,
        location: &str,
        own: Option<&IdentityConfig>,
        faults: &mut ConfigErrors,
    ) -> Option<IdentityRule> {
        if let Some(text) = &self.flags.identity {
            let rule = parse(text);
            if let Err(what) = &rule
                && !self.has_reported
            {
                self.has_reported = true;
                faults.add("--identity", what);
            }
            return rule.ok();
        }
        let Some(written) = own.or(self.written) else {
            let what = "the caller's identity is not configured; add --identity, such as header:x-user-id, or \
                        single:NAME for one caller";
            faults.add(location, what);
            return None;
        };
        faults.check(location, written.rule())
    }

    /// Refuses flags that nothing reads.
    pub(super) fn check_flags(&self, faults: &mut ConfigErrors) {
        let uses = |is_it: fn(&IdentityRule) -> bool| self.resolved.iter().any(|(used, _)| is_it(used));
        let flags = self.flags;
        let of_jwt = [
            ("--jwt-algorithm", flags.jwt_algorithm.is_some()),
            ("--jwt-key", flags.jwt_key.is_some()),
            ("--jwt-audience", flags.jwt_audience.is_some()),
        ];
        if !uses(|rule| matches!(rule, IdentityRule::Claims(_))) {
            let what =
                "no operation takes its identity from a JWT; remove this flag, or add --identity jwt:CLAIM";
            refuse_given(&of_jwt, what, faults);
        }
        if !uses(|rule| matches!(rule, IdentityRule::ApiKey(_))) {
            let what = "no operation takes its identity from an API key; remove this flag, or add --identity \
                        api-key:HEADER";
            refuse_given(&[("--api-keys", flags.api_keys.is_some())], what, faults);
        }
    }
}

/// Parses `header:NAME`, `jwt:CLAIM` or `jwt:CLAIM,CLAIM`, `api-key:HEADER`, `single:NAME`.
fn parse(text: &str) -> Result<IdentityRule, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not an identity source; use header:NAME, jwt:CLAIM (several separated by commas), \
             api-key:HEADER, or single:NAME for one caller"
        )
    };
    let (source, name) = text.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(wrong)?;
    let (source, names) = match source {
        "header" => (IdentitySource::Header, vec![name.to_owned()]),
        "jwt" => (IdentitySource::JwtClaim, name.split(',').map(str::to_owned).collect()),
        "api-key" => (IdentitySource::ApiKey, vec![name.to_owned()]),
        "single" => (IdentitySource::Single, vec![name.to_owned()]),
        _ => return Err(wrong()),
    };
    let identity = IdentityConfig { source: Some(source), name: Some(IdentityNames(names)) };
    identity.rule().map_err(|error| error.to_string())
}

fn make(rule: &IdentityRule, flags: &AdapterArgs, faults: &mut ConfigErrors) -> Option<Identity> {
    let mut header = |name: &String| {
        let header = HeaderName::from_bytes(name.as_bytes());
        faults.check("--identity", header.map_err(|_| format!("\"{name}\" is not a header name")))
    };
    match rule {
        IdentityRule::Header(name) => Some(Identity::Header { header: header(name)?, warned: Once::new() }),
        IdentityRule::ApiKey(name) => {
            let header = header(name)?;
            let Some(path) = &flags.api_keys else {
                faults.add("--api-keys", "the file with the hashes of the API keys is missing; add it");
                return None;
            };
            let location = format!("--api-keys {}", path.display());
            let bytes = faults.check(&location, read(path))?;
            let keys = ApiKeys::parse(&String::from_utf8_lossy(&bytes));
            Some(Identity::ApiKey { header, keys: faults.check(&location, keys)? })
        }
        IdentityRule::Single(name) if MAX_NAME_BYTES < name.len() => {
            faults.add("--identity", format!("the name is longer than {MAX_NAME_BYTES} bytes"));
            None
        }
        IdentityRule::Single(name) => Some(Identity::Single(name.clone())),
        IdentityRule::Claims(claims) => jwt(claims, flags, faults).map(|jwt| Identity::Jwt(Box::new(jwt))),
    }
}

fn jwt(claims: &[ClaimPath], flags: &AdapterArgs, faults: &mut ConfigErrors) -> Option<Jwt> {
    let mut given = |flag: &str, is_given: bool, what: &str| {
        if !is_given {
            faults.add(flag, format!("verifying a JWT needs {what}; add this flag"));
        }
    };
    given("--jwt-algorithm", flags.jwt_algorithm.is_some(), "the algorithm: HS256, RS256 or ES256");
    given("--jwt-key", flags.jwt_key.is_some(), "a file with the secret or the public key");
    given("--jwt-audience", flags.jwt_audience.is_some(), "the audience that tokens must have");
    let (algorithm, path, audience) =
        (flags.jwt_algorithm.as_ref()?, flags.jwt_key.as_ref()?, flags.jwt_audience.as_ref()?);
    let algorithm = faults.check("--jwt-algorithm", Algorithm::parse(algorithm));
    let location = format!("--jwt-key {}", path.display());
    let key = faults.check(&location, read(path));
    faults.check(&location, Jwt::new(algorithm?, &key?, audience, claims.to_vec()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if MAX_BYTES < u64::try_from(read).unwrap_or(u64::MAX) {
        return Err(format!("the file is larger than {MAX_BYTES} bytes"));
    }
    Ok(bytes)
}
