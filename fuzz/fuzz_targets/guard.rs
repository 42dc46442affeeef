//! Any address: no panic, and an IPv4 address gets the same verdict in every IPv6 spelling of it.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ichido_http::guard::is_link_local;

libfuzzer_sys::fuzz_target!(|bits: u128| {
    let whole = Ipv6Addr::from_bits(bits);
    let is_refused = is_link_local(whole.into());
    assert!(is_refused || !whole.is_unicast_link_local());
    // The last 32 bits as an address.
    let [.., high, low] = whole.segments();
    let inner = Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let expected = is_link_local(inner.into());
    assert!(expected || !inner.is_link_local());
    for spelling in [
        inner.to_ipv6_mapped(),
        inner.to_ipv6_compatible(),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
    ] {
        assert_eq!(is_link_local(IpAddr::V6(spelling)), expected, "{spelling}");
    }
});
