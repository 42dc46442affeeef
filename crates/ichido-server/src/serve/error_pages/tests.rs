//! Codes, pages and the index agree, and every page can be rendered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use http::header::{CONTENT_TYPE, HeaderName};
use http_body_util::BodyExt as _;

use super::*;

/// Where codes are declared, and the part that uses them.
const SOURCES: [(&str, &str); 3] = [
    ("server", include_str!("../problem.rs")),
    ("layer", include_str!("../../../../ichido/src/once/problem.rs")),
    ("proxy", include_str!("../../../../ichido-proxy/src/problem.rs")),
];

struct Declared {
    status: u16,
    title: &'static str,
    parts: Vec<&'static str>,
}

/// Reads the declarations `Name = "code", STATUS, "title";` of all parts.
fn declared() -> BTreeMap<&'static str, Declared> {
    let mut codes: BTreeMap<&str, Declared> = BTreeMap::new();
    for (part, source) in SOURCES {
        let before = codes.values().map(|declared| declared.parts.len()).sum::<usize>();
        for line in source.lines() {
            let [_, code, status, title, ";"] = line.split('"').collect::<Vec<_>>()[..] else { continue };
            let name = status.trim_matches([',', ' ']);
            let reason = |code: &u16| {
                let status = StatusCode::from_u16(*code).ok()?;
                status.canonical_reason().map(|reason| reason.to_uppercase().replace(' ', "_"))
            };
            let status = (400..600).find(|code| reason(code).as_deref() == Some(name)).expect(name);
            let known = codes.entry(code).or_insert(Declared { status, title, parts: Vec::new() });
            assert_eq!((known.status, known.title), (status, title), "{code} has one meaning");
            assert!(!known.parts.contains(&part), "{code} is a duplicate");
            known.parts.push(part);
        }
        let found = codes.values().map(|declared| declared.parts.len()).sum::<usize>() - before;
        assert!(10 < found, "{part} declares {found} codes");
    }
    codes
}

#[test]
fn every_problem_code_has_a_page() {
    let codes = declared();
    assert!(Code::ALL.iter().all(|code| codes.contains_key(code.as_str())));
    assert!(ichido::once::Code::ALL.iter().all(|code| codes.contains_key(code.as_str())));
    let served: BTreeSet<&str> = PAGES.iter().map(|(code, _)| *code).collect();
    assert_eq!(served, codes.keys().copied().collect(), "served pages and codes are the same");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let files: BTreeSet<String> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name != "README.md")
        .collect();
    assert_eq!(
        files,
        codes.keys().map(|code| format!("{code}.md")).collect(),
        "files and codes are the same"
    );
    for (code, page) in PAGES {
        let Declared { status, title, .. } = &codes[code];
        let opening = format!("# `{code}` ({status})\n\n{title}.\n");
        assert!(page.starts_with(&opening), "{code} must begin with:\n{opening}");
    }
}

#[test]
fn the_index_of_errors_lists_every_code() {
    let rows: BTreeSet<String> =
        INDEX.lines().filter(|line| line.starts_with("| [")).map(str::to_owned).collect();
    let expected = declared().into_iter().map(|(code, Declared { status, title, parts })| {
        format!("| [`{code}`]({code}.md) | {status} | {title} | {} |", parts.join(", "))
    });
    assert_eq!(rows, expected.collect());
}

#[test]
fn error_pages_use_only_the_markdown_that_is_rendered() {
    for (code, page) in PAGES.iter().chain([&("README", INDEX)]) {
        for line in page.lines() {
            let is_plain = line.starts_with(|first: char| first.is_alphanumeric() || "`#|(".contains(first));
            let is_rendered =
                line.is_empty() || is_plain && !line.starts_with("```") && !line.starts_with("###");
            assert!(is_rendered && !line.contains("**") && !line.contains('<'), "{code}: {line}");
        }
    }
}

async fn get(path: &str, accept: &'static str) -> (Vec<Option<String>>, String) {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
    let page = at(path, &headers).expect("a page").expect("a known code");
    let (head, body) = page.into_parts();
    let field = |name: HeaderName| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    let fields = [CONTENT_TYPE, CACHE_CONTROL, VARY, CONTENT_SECURITY_POLICY].map(field).to_vec();
    (fields, String::from_utf8(body.collect().await.expect("a body").to_bytes().to_vec()).expect("text"))
}

#[tokio::test]
async fn error_pages_are_html_for_browsers_and_markdown_for_others() {
    let (plain, text) = get("/errors/key_conflict", "*/*").await;
    assert_eq!(text, include_str!("../../../../../docs/errors/key_conflict.md"));
    assert_eq!(plain[0].as_deref(), Some("text/markdown; charset=utf-8"));
    let (fields, page) = get("/errors/key_conflict", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8").await;
    assert!(page.contains("<h1><code>key_conflict</code> (409)</h1>"), "{page}");
    assert_eq!(fields[0].as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!(fields[1..], plain[1..]);
    assert_eq!(fields[1].as_deref(), Some("public, max-age=3600"));
    assert_eq!(fields[2].as_deref(), Some("accept"));
    let policy = fields[3].as_deref().expect("a policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.contains("<script") && !page.contains("<style") && !page.contains(" style="), "{page}");
    let (_, index) = get("/errors", "text/html").await;
    for (code, _) in PAGES {
        assert!(index.contains(&format!("<a href=\"/errors/{code}\"><code>{code}</code></a>")), "{code}");
    }
}

#[test]
fn an_unknown_error_code_has_no_page() {
    for path in ["/errors/", "/errors/README", "/errors/nope.md", "/errors/../x", "/errors/key_conflict/"] {
        let problem = at(path, &HeaderMap::new()).expect("a path of pages").expect_err("no page");
        assert_eq!(problem.code, Code::RouteUnknown, "{path}");
    }
    let linked = at("/errors/key_conflict.md", &HeaderMap::new());
    assert!(linked.is_some_and(|page| page.is_ok()), "the pages refer to each other by file");
    assert!(at("/errorsx", &HeaderMap::new()).is_none());
}
