//! Any text as trusted roots: no panic, and never a configuration that trusts the system's roots instead.
#![no_main]

use ichido_http::trust::{TrustError, client};

libfuzzer_sys::fuzz_target!(|pem: &str| {
    match client(Some(pem)) {
        // Roots that were read are certificates, so the text contains them.
        Ok(_) => assert!(pem.contains("-----BEGIN")),
        Err(TrustError::Pem(_) | TrustError::Empty | TrustError::Certificate(_)) => {}
        Err(error @ (TrustError::System(_) | TrustError::Setup(_))) => panic!("{error}"),
    }
});
