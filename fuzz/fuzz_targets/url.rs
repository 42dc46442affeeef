//! Any text as a URL: no panic, and a parsed URL has a host, a port and a path, and no credentials.
#![no_main]

use ichido_http::url::HttpUrl;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(url) = HttpUrl::parse(text) {
        assert!(url.port != 0 && !url.authority.as_str().contains('@'));
        assert!(!url.authority.host().is_empty());
        // Only a base URL may be stricter.
        if let Ok((base, prefix)) = HttpUrl::parse_base(text) {
            assert_eq!(base.authority, url.authority);
            assert!(!prefix.ends_with('/') && base.target.query().is_none());
        }
    } else {
        assert!(HttpUrl::parse_base(text).is_err());
    }
});
