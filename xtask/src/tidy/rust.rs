//! Parses just enough Rust to find the modules, docs and tests of a file.
//!
//! It works on tokens, not on lines: the content of a comment or a string is not a token, and a test inside `proptest!
//! { … }` is, although only the macro can parse it.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// The lines of the file's own `//!` docs, without the marks.
    pub(super) docs: Vec<String>,
    /// Whether there is anything besides the file's own docs and attributes.
    pub(super) has_items: bool,
    /// The modules that it declares in their own files, except those compiled only for tests.
    pub(super) modules: Vec<Module>,
    /// All functions, at any depth.
    pub(super) functions: Vec<Function>,
}

/// `mod name;`.
#[derive(Debug)]
pub(super) struct Module {
    /// Its name, after those of the enclosing inline modules: `outer/name`.
    pub(super) path: String,
    /// Whether it is plainly `pub`.
    pub(super) is_public: bool,
}

/// A function and what its attributes say.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) is_test: bool,
    pub(super) is_ignored: bool,
}

impl Source {
    /// Parses a file; the error says that it is not Rust.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let tokens = TokenStream::from_str(text).map_err(|error| error.to_string())?;
        let mut source = Self { docs: docs(tokens.clone()), ..Self::default() };
        source.walk(tokens, &EnclosingItems::default());
        Ok(source)
    }

    fn walk(&mut self, tokens: TokenStream, around: &EnclosingItems) {
        let mut before = ItemPrefix::default();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    let is_inner = tokens.next_if(|next| is_mark(next, '!')).is_some();
                    if let Some(attribute) = tokens.next().filter(|_| !is_inner) {
                        before.attributes.push(words(&attribute));
                    }
                    continue;
                }
                TokenTree::Punct(mark) if matches!(mark.as_char(), ';' | ',') => {
                    before = ItemPrefix::default();
                }
                TokenTree::Ident(word) if word == "pub" => {
                    // `pub(crate)` and `pub(super)` are not public.
                    before.is_public =
                        tokens.next_if(|next| is_group(next, Delimiter::Parenthesis)).is_none();
                }
                TokenTree::Ident(word) if word == "fn" => {
                    // In a type, `fn` is followed by its arguments, not by a name.
                    if let Some(TokenTree::Ident(name)) = tokens.peek() {
                        self.functions.push(before.function(&name.to_string()));
                    }
                }
                TokenTree::Ident(word) if word == "mod" => {
                    let Some(TokenTree::Ident(name)) = tokens.next() else {
                        continue;
                    };
                    let body = match tokens.peek() {
                        Some(TokenTree::Group(group)) => Some(group.stream()),
                        _ => None,
                    };
                    if body.is_some() {
                        tokens.next();
                    }
                    self.module(&name.to_string(), body, &before, around);
                    before = ItemPrefix::default();
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) | TokenTree::Ident(_) => (),
                TokenTree::Group(group) => {
                    let ends_item = group.delimiter() == Delimiter::Brace;
                    self.walk(group.stream(), around);
                    if ends_item {
                        before = ItemPrefix::default();
                    }
                }
            }
            self.has_items = true;
        }
    }

    fn module(
        &mut self,
        name: &str,
        body: Option<TokenStream>,
        before: &ItemPrefix,
        around: &EnclosingItems,
    ) {
        let path = format!("{}{}", around.prefix, name.trim_start_matches("r#"));
        let around = EnclosingItems {
            prefix: format!("{path}/"),
            is_for_tests: around.is_for_tests || before.is_for_tests(),
        };
        match body {
            Some(body) => self.walk(body, &around),
            None if around.is_for_tests => (),
            None => self.modules.push(Module { path, is_public: before.is_public }),
        }
    }
}

/// The inline modules around a token.
#[derive(Default)]
struct EnclosingItems {
    prefix: String,
    is_for_tests: bool,
}

/// The attributes and visibility of an item, read before its name.
#[derive(Default)]
struct ItemPrefix {
    attributes: Vec<Vec<String>>,
    is_public: bool,
}

impl ItemPrefix {
    /// `#[cfg(test)]` and nothing more: `any(test, …)` ships, and `not(test)` is not for tests.
    fn is_for_tests(&self) -> bool {
        self.attributes.iter().any(|words| words == &["cfg", "test"])
    }

    fn function(&self, name: &str) -> Function {
        Function {
            name: name.to_owned(),
            is_test: self.attributes.iter().any(|words| makes_a_test(words)),
            // `#[ignore]`, `#[ignore = "…"]`, `#[cfg_attr(…, ignore)]`.
            is_ignored: self.attributes.iter().flatten().any(|word| word == "ignore"),
        }
    }
}

