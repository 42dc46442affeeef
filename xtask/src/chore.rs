//! The command line, as a value.
//!
//! Guarantee: unknown arguments are refused, and no chore starts by accident. No argument is ignored, except beside
//! `--help`, which always prints the help.

use std::num::NonZeroU32;

use crate::test::Scope;

/// The output of `cargo xtask help`, and of wrong arguments after the error.
pub const USAGE: &str = "\
Usage: cargo xtask <chore>

  test                  Check what CI checks: format, clippy, tests, docs, browser tests; AWS, licences and fuzz
                        targets only if one of the last 30 commits concerns them
  test --all            Check all of that in any case
  test --quick          Check format, clippy and the tests of changed crates, without process suites and slow
                        suites; run it before each commit
  tidy                  Check the rules about the repository itself (part of `test`)
  bench                 Measure Ichido beside its peers and write bench/README.md; installs the peers below target
  bench --quick         Check that all contestants work: few messages, one round, nothing written but target/bench
  bench report          Render the tables and charts of the last `bench` again, from bench/results.json
  bench store [DATABASE]
                        Measure the store against minimal SQL for the same work
  bench once [DATABASE] Measure an endpoint with the layer and without it
  bench serve [DATABASE]
                        Measure accepting over HTTP against a handwritten handler
  bench dashboard [DATABASE]
                        Measure the pages of the dashboard with 10,000,000 messages; takes half an hour
  bench llm [--items N] [--rate N]
                        Measure a batch of calls to a throttled model against other rate limiters
                        [default: 2000 calls, 50 per second]
  soak                  Run the long crash tests: 500 kills of the store, 1,000 of transactional handlers and 20,000
                        messages for each database, 20 rounds of many machines, 10 of each example; measures the
                        dashboard with 10,000,000 messages
  fuzz [--seconds N]    Run every fuzz target for N seconds [default: 60]; needs cargo-fuzz
  fuzz-api              Send a server requests generated from the API description (short form: part of `test`)
  help, --help, -h      Print this help

DATABASE is `postgres` or `sqlite` [default: both]. Benchmarks need a release build and take minutes; `bench` builds and
installs nine peers and takes about 20 minutes after that; `bench llm` also builds AWS's SDK and takes many minutes.";

/// The names of the chores, as in [`USAGE`] and [`Chore::parse`].
const WORDS: [&str; 14] = [
    "test",
    "tidy",
    "bench",
    "bench --quick",
    "bench report",
    "bench store",
    "bench once",
    "bench serve",
    "bench dashboard",
    "bench llm",
    "soak",
    "fuzz",
    "fuzz-api",
    "help",
];

/// The parts that are measured on a database.
const PARTS: [&str; 4] = ["store", "once", "serve", "dashboard"];
const ONE_PART: &str =
    "`bench` takes `--quick`, or one part: `report`, `store`, `once`, `serve`, `dashboard` or `llm`";

/// Maximum distance of a typo from a chore's name.
const MAX_SLIPS: usize = 2;

/// How long each fuzz target runs by default.
const FUZZ_SECONDS_DEFAULT: u32 = 60;

/// A chore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Checks what CI checks, or more, or less.
    Test {
        /// How much to check.
        scope: Scope,
    },
    /// Checks the rules about the repository itself.
    Tidy,
    /// Measures Ichido beside its peers.
    Contest {
        /// Whether only to check that all contestants work.
        is_quick: bool,
    },
    /// Renders the tables and charts of the last contest.
    ContestReport,
    /// Measures a part of Ichido.
    Bench {
        /// The part: `store`, `once`, `serve` or `dashboard`.
        part: &'static str,
        /// Only on this database.
        database: Option<BenchDatabase>,
    },
    /// Measures a batch of calls to a throttled model.
    BenchLlm {
        /// The number of calls, if not the default.
        items: Option<NonZeroU32>,
        /// The calls per second that the model allows, if not the default.
        rate: Option<NonZeroU32>,
    },
    /// Runs the crash tests for longer than CI has time for.
    Soak,
    /// Runs every fuzz target for `seconds` each.
    Fuzz {
        /// Seconds for each target.
        seconds: u32,
    },
    /// Sends a server requests that its description allows, and others.
    FuzzApi,
    /// Prints the help.
    Help,
}

/// A database that the store supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchDatabase {
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

