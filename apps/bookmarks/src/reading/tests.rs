use proptest::prelude::*;

use super::*;

fn page(body: &[u8], charset: Option<&str>) -> Page {
    let charset = charset.map(str::to_owned);
    read(&Fetched { charset, ..fetched("https://example.com/", "text/html", body) })
}

fn fetched(url: &str, media: &str, body: &[u8]) -> Fetched {
    let url = Url::parse(url).unwrap();
    Fetched { url, media: media.to_owned(), charset: None, coding: None, body: body.to_vec().into() }
}

const STORY: &str = "A long story about a fox that jumped over a dog, which did not mind it at all, since it was \
                     asleep in the sun; and about what the two of them did when the evening came.";

#[test]
fn navigation_and_footer_are_left_out() {
    let html = format!(
        "<html><head><title> The\n fox </title><style>p {{}}</style><script>let a = '<p>no';</script></head>\
         <body><nav><a>Home</a></nav><main><h1>Fox</h1><p>{STORY}</p><p>The <b>end</b>&amp;more.</p></main>\
         <footer>Imprint</footer></body></html>"
    );
    let page = page(html.as_bytes(), None);
    assert_eq!(page.title.as_deref(), Some("The fox"));
    assert_eq!(page.text.unwrap(), format!("Fox\n{STORY}\nThe end&more."));
}

/// They are longer than the page itself, and would be all that its summary says.
#[test]
fn menus_and_imprints_of_a_short_page_are_left_out() {
    let menu = "<li>Products and services of our company</li>".repeat(9);
    let html = format!(
        "<title>Hours</title><header>{menu}</header><nav>{menu}</nav><main><p>Closed on Mondays.</p></main>\
         <aside>{menu}</aside><footer>{menu}</footer>"
    );
    let read = |html: &str| page(html.as_bytes(), None).text.unwrap();
    assert_eq!(read(&html), "Closed on Mondays.");
    let described = html.replace("<header>", "<meta name=description content='When we are open.'><header>");
    assert_eq!(read(&described), "When we are open.");
    assert_eq!(read(&format!("<form><nav>{menu}</nav><p>{STORY}</p></form>")), STORY, "a page in a form");
    assert_eq!(read("<header><h1>Only a header</h1></header>"), "Only a header");
}

#[test]
fn an_unclosed_element_does_not_swallow_the_page() {
    let page = page(format!("<title>A</title><nav><p>{STORY}").as_bytes(), None);
    assert_eq!(page.text.unwrap(), STORY);
}

#[test]
fn a_page_of_scripts_is_read_by_its_description() {
    let html = r#"<meta property="og:title" content="App"><meta name=description content="It does things."><div id=root></div><script>x</script>"#;
    let page = page(html.as_bytes(), None);
    assert_eq!((page.title.as_deref(), page.text.as_deref().unwrap()), (Some("App"), "It does things."));
}

#[test]
fn markup_in_a_title_is_text() {
    let page = page(b"<title><script>alert(1)</script></title>", None);
    assert_eq!(page.title.as_deref(), Some("<script>alert(1)</script>"));
}

#[test]
fn japanese_is_read_in_each_of_its_encodings() {
    let html = "<title>日本語のページ</title><p>こんにちは。</p>";
    for encoding in
        [encoding_rs::SHIFT_JIS, encoding_rs::EUC_JP, encoding_rs::ISO_2022_JP, encoding_rs::UTF_8]
    {
        let by_head = format!("<meta charset={}>{html}", encoding.name());
        let by_equiv = format!(
            r#"<meta http-equiv="Content-Type" content="text/html; charset={}">{html}"#,
            encoding.name()
        );
        for (text, said) in [(html, Some(encoding.name())), (&by_head, None), (&by_equiv, None)] {
            let (bytes, ..) = encoding.encode(text);
            let page = page(&bytes, said);
            assert_eq!(page.title.as_deref(), Some("日本語のページ"), "{} {said:?}", encoding.name());
            assert_eq!(page.text.unwrap(), "こんにちは。", "{}", encoding.name());
        }
    }
    let page = page("\u{feff}<title>印</title>".as_bytes(), Some("shift_jis"));
    assert_eq!(page.title.as_deref(), Some("印"), "a byte order mark wins");
}