/// `#[test]`, `#[tokio::test]`, `#[tokio::test(flavor = …)]`; not `#[cfg(test)]`.
fn makes_a_test(words: &[String]) -> bool {
    match words {
        [first, ..] if first == "test" => true,
        [first, second, ..] => first != "cfg" && second == "test",
        _ => false,
    }
}

/// Returns the lines of the inner docs at the beginning of `tokens`.
fn docs(tokens: TokenStream) -> Vec<String> {
    let mut tokens = tokens.into_iter();
    let mut lines = Vec::new();
    while let (Some(hash), Some(mark), Some(TokenTree::Group(attribute))) =
        (tokens.next(), tokens.next(), tokens.next())
    {
        if !(is_mark(&hash, '#') && is_mark(&mark, '!')) {
            break;
        }
        lines.extend(doc_line(&attribute));
    }
    lines
}

/// Returns the text in `[doc = "text"]`, which is how the compiler represents `//! text`.
fn doc_line(attribute: &Group) -> Option<String> {
    let mut tokens = attribute.stream().into_iter();
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(doc)), Some(_), Some(TokenTree::Literal(text))) if doc == "doc" => {
            Some(text.to_string().trim_matches('"').trim().to_owned())
        }
        _ => None,
    }
}

/// Returns the identifiers in a group, at any depth, in order.
fn words(token: &TokenTree) -> Vec<String> {
    match token {
        TokenTree::Ident(word) => vec![word.to_string()],
        TokenTree::Group(group) => group.stream().into_iter().flat_map(|token| words(&token)).collect(),
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Source {
        Source::read(text).expect("the example is Rust")
    }

    fn tests_of(text: &str) -> Vec<String> {
        let functions = read(text).functions.into_iter();
        functions
            .filter(|function| function.is_test && !function.is_ignored)
            .map(|function| function.name)
            .collect()
    }

    #[test]
    fn tests_are_found_at_any_depth() {
        let text = "
            #[test] fn plain() {}
            mod tests {
                #[tokio::test(flavor = \"multi_thread\")] async fn on_a_runtime() {}
                proptest! {
                    #![proptest_config(ProptestConfig::with_cases(9))]
                    /// Documented.
                    #[test]
                    fn of_a_property(x in 0..9u8, y: bool) { prop_assert!(x < 9); }
                }
            }";
        assert_eq!(tests_of(text), ["plain", "on_a_runtime", "of_a_property"]);
    }

    #[test]
    fn functions_that_do_not_run_are_not_tests() {
        let text = "
            // #[test] fn in_a_comment() {}
            /* #[test] fn in_a_block() {} */
            const TEXT: &str = \"#[test] fn in_a_string() {}\";
            #[cfg(test)] fn helper() {}
            #[test] #[ignore = \"slow\"] fn ignored() {}
            #[cfg_attr(windows, ignore)] #[test] fn ignored_somewhere() {}
            #[test] const X: u8 = 1; fn after_something_else() {}
            fn takes(f: fn(u8)) {}";
        assert_eq!(tests_of(text), [""; 0]);
    }

    #[test]
    fn modules_are_found_with_their_visibility() {
        let text = "
            pub mod shown;
            pub(crate) mod lent;
            mod hidden;
            pub mod inline { pub mod inner; }
            #[cfg(test)] pub mod tests { pub mod helper; }
            #[cfg(not(test))] mod shipped;";
        let modules = read(text).modules;
        let seen: Vec<(&str, bool)> =
            modules.iter().map(|module| (module.path.as_str(), module.is_public)).collect();
        let expected =
            [("shown", true), ("lent", false), ("hidden", false), ("inline/inner", true), ("shipped", false)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn docs_are_those_of_the_file_not_of_its_items() {
        let source = read("//! First.\n//!\n//! Third.\n\n/// Of the item.\nfn item() {}\n");
        assert_eq!(source.docs, ["First.", "", "Third."]);
        assert!(source.has_items);
        assert_eq!(read("/// Of the item.\nfn item() {}\n").docs, [""; 0]);
    }

    #[test]
    fn a_file_of_docs_alone_has_no_items() {
        assert!(!read("//! Not written yet.\n").has_items);
    }

    #[test]
    fn invalid_rust_is_an_error() {
        assert!(Source::read("fn open() {").is_err());
    }
}
