//! What makes two requests the same request is explicit, and strong enough (SPEC C3, C9, C12).

pub(super) mod input;

use ichido_core::json::Numbers;

use super::refusal::not_refused;
use super::{Found, Rule, declare};
use crate::{Enabled, FingerprintInput, Way};

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B030", Error, "C3, C8, C12",
        "The fingerprint has who asks, what for, the key and the body",
        why: "Without the caller, one customer's key shows another's answer. Without the operation or the body, a different \
              request under a used key gets the old answer, and its own work is silently never done.",
        mend: "Put a stable name of the caller (`claims.sub`, or `identity` for whatever the adapter's file says), \
               `route.operation`, `idempotency-key` and `body_hash` into `fingerprint.include`; the claim is the one that \
               the adapter's `identity` names.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/include",
        check: inputs_are_there,
    },
    declare! {
        "ICH-B031", Error, "C3, C12",
        "The fingerprint has nothing that changes between two tries",
        why: "A request id, a trace id, a date, or what belongs to one token (`exp`, `iat`, `jti`) differs on every try, so \
              that every honest retry is taken for a different request and refused.",
        mend: "Take it out of `fingerprint.include`; for the caller use a stable claim by its name, not the token.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/include",
        check: inputs_are_stable,
    },
    declare! {
        "ICH-B032", Error, "C9",
        "The body is hashed with SHA-256",
        why: "A hash that is short or broken lets two bodies pass for one; a changed amount would be answered from memory.",
        mend: "Say `\"algorithm\": \"sha256\"`.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/body_hash/algorithm",
        check: hash_is_strong,
    },
    declare! {
        "ICH-B033", Error, "C8, C9",
        "The body's normal form is explicit, in words that have a meaning",
        why: "A client that sends its members in another order on the second try means the same request. Whether that is a \
              replay or a conflict must not depend on which library an adapter happens to use.",
        mend: "Say `type` (`canonical_json`, or `jcs` for a partner that needs RFC 8785), `object_member_order` (`sorted`) \
               and `number_representation` (`exact`), and give JSON pointers to single members in `leave_out`.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/body_hash/input",
        check: normal_form_is_said,
    },
    declare! {
        "ICH-B034", Warning, "C9",
        "Numbers are compared exactly",
        why: "As doubles, 9007199254740993 and 9007199254740992 are one number: an order for the one would be answered with \
              the outcome of the other.",
        mend: "Say `\"number_representation\": \"exact\"`, unless a partner asks for RFC 8785.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules",
        check: numbers_are_exact,
    },
    declare! {
        "ICH-B035", Error, "C8, C9",
        "A body too large to be hashed is refused",
        why: "If the body is cut or left out of the hash instead, two large requests under one key are the same request.",
        mend: "Say `max_body_bytes_to_hash`, and `\"on_body_too_large\": {\"action\": \"reject\", \"status\": 413}`: any 4xx \
               after which clients do not try again.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/body_hash",
        check: large_bodies_are_refused,
    },
    declare! {
        "ICH-B036", Error, "C3",
        "The adapter reads every input of the fingerprint",
        why: "An input that the adapter cannot read is not compared: two tenants whose requests differ in nothing else would \
              get each other's answers, and the second one's work is never done.",
        mend: "Write `claims.NAME` (of a verified token, so the adapter's `identity` must be a `jwt_claim`), `headers.NAME` (of \
               letters, digits and hyphens, and named in every `allow` from the BFF on), `identity`, `route.operation`, \
               `idempotency-key`, `method`, `path`, `query` or `body_hash`.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/fingerprint/include",
        check: inputs_are_read,
    },
];

fn include(promises: &Enabled) -> impl Iterator<Item = &str> {
    promises.fingerprint.include.iter().flatten().map(String::as_str)
}

fn inputs_are_there<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let inputs: Vec<_> = include(promises).filter_map(|one| FingerprintInput::parse(one).ok()).collect();
        let claims = input::identity_claims(way);
        let asks = inputs.iter().any(|one| input::is_caller(one) || input::is_identity_header(way, one));
        let wanted: [(&str, bool); 4] = [
            // Where the adapter names its claim, that one is asked for.
            ("who asks (`claims.sub`, or `identity`)", asks || !claims.is_empty()),
            ("`route.operation`", inputs.contains(&FingerprintInput::Operation)),
            ("`idempotency-key`", inputs.contains(&FingerprintInput::Key)),
            ("`body_hash`", inputs.contains(&FingerprintInput::BodyHash)),
        ];
        let mut missing: Vec<String> =
            wanted.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| (*name).to_owned()).collect();
        let unnamed = claims.iter().filter(|(_, claim)| !inputs.iter().any(|one| input::names(one, claim)));
        missing.extend(
            unnamed.map(|(adapter, claim)| {
                format!("`claims.{claim}`, by which {} says who asks", adapter.name())
            }),
        );
        if !missing.is_empty() {
            let pointer = format!("{base}/fingerprint/include");
            found.push(Found::at(file, pointer, format!("missing: {}", missing.join(", "))));
        }
    }
    found
}

