//! Selects crates of the workspace, as arguments for cargo.

/// The crates that compile AWS's SDK.
pub(crate) const BEDROCK: [&str; 3] = ["ichido-bedrock", "ichido-bench-llm", "ichido-example-lambda"];
/// The benchmarks. They have few tests, and nothing uses them.
pub(crate) const BENCH: &str = "ichido-bench";

/// Returns the arguments that select the crates of a usual run, with the benchmarks or without.
pub(crate) fn usual(with_bench: bool) -> Vec<String> {
    let [one, other, last] = BEDROCK;
    if with_bench { all_but(&BEDROCK) } else { all_but(&[one, other, last, BENCH]) }
}

/// Returns the arguments that select all crates but some. The store's test databases are a feature that its examples
/// require.
pub(crate) fn all_but(packages: &[&str]) -> Vec<String> {
    let excluded = packages.iter().flat_map(|package| ["--exclude", package]);
    let all = ["--workspace", "--features", "ichido-store/testing"];
    all.into_iter().chain(excluded).map(str::to_owned).collect()
}
