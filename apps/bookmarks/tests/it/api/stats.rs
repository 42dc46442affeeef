//! The statistics page, from outside. Its arithmetic is tested where it is.
// SPEC A14, B12.

use http::{Method, StatusCode};

use super::fixture::{ApiFixture, ApiResponse};
use crate::both_databases;

fn text(page: &ApiResponse) -> String {
    assert_eq!(page.status, StatusCode::OK, "{page:?}");
    String::from_utf8(page.body.to_vec()).unwrap()
}

both_databases! {
    #[test]
    async fn the_statistics_page_has_every_share_in_both_languages(fixture: ApiFixture) {
        let service = fixture.start().await;
        let foreign = service.bare(Method::GET, "/stats").header("host", "evil.example").send().await;
        assert_eq!(foreign.refusal(), (403, "host_not_allowed".to_owned()));
        service.saved("k1", "https://example.com/private").await;
        service.save("k2", "https://example.com/private").send().await;
        let page = service.bare(Method::GET, "/stats");
        let english = text(&page.clone().header("accept-language", "en-GB").send().await);
        for what in ["with a key", "Duplicates", "Automatic retries", "Retries by a person", "Possibly billed twice"] {
            assert!(english.contains(what), "no {what} in {english}");
        }
        assert!(english.contains(" %</td>") && !english.contains("<script"), "{english}");
        assert!(!english.contains("private") && !english.contains("ann"), "nothing about a person or a link: {english}");
        let japanese = page.header("accept-language", "ja").send().await;
        assert_eq!(japanese.header("cache-control"), Some("no-store"));
        assert!(text(&japanese).contains("<html lang=\"ja\" data-ready>"));
    }

    /// Its totals are as public as the metrics: on this machine, or to people who are signed in.
    #[test]
    async fn the_statistics_page_is_not_public(fixture: ApiFixture) {
        let public = fixture.start_as(|settings| settings.public_origin = Some("https://b.example".to_owned())).await;
        let page = public.bare(Method::GET, "/stats");
        assert_eq!(page.clone().send().await.refusal(), (401, "signed_out".to_owned()));
        let cookie = public.cookie().await;
        assert_eq!(page.header("cookie", &cookie).send().await.status, StatusCode::OK);
        assert_eq!(public.get("/stats").send().await.status, StatusCode::OK);
    }
}
