//! Addresses that are not called unless the configuration allows it.
//!
//! Guarantee: addresses where clouds hand out a machine's credentials are recognized in every form that a system
//! connects to. The check applies to the address, not to a name, so no name can bypass it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Metadata services outside the link-local ranges: AWS over IPv6, and Alibaba.
const METADATA: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
];

/// Whether the address is link-local or a known metadata service.
pub fn is_link_local(address: IpAddr) -> bool {
    METADATA.contains(&address)
        || match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => {
                address.is_unicast_link_local()
                    || embedded_ipv4(address).is_some_and(|ipv4| is_link_local(ipv4.into()))
            }
        }
}

/// Extracts the IPv4 address from an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_is_recognised_in_every_notation() {
        for refused in [
            "169.254.169.254",
            "169.254.0.1",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "::ffff:100.100.100.200",
        ] {
            assert!(is_link_local(refused.parse().expect("an address")), "{refused}");
        }
        for fine in [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "192.168.1.1",
            "169.253.255.255",
            "fec0::1",
            "fd00::1",
            "1.1.1.1",
        ] {
            assert!(!is_link_local(fine.parse().expect("an address")), "{fine}");
        }
    }
}
