//! Decides which addresses are public, so fetching from them reveals nothing private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not the public Internet: this host and network, private, shared (CGNAT), loopback,
/// link-local, protocols, documentation, 6to4 relays, benchmarks, multicast, reserved.
const INNER_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only IPv6 range that is allocated to the public Internet. Loopback, link-local, private (ULA), multicast,
/// IPv4-mapped and NAT64 addresses are outside of it.
const OUTER_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Exceptions within that range: protocols with Teredo, documentation, and 6to4, which embeds an IPv4 address.
const INNER_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Returns whether an address belongs to the public Internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !INNER_V4
            .iter()
            .any(|(network, bits)| (address.to_bits() ^ network.to_bits()) >> (32 - bits) == 0),
        IpAddr::V6(address) => {
            let within = |(network, bits): &(Ipv6Addr, u32)| {
                (address.to_bits() ^ network.to_bits()) >> (128 - bits) == 0
            };
            within(&OUTER_V6) && !INNER_V6.iter().any(within)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn private_addresses_are_refused_and_public_ones_are_not() {
        for inner in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(!is_public(inner.parse().unwrap()), "{inner}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2400:cb00::1",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    proptest! {
        /// No address that the standard library considers internal counts as public.
        #[test]
        fn no_address_that_std_calls_private_is_public(bits in any::<u32>(), more in any::<u128>()) {
            let four = Ipv4Addr::from_bits(bits);
            let inner = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_multicast()
                || four.is_broadcast() || four.is_documentation() || four.is_unspecified();
            prop_assert!(!(inner && is_public(four.into())));
            let six = Ipv6Addr::from_bits(more);
            let inner = six.is_loopback() || six.is_multicast() || six.is_unspecified() || six.to_ipv4_mapped().is_some()
                || six.is_unique_local() || six.is_unicast_link_local();
            prop_assert!(!(inner && is_public(six.into())));
            prop_assert!(!is_public(four.to_ipv6_mapped().into()));
        }
    }
}
