//! JWTs as an identity provider signs them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

/// Returns a token signed with a secret.
pub(crate) fn hs256(claims: &Value, secret: &str) -> String {
    with_secret("HS256", hmac::HMAC_SHA256, claims, secret)
}

/// Returns a token signed with a secret and a longer hash.
pub(crate) fn hs512(claims: &Value, secret: &str) -> String {
    with_secret("HS512", hmac::HMAC_SHA512, claims, secret)
}

/// Returns a token signed with an RSA key.
pub(crate) fn rs256(claims: &Value, key: &[u8]) -> String {
    let key = RsaKeyPair::from_pkcs8(private(key).secret_pkcs8_der()).expect("an RSA key");
    signed("RS256", claims, |message| {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).expect("signed");
        signature
    })
}

/// Returns a token signed with a key on the curve P-256.
pub(crate) fn es256(claims: &Value, key: &[u8]) -> String {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let key =
        EcdsaKeyPair::from_pkcs8(algorithm, private(key).secret_pkcs8_der(), &random).expect("an EC key");
    signed("ES256", claims, |message| key.sign(&random, message).expect("signed").as_ref().to_vec())
}

fn private(pem: &[u8]) -> PrivatePkcs8KeyDer<'static> {
    PrivatePkcs8KeyDer::from_pem_slice(pem).expect("a private key")
}

fn with_secret(name: &str, algorithm: hmac::Algorithm, claims: &Value, secret: &str) -> String {
    let key = hmac::Key::new(algorithm, secret.as_bytes());
    signed(name, claims, |message| hmac::sign(&key, message).as_ref().to_vec())
}

fn signed(algorithm: &str, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let header = json!({"typ": "JWT", "alg": algorithm});
    let [header, claims] = [&header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let message = format!("{header}.{claims}");
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}