#[test]
fn plain_text_is_not_parsed_as_html() {
    let page =
        read(&fetched("https://example.com/a/notes%20%E6%97%A5.txt", "text/plain", b"<b>one</b>\n\n two\0 "));
    assert_eq!((page.title, page.text.as_deref()), (None, Some("<b>one</b>\ntwo")));
    assert_eq!(page.file_name.as_deref(), Some("notes 日.txt"));
}

/// A file that is not a page has a title all the same.
#[test]
fn a_file_without_text_has_its_own_title_or_its_name() {
    let pdf = b"%PDF-1.4\n1 0 obj << /Title (The \\(quick\\) fox) >> endobj trailer << /Info 1 0 R >>";
    for (url, media, body, expected) in [
        ("https://example.com/a.pdf", "application/pdf", &pdf[..], (Some("The (quick) fox"), Some("a.pdf"))),
        ("https://example.com/a+b.pdf?x=1", "application/pdf", b"%PDF", (None, Some("a+b.pdf"))),
        ("https://example.com/data.json", "application/json", b"{}", (None, Some("data.json"))),
        ("https://example.com/api", "application/json", b"{}", (None, None)),
    ] {
        let page = read(&fetched(url, media, body));
        assert_eq!(
            (page.title.as_deref(), page.file_name.as_deref(), page.text),
            (expected.0, expected.1, None)
        );
    }
}

#[test]
fn the_icon_is_the_one_a_page_names_or_the_usual_one() {
    for (html, expected) in [
        ("<link rel=\"shortcut ICON\" href=/i.png><link rel=icon href=/j.png>", "https://example.com/i.png"),
        (
            "<link rel=icon href=i.svg><link rel=icon href=\"https://cdn.example/i.ico\">",
            "https://cdn.example/i.ico",
        ),
        ("<link rel=icon href=data:image/png;base64,AAAA>", "https://example.com/favicon.ico"),
        ("<link rel=stylesheet href=a.css>", "https://example.com/favicon.ico"),
    ] {
        assert_eq!(page(html.as_bytes(), None).icon.unwrap().as_str(), expected, "{html}");
    }
}

#[test]
fn nobody_turns_the_direction_of_a_title() {
    let page = page("<title>A \u{202e}gpj.exe\u{2066} b\u{200f}</title>".as_bytes(), None);
    assert_eq!(page.title.as_deref(), Some("A gpj.exe b"));
}

#[test]
fn a_title_that_was_cut_says_so() {
    let (whole, long) = ("あ".repeat(MAX_TITLE_CHARS), "あ".repeat(MAX_TITLE_CHARS + 1));
    assert_eq!(title(&whole), Some(whole));
    assert_eq!(title(&long), Some("あ".repeat(MAX_TITLE_CHARS - 1) + "…"));
    assert_eq!(
        title(&format!("{} b", "a".repeat(MAX_TITLE_CHARS - 2))).unwrap().chars().count(),
        MAX_TITLE_CHARS
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_within_limits(bytes in any::<Vec<u8>>(), tags in "(<[a-z]{1,6}[> ]|</[a-z]{1,6}>|[a-z ]|<!--|&){0,80}") {
        for body in [bytes, tags.into_bytes()] {
            let page = page(&body, None);
            let text = page.text.unwrap();
            prop_assert!(text.chars().count() <= MAX_TEXT_CHARS && !text.contains('\0'));
            prop_assert!(page.title.is_none_or(|title| title.chars().count() <= MAX_TITLE_CHARS));
        }
    }
}
