//! Checks that the commands are thin: they call the API, and the libraries do the work.
//!
//! Guarantee: `ichido-cli` has at most [`MAX_CODE_LINES`] lines of code, and none of its files names `ichido_store`
//! except those in [`STORE_FILES`]. Lines of code are those of `src` that are not blank, not comments and not tests.

use super::TidyFinding;
use super::tree::Tree;

/// Maximum lines of code of all commands together.
pub const MAX_CODE_LINES: usize = 8_500;

/// The files that may name the store: the one that opens it for a command, and those of `doctor`, which inspects
/// databases that may be damaged or of another version, so no API could answer for them.
pub const STORE_FILES: [&str; 3] = ["store.rs", "doctor.rs", "doctor/"];

const FOLDER: &str = "crates/ichido-cli/src/";
const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// Finds commands that use the store directly, and reports too much code.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let files: Vec<(&str, &str)> =
        tree.rust().filter_map(|(path, text)| Some((command(path)?, text))).collect();
    let imports = files
        .iter()
        .filter(|(file, _)| !STORE_FILES.iter().any(|allowed| file.starts_with(allowed)))
        .filter(|(_, text)| code(text).any(|line| line.contains("ichido_store")))
        .map(|(file, _)| TidyFinding {
            what: "a command names `ichido_store`".to_owned(),
            location: format!("{FOLDER}{file}"),
            fix: "call the API with `api_client`, or move the code into a library, such as `ichido_server::admin`"
                .to_owned(),
        });
    let lines: usize = files.iter().map(|(_, text)| code(text).count()).sum();
    let length = (MAX_CODE_LINES < lines).then(|| TidyFinding {
        what: format!("the commands have {lines} lines of code; the maximum is {MAX_CODE_LINES}"),
        location: FOLDER.to_owned(),
        fix: "simplify them, or move code that is not about the command line into a library".to_owned(),
    });
    imports.chain(length).collect()
}

/// Returns the path of a source file of the commands, relative to their folder; `None` for other files and tests.
fn command(path: &str) -> Option<&str> {
    let file = path.strip_prefix(FOLDER)?;
    let is_test = file.ends_with("tests.rs") || file.contains("tests/");
    (!is_test).then_some(file)
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split(TESTS).next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(file: &str, text: &str) -> usize {
        check(&Tree::new(&[(&format!("{FOLDER}{file}"), text)])).len()
    }

    #[test]
    fn a_command_that_uses_the_store_is_found() {
        let import = "use ichido_store::Store;\n";
        assert_eq!(findings("token.rs", import), 1);
        assert_eq!(findings("dead/edit.rs", import), 1);
        for allowed in ["store.rs", "doctor.rs", "doctor/judge.rs", "judge/tests.rs"] {
            assert_eq!(findings(allowed, import), 0, "{allowed}");
        }
        assert_eq!(
            findings(
                "token.rs",
                "// ichido_store\n#[cfg(test)]\nmod tests {\n    use ichido_store::Store;\n}\n"
            ),
            0
        );
        assert_eq!(check(&Tree::new(&[("crates/ichido-server/src/admin.rs", import)])), []);
    }

    #[test]
    fn one_line_of_code_over_the_limit_is_found() {
        let fits = "let x = 1;\n\n// why\n".repeat(MAX_CODE_LINES);
        assert_eq!(findings("send.rs", &fits), 0);
        assert_eq!(findings("send.rs", &format!("{fits}let y = 2;\n")), 1);
        assert_eq!(findings("send.rs", &format!("{fits}{TESTS}\n    let y = 2;\n}}\n")), 0);
    }
}