impl BenchDatabase {
    fn parse(word: &str) -> Result<Self, String> {
        let known = [Self::Postgres, Self::Sqlite].into_iter().find(|database| database.word() == word);
        known.ok_or_else(|| format!("unknown database `{word}`; use `postgres` or `sqlite`"))
    }

    /// Returns the name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}

impl Chore {
    /// Parses the arguments after `cargo xtask`, or returns what is wrong with them.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
            return Ok(Self::Help);
        }
        match words.as_slice() {
            [] => Err("no chore given".to_owned()),
            ["test"] => Ok(Self::Test { scope: Scope::Usual }),
            ["test", "--all"] => Ok(Self::Test { scope: Scope::All }),
            ["test", "--quick"] => Ok(Self::Test { scope: Scope::Quick }),
            ["tidy"] => Ok(Self::Tidy),
            ["bench"] => Ok(Self::Contest { is_quick: false }),
            ["bench", "--quick"] => Ok(Self::Contest { is_quick: true }),
            ["bench", "report"] => Ok(Self::ContestReport),
            ["bench", "llm", options @ ..] => bench_llm(options),
            ["bench", part] => Ok(Self::Bench { part: part_of(part)?, database: None }),
            ["bench", part, word] => {
                Ok(Self::Bench { part: part_of(part)?, database: Some(BenchDatabase::parse(word)?) })
            }
            ["bench", ..] => Err(ONE_PART.to_owned()),
            ["soak"] => Ok(Self::Soak),
            ["fuzz"] => Ok(Self::Fuzz { seconds: FUZZ_SECONDS_DEFAULT }),
            ["fuzz", "--seconds"] => Err("`--seconds` needs a number, such as `--seconds 60`".to_owned()),
            ["fuzz", "--seconds", count] => match count.parse() {
                // libFuzzer reads 0 as "no limit", which nobody means by it.
                Ok(0) | Err(_) => Err(format!("`--seconds {count}`: must be a whole number above 0")),
                Ok(seconds) => Ok(Self::Fuzz { seconds }),
            },
            ["fuzz-api"] => Ok(Self::FuzzApi),
            ["help"] => Ok(Self::Help),
            [word, ..] if !WORDS.iter().any(|known| known.split(' ').next() == Some(*word)) => {
                Err(no_such_chore(word))
            }
            other => Err(format!("invalid arguments: `{}`", other.join(" "))),
        }
    }
}

fn part_of(word: &str) -> Result<&'static str, String> {
    let known = PARTS.into_iter().find(|part| *part == word);
    known.ok_or_else(|| ONE_PART.to_owned())
}

