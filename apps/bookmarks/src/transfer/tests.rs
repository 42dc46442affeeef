use proptest::prelude::*;

use super::*;

fn link(url: &str, title: &str, tags: &[&str], added_at: Option<i64>) -> Link {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let added_at = added_at.map(Timestamp::from_secs);
    Link { url: url.to_owned(), title: Some(title.to_owned()), tags, added_at, saved: None }
}

/// As Firefox and Chrome write it.
#[test]
fn links_of_a_browser_have_their_folders_and_tags() {
    let file = br#"<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks Menu</H1>
<DL><p>
    <DT><H3 ADD_DATE="1700000000" PERSONAL_TOOLBAR_FOLDER="true">Bookmarks Toolbar</H3>
    <DL><p>
        <DT><A HREF="https://a.example/?x=1&amp;y=2" ADD_DATE="1700000001" ICON="data:image/png;base64,AA">The &lt;fox&gt;</A>
        <DT><H3>Rust, the language</H3>
        <DL><p>
            <DT><A HREF="https://b.example/" ADD_DATE="1700000002000" TAGS="async,web">B</A>
            <DD>A description
            <DT><A HREF="https://c.example/">C
        </DL><p>
        <HR>
    </DL><p>
    <DT><A HREF="javascript:alert(1)" ADD_DATE="x">J</A>
    <DT><A>No address</A>
</DL>"#;
    let c = Link {
        title: Some("C\n        ".to_owned()),
        ..link("https://c.example/", "", &["Rust, the language", ""], None)
    };
    assert_eq!(
        netscape::read(file).unwrap(),
        [
            link("https://a.example/?x=1&y=2", "The <fox>", &[""], Some(1_700_000_001)),
            link("https://b.example/", "B", &["Rust, the language", "async", "web"], Some(1_700_000_002)),
            c,
            link("javascript:alert(1)", "J", &[""], None),
        ]
    );
}

#[test]
fn files_are_refused_with_a_reason() {
    for (file, why) in [
        ("{}", "the file is not an export of this service: missing field `version`"),
        (
            r#"{"version":1,"bookmarks":[]}"#,
            "the file is not an export of this service: its version is 1, not 2",
        ),
    ] {
        let error = json::read(file.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
    let many = "<a href=x>".repeat(MAX_IMPORTED_LINKS + 1);
    assert!(matches!(netscape::read(many.as_bytes()), Err(FileError::TooMany)));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(title in "[a-z<>&\"' あ]{1,20}", tag in "[a-z&\"あ]{1,8}", date in 0..4_000_000_000_i64) {
        let link = link("https://example.com/?a=1&b=\"<", &title, &[&tag], Some(date));
        let file = format!("{}{}{}", netscape::HEAD, netscape::write(&link), netscape::TAIL);
        prop_assert_eq!(netscape::read(file.as_bytes()).unwrap(), [link.clone()]);
        let saved = Saved {
            status: State::Failed,
            page_title: Some(title.clone()),
            summary: Some((title, "model".to_owned())),
            source_hint: Some("video".to_owned()),
            created_from: None,
        };
        for link in [link.clone(), Link { saved: Some(saved), ..link }] {
            let file = format!("{}{}{}", json::HEAD, json::write(link.clone()), json::TAIL);
            prop_assert_eq!(json::read(file.as_bytes()).unwrap(), [link]);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), tags in "(</?(dl|a|h3|p)( href=x)?>|[a-z]){0,60}") {
        drop((netscape::read(&bytes), json::read(&bytes), netscape::read(tags.as_bytes())));
    }
}
