//! Verifies the signatures of JWTs with ring, which TLS uses anyway.
//!
//! Guarantee: only HS256, RS256 (keys of 2,048 bits and more) and ES256 are verified, each with a key of its own kind. Nothing is
//! signed.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey};
use ring::hmac;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| verifier(*algorithm, key),
    // For JSON Web Keys, which are not supported.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Lets jsonwebtoken verify signatures. Only the first call in a process has an effect.
pub(super) fn install() {
    let _ = RING.install_default();
}

/// The key that a token's signature is verified with.
enum SignatureVerifier {
    Hs256(hmac::Key),
    Rs256(UnparsedPublicKey<Vec<u8>>),
    Es256(UnparsedPublicKey<Vec<u8>>),
}

fn verifier(algorithm: Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    let key = key.try_get_as_bytes()?;
    Ok(Box::new(match algorithm {
        Algorithm::HS256 => SignatureVerifier::Hs256(hmac::Key::new(hmac::HMAC_SHA256, key)),
        // A shorter key can be factored, and then anybody signs.
        Algorithm::RS256 => {
            SignatureVerifier::Rs256(UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.to_vec()))
        }
        Algorithm::ES256 => {
            SignatureVerifier::Es256(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.to_vec()))
        }
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    }))
}

impl Verifier<Vec<u8>> for SignatureVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let verified = match self {
            Self::Hs256(key) => hmac::verify(key, message, signature),
            Self::Rs256(key) | Self::Es256(key) => key.verify(message, signature),
        };
        verified.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for SignatureVerifier {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Hs256(_) => Algorithm::HS256,
            Self::Rs256(_) => Algorithm::RS256,
            Self::Es256(_) => Algorithm::ES256,
        }
    }
}