fn bench_llm(options: &[&str]) -> Result<Chore, String> {
    let (mut items, mut rate) = (None, None);
    for option in options.chunks(2) {
        let (of, name, count) = match option {
            [name @ "--items", count] => (&mut items, name, count),
            [name @ "--rate", count] => (&mut rate, name, count),
            [name @ ("--items" | "--rate")] => {
                return Err(format!("`{name}` needs a number, such as `{name} 100`"));
            }
            other => {
                return Err(format!(
                    "`bench llm` takes `--items N` and `--rate N`, not `{}`",
                    other.join(" ")
                ));
            }
        };
        let wrong = |_| format!("`{name} {count}`: must be a whole number above 0");
        if of.replace(count.parse().map_err(wrong)?).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(Chore::BenchLlm { items, rate })
}

fn no_such_chore(word: &str) -> String {
    let near = WORDS.iter().map(|known| (slips(word, known), known)).min();
    match near {
        Some((count, known)) if count <= MAX_SLIPS => {
            format!("unknown chore `{word}`; did you mean `{known}`?")
        }
        _ => format!("unknown chore `{word}`"),
    }
}

/// Returns the Levenshtein distance: the characters to add, drop or change to turn `one` into `other`.
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    // The distances of the part of `one` read so far to each prefix of `other`.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (read, from) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = read + 1;
        for (index, to) in other.iter().enumerate() {
            let changed = before + usize::from(from != *to);
            before = row[index + 1];
            row[index + 1] = changed.min(before + 1).min(row[index] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chore_is_parsed_from_its_name() {
        assert_eq!(Chore::parse(&["test"]), Ok(Chore::Test { scope: Scope::Usual }));
        assert_eq!(Chore::parse(&["test", "--all"]), Ok(Chore::Test { scope: Scope::All }));
        assert_eq!(Chore::parse(&["test", "--quick"]), Ok(Chore::Test { scope: Scope::Quick }));
        assert_eq!(Chore::parse(&["tidy"]), Ok(Chore::Tidy));
        assert_eq!(Chore::parse(&["fuzz"]), Ok(Chore::Fuzz { seconds: 60 }));
        assert_eq!(Chore::parse(&["fuzz", "--seconds", "5"]), Ok(Chore::Fuzz { seconds: 5 }));
        for database in [BenchDatabase::Postgres, BenchDatabase::Sqlite] {
            let chore = Chore::Bench { part: "store", database: Some(database) };
            assert_eq!(Chore::parse(&["bench", "store", database.word()]), Ok(chore));
        }
        assert_eq!(Chore::parse(&["bench"]), Ok(Chore::Contest { is_quick: false }));
        assert_eq!(Chore::parse(&["bench", "--quick"]), Ok(Chore::Contest { is_quick: true }));
        assert_eq!(Chore::parse(&["bench", "report"]), Ok(Chore::ContestReport));
        assert_eq!(Chore::parse(&["bench", "store"]), Ok(Chore::Bench { part: "store", database: None }));
        let (items, rate) = (NonZeroU32::new(60), NonZeroU32::new(200));
        assert_eq!(Chore::parse(&["bench", "llm"]), Ok(Chore::BenchLlm { items: None, rate: None }));
        let both = ["bench", "llm", "--rate", "200", "--items", "60"];
        assert_eq!(Chore::parse(&both), Ok(Chore::BenchLlm { items, rate }));
        assert_eq!(Chore::parse(&["help"]), Ok(Chore::Help));
        for word in WORDS {
            assert!(Chore::parse(&word.split(' ').collect::<Vec<_>>()).is_ok(), "{word}");
            assert!(USAGE.contains(&format!("\n  {word}")), "{word}");
        }
    }

    #[test]
    fn a_help_flag_anywhere_prints_the_help() {
        let asking: [&[&str]; 5] =
            [&["--help"], &["-h"], &["test", "--help"], &["fuzz", "--seconds", "-h"], &["tset", "-h"]];
        for words in asking {
            assert_eq!(Chore::parse(words), Ok(Chore::Help), "{words:?}");
        }
    }

    #[test]
    fn a_typo_gets_a_suggestion() {
        let complaint = |word: &str| Chore::parse(&[word]).expect_err(word);
        assert_eq!(complaint("tset"), "unknown chore `tset`; did you mean `test`?");
        assert_eq!(complaint("tests"), "unknown chore `tests`; did you mean `test`?");
        assert_eq!(complaint("tidi"), "unknown chore `tidi`; did you mean `tidy`?");
        assert_eq!(complaint("fuz"), "unknown chore `fuz`; did you mean `fuzz`?");
        assert_eq!(complaint("release"), "unknown chore `release`");
        assert_eq!(complaint(""), "unknown chore ``");
    }

    #[test]
    fn edit_distance_is_counted() {
        assert_eq!(slips("", ""), 0);
        assert_eq!(slips("", "abc"), 3);
        assert_eq!(slips("abc", ""), 3);
        assert_eq!(slips("test", "test"), 0);
        assert_eq!(slips("kitten", "sitting"), 3);
        assert_eq!(slips("été", "ete"), 2);
    }

    #[test]
    fn seconds_without_a_number_get_an_example() {
        let complaint = Chore::parse(&["fuzz", "--seconds"]).expect_err("no number");
        assert_eq!(complaint, "`--seconds` needs a number, such as `--seconds 60`");
    }

    #[test]
    fn invalid_arguments_are_refused() {
        let wrong: [&[&str]; 12] = [
            &[],
            &["bench", "outbox"],
            &["bench", "store", "mysql"],
            &["bench", "llm", "sqlite"],
            &["bench", "llm", "--items"],
            &["bench", "llm", "--items", "0"],
            &["bench", "llm", "--rate", "fast"],
            &["bench", "llm", "--rate", "1", "--rate", "2"],
            &["tests"],
            &["test", "--fast"],
            &["fuzz", "--seconds", "soon"],
            &["fuzz", "--seconds", "0"],
        ];
        for words in wrong {
            assert!(Chore::parse(words).is_err(), "{words:?}");
        }
    }
}
