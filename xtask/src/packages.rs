//! The crates of the workspace, as cargo is told of them.

/// What compiles AWS's SDK.
pub(crate) const BEDROCK: [&str; 2] = ["ichido-bedrock", "ichido-bench-llm"];

/// The crates of a usual run.
pub(crate) fn usual() -> Vec<String> {
    all_but(&BEDROCK)
}

/// The words that choose all crates but some. The store's databases for tests are a feature, which its examples require.
pub(crate) fn all_but(packages: &[&str]) -> Vec<String> {
    let excluded = packages.iter().flat_map(|package| ["--exclude", package]);
    let all = ["--workspace", "--features", "ichido-store/testing"];
    all.into_iter().chain(excluded).map(str::to_owned).collect()
}
