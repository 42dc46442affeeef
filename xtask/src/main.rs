//! `cargo xtask`: reads the arguments, runs one chore, turns its result into an exit code.

use std::path::Path;
use std::process::ExitCode;

use xtask::chore::{Chore, USAGE};
use xtask::{bench, fuzz, fuzz_api, long, root, rustdoc, test, tidy};

/// The chore ran and found something wrong.
const FAILED: u8 = 1;
/// The chore did not run, because the arguments are wrong.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(folder) = std::env::var_os(rustdoc::FOLDER_VARIABLE) {
        return rustdoc::run(Path::new(&folder), &words);
    }
    let chore = match Chore::parse(&words) {
        Ok(chore) => chore,
        Err(misuse) => {
            eprintln!("xtask: {misuse}\n\n{USAGE}");
            return ExitCode::from(MISUSED);
        }
    };
    let outcome = match chore {
        Chore::Test { scope } => test::run(&root(), scope),
        Chore::Tidy => tidy::run(&root()),
        Chore::Contest { is_quick } => bench::contest(&root(), is_quick),
        Chore::ContestReport => bench::report(&root()),
        Chore::Bench { part, database } => bench::part(&root(), part, database),
        Chore::BenchLlm { items, rate } => bench::llm(&root(), items, rate),
        Chore::Soak => long::soak(&root()),
        Chore::Fuzz { seconds } => fuzz::run(&root(), seconds),
        Chore::FuzzApi => fuzz_api::run(&root(), fuzz_api::FuzzLength::Long),
        Chore::Help => {
            println!("{USAGE}");
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(FAILED)
        }
    }
}
