//! Checks the signature of a request to AWS, as far as possible without the key.

use http::HeaderMap;

use crate::wire::{WireResult, Wrong, fault};

const SERVICE: &str = "bedrock";
const SCHEME: &str = "AWS4-HMAC-SHA256 ";
/// The number of hexadecimal digits of a signature.
const SIGNATURE_LEN: usize = 64;

/// Checks that a request is signed for Bedrock and that its parts are consistent.
pub(crate) fn check(headers: &HeaderMap) -> WireResult<()> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let at = "authorization";
    let Some(parts) = text(at).strip_prefix(SCHEME) else {
        return fault(Wrong::Caller, at, "the signature of version 4 is missing");
    };
    let part =
        |name: &str| parts.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    let scope: Vec<&str> = part("Credential").unwrap_or_default().split('/').collect();
    let [id, day, region, service, "aws4_request"] = scope[..] else {
        return fault(Wrong::Caller, at, "the credential is not `id/day/region/service/aws4_request`");
    };
    if service != SERVICE {
        let why = format!("Credential should be scoped to correct service: '{SERVICE}', not '{service}'");
        return fault(Wrong::Caller, at, why);
    }
    if id.is_empty() || region.is_empty() {
        return fault(Wrong::Caller, at, "the credential lacks a key or a region");
    }
    let date = text("x-amz-date");
    if date.len() != "20261115T211500Z".len() || date.get(..8) != Some(day) {
        return fault(Wrong::Caller, "x-amz-date", "it is missing or differs from the credential's day");
    }
    let signed = part("SignedHeaders").unwrap_or_default();
    for name in ["host", "x-amz-date"] {
        if !signed.split(';').any(|other| other == name) {
            return fault(Wrong::Caller, at, format!("the header `{name}` is not signed"));
        }
    }
    let signature = part("Signature").unwrap_or_default();
    if signature.len() != SIGNATURE_LEN || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return fault(Wrong::Caller, at, "the signature is not 64 hexadecimal digits");
    }
    Ok(())
}