fn inputs_are_stable<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        for (index, one) in include(promises).enumerate() {
            let what = match () {
                () if input::is_nameless(one) => format!("`{one}` names nothing, or all there is"),
                () if input::changes(one) => format!("`{one}` differs from one try to the next"),
                () => continue,
            };
            found.push(Found::at(file, format!("{base}/fingerprint/include/{index}"), what));
        }
    }
    found
}

fn inputs_are_read<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        // What changes, or names nothing, has its own rule.
        let stable =
            include(promises).enumerate().filter(|(_, one)| !input::is_nameless(one) && !input::changes(one));
        found.extend(stable.filter_map(|(index, one)| {
            let what = match FingerprintInput::parse(one) {
                Ok(input) => input::unread(way, &input)?,
                Err(error) => error.to_string(),
            };
            Some(Found::at(file, format!("{base}/fingerprint/include/{index}"), what))
        }));
    }
    found
}

fn hash_is_strong<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let what = match promises.fingerprint.body_hash.algorithm.as_deref() {
                Some(algorithm) if is_sha256(algorithm) => return None,
                Some(algorithm) => format!("`{algorithm}` is not sha256"),
                None => "`algorithm` is missing".to_owned(),
            };
            Some(Found::at(file, format!("{base}/fingerprint/body_hash/algorithm"), what))
        })
        .collect()
}

fn is_sha256(algorithm: &str) -> bool {
    ["sha256", "sha-256", "sha_256"].iter().any(|one| one.eq_ignore_ascii_case(algorithm))
}

fn normal_form_is_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let body_hash = &promises.fingerprint.body_hash;
        let pointer = format!("{base}/fingerprint/body_hash/input");
        let encoding = &body_hash.input.encoding;
        let said = [
            ("encoding/type", encoding.r#type.is_some()),
            ("encoding/rules/object_member_order", encoding.rules.object_member_order.is_some()),
            ("encoding/rules/number_representation", encoding.rules.number_representation.is_some()),
        ];
        // RFC 8785 settles the details itself.
        let is_whole = encoding.r#type.as_deref().is_some_and(is_jcs);
        let silent =
            said.iter().filter(|(member, is_said)| !is_said && (*member == "encoding/type" || !is_whole));
        found.extend(silent.map(|(member, _)| {
            let name = member.rsplit('/').next().unwrap_or(member);
            Found::at(file, format!("{pointer}/{member}"), format!("`{name}` is missing"))
        }));
        if let Err(error) = body_hash.body_rules() {
            let pointer = format!("{base}/fingerprint/body_hash/{}", error.member().replace('.', "/"));
            found.push(Found::at(file, pointer, error.to_string()));
        }
    }
    found
}

fn is_jcs(encoding: &str) -> bool {
    ["jcs", "rfc8785"].iter().any(|one| one.eq_ignore_ascii_case(encoding))
}

fn numbers_are_exact<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let body_hash = &promises.fingerprint.body_hash;
            let is_partners_form = body_hash.input.encoding.r#type.as_deref().is_some_and(is_jcs);
            let numbers = body_hash.body_rules().ok()?.form.numbers;
            let pointer = format!("{base}/fingerprint/body_hash/input/encoding/rules/number_representation");
            let what = "integers beyond 2^53 that differ are taken for equal";
            (numbers == Numbers::Double && !is_partners_form).then(|| Found::at(file, pointer, what))
        })
        .collect()
}

fn large_bodies_are_refused<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let body_hash = &promises.fingerprint.body_hash;
        let pointer = format!("{base}/fingerprint/body_hash");
        match body_hash.max_body_bytes_to_hash {
            None => found.push(Found::at(
                file,
                format!("{pointer}/max_body_bytes_to_hash"),
                "`max_body_bytes_to_hash` is missing",
            )),
            Some(0) => {
                found.push(Found::at(file, format!("{pointer}/max_body_bytes_to_hash"), "nothing is hashed"));
            }
            Some(_) => (),
        }
        let pointer = format!("{pointer}/on_body_too_large");
        let what = match &body_hash.on_body_too_large {
            None => Some("`on_body_too_large` is missing".to_owned()),
            Some(reaction) => not_refused(reaction),
        };
        found.extend(what.map(|what| Found::at(file, pointer, what)));
    }
    found
}
