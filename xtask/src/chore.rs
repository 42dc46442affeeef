//! The command line, as a value.
//!
//! Guarantee: what is not understood is refused; no word is ignored, and no chore starts by accident.

/// What `cargo xtask help` prints, and what follows the complaint when the arguments are wrong.
pub const USAGE: &str = "\
Usage: cargo xtask <chore>

  test                  everything CI checks: tools, format, clippy, tests, docs, deny
  tidy                  the rules about the repository itself (also part of `test`)
  fuzz [--seconds N]    every fuzz target for N seconds each (60 if not said); needs cargo-fuzz
  help                  this text";

/// How long each fuzz target runs when nobody says.
const FUZZ_SECONDS_DEFAULT: u32 = 60;

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Check everything that CI checks.
    Test,
    /// Check the rules about the repository itself.
    Tidy,
    /// Run every fuzz target for `seconds` each.
    Fuzz {
        /// Seconds for each target.
        seconds: u32,
    },
    /// Say what can be done.
    Help,
}

impl Chore {
    /// The chore that the words after `cargo xtask` ask for, or what is wrong with them.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        match words.as_slice() {
            [] => Err("which chore?".to_owned()),
            ["test"] => Ok(Self::Test),
            ["tidy"] => Ok(Self::Tidy),
            ["fuzz"] => Ok(Self::Fuzz { seconds: FUZZ_SECONDS_DEFAULT }),
            ["fuzz", "--seconds", count] => match count.parse() {
                // libFuzzer takes 0 for "no limit", which nobody means by it.
                Ok(0) | Err(_) => Err(format!("`--seconds {count}`: a whole number above 0 is wanted")),
                Ok(seconds) => Ok(Self::Fuzz { seconds }),
            },
            ["help" | "--help" | "-h"] => Ok(Self::Help),
            other => Err(format!("`{}` is not understood", other.join(" "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chore_has_its_word() {
        assert_eq!(Chore::parse(&["test"]), Ok(Chore::Test));
        assert_eq!(Chore::parse(&["tidy"]), Ok(Chore::Tidy));
        assert_eq!(Chore::parse(&["fuzz"]), Ok(Chore::Fuzz { seconds: 60 }));
        assert_eq!(Chore::parse(&["fuzz", "--seconds", "5"]), Ok(Chore::Fuzz { seconds: 5 }));
        assert_eq!(Chore::parse(&["--help"]), Ok(Chore::Help));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let wrong: [&[&str]; 6] = [
            &[],
            &["tests"],
            &["test", "--fast"],
            &["fuzz", "--seconds"],
            &["fuzz", "--seconds", "soon"],
            &["fuzz", "--seconds", "0"],
        ];
        for words in wrong {
            assert!(Chore::parse(words).is_err(), "{words:?}");
        }
    }
}
