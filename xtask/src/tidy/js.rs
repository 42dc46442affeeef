//! Reads the tests of JavaScript files: their titles, and whether they run.
//!
//! Guarantee: a test counts if its title is on its first line, as in `test('a title', …`. Any other form is not found,
//! and the specification then reports it as missing: a test that nobody sees proves nothing.

/// A test by its title.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Titled {
    pub(super) title: String,
    pub(super) is_ignored: bool,
}

/// Returns the tests of a file for Node's runner.
pub(super) fn tests(text: &str) -> impl Iterator<Item = Titled> + '_ {
    text.lines().filter_map(|line| {
        let call = line.trim_start().strip_prefix("test")?;
        let (how, rest) = call.split_once('(')?;
        let is_ignored = match how {
            "" => rest.contains("skip:") || rest.contains("todo:"),
            ".skip" | ".todo" => true,
            _ => return None,
        };
        let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (title, _) = rest[1..].split_once(quote)?;
        Some(Titled { title: title.to_owned(), is_ignored })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn tests_and_skipped_tests_are_found_by_title() {
        let text = "import test from 'node:test';\ntest('one, with a comma', () => {\n  test(\"it's two\", { timeout: 1 }, () => {});\n\
                    test.skip('three', () => {});\ntest('four', { skip: true }, f);\ntested('five');\n// test('six')\ntest(seven, f);\n";
        let found: Vec<(String, bool)> =
            super::tests(text).map(|titled| (titled.title, titled.is_ignored)).collect();
        let wanted = [("one, with a comma", false), ("it's two", false), ("three", true), ("four", true)];
        assert_eq!(found, wanted.map(|(title, is_ignored)| (title.to_owned(), is_ignored)));
    }
}
