//! A second save of the same URL is the first bookmark.
// SPEC A7.

use std::time::Duration;

use http::{Method, StatusCode};

use super::fixture::ApiFixture;
use crate::both_databases;

both_databases! {
    #[test]
    async fn other_spellings_of_a_url_return_the_first_bookmark(fixture: ApiFixture) {
        let service = fixture.start().await;
        let first = service.saved("k1", "https://example.com/a").await;
        let again = service.save("k2", "HTTPS://EXAMPLE.com:443/b/../a?utm_source=mail#top").send().await;
        assert_eq!((again.status, again.text("/id")), (StatusCode::OK, first));
        // It is recorded under its own key.
        let replayed = service.save("k2", "HTTPS://EXAMPLE.com:443/b/../a?utm_source=mail#top").send().await;
        assert_eq!((replayed.status, &replayed.body), (StatusCode::OK, &again.body));
        assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
        service.saved("k3", "http://example.com/a").await;
        assert_eq!(service.count().await, 2);
    }

    #[test]
    async fn concurrent_keys_for_one_url_make_one_bookmark(fixture: ApiFixture) {
        let service = fixture.start().await;
        for round in 0..5 {
            let url = format!("https://example.com/{round}");
            let save = |key: usize| tokio::spawn(service.save(&format!("k{round}-{key}"), &url).send_while_busy());
            let saves: Vec<_> = (0..6).map(save).collect();
            let mut ids = Vec::new();
            let mut made = 0;
            for save in saves {
                let answer = save.await.unwrap();
                made += usize::from(answer.status == StatusCode::CREATED);
                assert!(answer.status.is_success(), "{answer:?}");
                ids.push(answer.text("/id"));
            }
            assert!(made == 1 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        }
        assert_eq!(service.number("SELECT count(*) FROM bookmarks").await, 5);
        assert_eq!(service.count().await, 5);
    }

    /// Also long after the keys are forgotten.
    #[test]
    async fn a_url_returns_its_bookmark_for_as_long_as_it_exists(fixture: ApiFixture) {
        let service = fixture.start().await;
        let first = service.saved("k1", "https://example.com/").await;
        for (key, days) in [("k2", 1), ("k3", 400)] {
            service.pass(Duration::from_hours(24 * days));
            let again = service.save(key, "https://example.com/").send().await;
            assert_eq!((again.status, again.text("/id")), (StatusCode::OK, first.clone()), "{days}");
        }
    }

    #[test]
    async fn the_url_of_a_deleted_bookmark_is_new_again(fixture: ApiFixture) {
        let service = fixture.start().await;
        let first = service.saved("k1", "https://example.com/").await;
        let path = format!("/v1/bookmarks/{first}");
        assert_eq!(service.ask(Method::DELETE, &path).send().await.status, StatusCode::NO_CONTENT);
        assert_eq!(service.get(&path).send().await.refusal(), (404, "bookmark_unknown".to_owned()));
        assert_eq!(service.ask(Method::DELETE, &path).send().await.refusal().0, 404);
        assert_ne!(service.saved("k2", "https://example.com/").await, first);
    }
}
