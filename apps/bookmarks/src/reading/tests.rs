use proptest::prelude::*;

use super::*;

fn page(body: &[u8], charset: Option<&str>) -> Page {
    let charset = charset.map(str::to_owned);
    read(&Fetched { media: "text/html".to_owned(), charset, body: body.to_vec().into() })
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
    assert_eq!(page.text, format!("Fox\n{STORY}\nThe end&more."));
}

#[test]
fn an_unclosed_element_does_not_swallow_the_page() {
    let page = page(format!("<title>A</title><nav><p>{STORY}").as_bytes(), None);
    assert_eq!(page.text, STORY);
}

#[test]
fn a_page_of_scripts_is_read_by_its_description() {
    let html = r#"<meta property="og:title" content="App"><meta name=description content="It does things."><div id=root></div><script>x</script>"#;
    let page = page(html.as_bytes(), None);
    assert_eq!((page.title.as_deref(), page.text.as_str()), (Some("App"), "It does things."));
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
            assert_eq!(page.text, "こんにちは。", "{}", encoding.name());
        }
    }
    let page = page("\u{feff}<title>印</title>".as_bytes(), Some("shift_jis"));
    assert_eq!(page.title.as_deref(), Some("印"), "a byte order mark wins");
}

#[test]
fn plain_text_is_not_parsed_as_html() {
    let fetched =
        Fetched { media: "text/plain".to_owned(), charset: None, body: "<b>one</b>\n\n two\0 ".into() };
    let page = read(&fetched);
    assert_eq!((page.title, page.text.as_str()), (None, "<b>one</b>\ntwo"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_within_limits(bytes in any::<Vec<u8>>(), tags in "(<[a-z]{1,6}[> ]|</[a-z]{1,6}>|[a-z ]|<!--|&){0,80}") {
        for body in [bytes, tags.into_bytes()] {
            let page = page(&body, None);
            prop_assert!(page.text.chars().count() <= MAX_TEXT_CHARS && !page.text.contains('\0'));
            prop_assert!(page.title.is_none_or(|title| title.chars().count() <= MAX_TITLE_CHARS));
        }
    }
}
