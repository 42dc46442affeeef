//! The starting set: files that satisfy every rule, for a team to begin with.

/// The boundary files and their texts, from the browser on.
pub const STARTING: [(&str, &str); 4] = [
    ("browser_to_bff.json", include_str!("starting/browser_to_bff.json")),
    ("bff_to_gateway.json", include_str!("starting/bff_to_gateway.json")),
    ("gateway_to_adapter.json", include_str!("starting/gateway_to_adapter.json")),
    ("adapter.json", include_str!("starting/adapter.json")),
];

/// A README for them.
pub const STARTING_README: &str = include_str!("starting/README.md");
