//! Authentication: each person sees only their own data, and a foreign page can do nothing.
// SPEC C3.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use super::fixture::{ApiFixture, ApiRequest, ApiResponse, RunningService};
use crate::both_databases;

impl ApiRequest {
    fn bearing(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }
}

impl RunningService {
    async fn sign_in(&self, token: &str) -> ApiResponse {
        self.bare(Method::POST, "/session").json(&json!({ "token": token })).send().await
    }

    /// Signs ann in and returns the cookie that her browser then sends.
    pub(crate) async fn cookie(&self) -> String {
        let answer = self.sign_in(&self.token).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    async fn status_with(&self, cookie: &str) -> StatusCode {
        self.bare(Method::GET, "/v1/me").header("cookie", cookie).send().await.status
    }
}

both_databases! {
    /// Another person's bookmark does not exist, and the same key of another person is another action.
    // SPEC C3.
    #[test]
    async fn each_person_sees_only_their_own_bookmarks(fixture: ApiFixture) {
        let service = fixture.start().await;
        let bob = service.app.add_person("bob").await.unwrap().to_text();
        let anns = service.saved("k1", "https://example.com/").await;
        for (method, path) in [
            (Method::GET, format!("/v1/bookmarks/{anns}")),
            (Method::DELETE, format!("/v1/bookmarks/{anns}")),
            (Method::POST, format!("/v1/bookmarks/{anns}/reprocess")),
        ] {
            let answer = service.bare(method, &path).bearing(&bob).send().await;
            assert_eq!(answer.refusal(), (404, "bookmark_unknown".to_owned()), "{path}");
        }
        let list = service.bare(Method::GET, "/v1/bookmarks").bearing(&bob).send().await;
        assert_eq!(list.json()["bookmarks"], json!([]));
        let bobs = service.save("k1", "https://example.com/").bearing(&bob).send().await;
        assert_eq!((bobs.status, bobs.header("idempotency-replayed")), (StatusCode::CREATED, None));
        assert_ne!(bobs.text("/id"), anns);
        assert_eq!(service.bookmark(&anns).await["state"], "processing", "ann's is untouched");
    }

    #[test]
    async fn unauthenticated_requests_are_refused(fixture: ApiFixture) {
        let service = fixture.start().await;
        let wrong = service.token.replace('.', ".A");
        for (method, path) in [
            (Method::GET, "/v1/me"),
            (Method::GET, "/v1/bookmarks"),
            (Method::POST, "/v1/bookmarks"),
            (Method::DELETE, "/v1/bookmarks/x"),
        ] {
            let bare = service.bare(method, path);
            for ask in [bare.clone(), bare.clone().bearing("bm_nonsense"), bare.bearing(&wrong)] {
                let answer = ask.send().await;
                assert_eq!(answer.refusal(), (401, "signed_out".to_owned()), "{path}");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            }
        }
        assert_eq!(service.get("/v1/me").send().await.json()["name"], "ann");
    }

    /// The cookie belongs to the browser: what ann's page sends after bob has signed in there is neither done nor shown
    /// as bob's.
    #[test]
    async fn a_request_for_another_person_is_refused(fixture: ApiFixture) {
        let service = fixture.start().await;
        let bob = service.app.add_person("bob").await.unwrap().to_text();
        let ann = service.get("/v1/me").send().await.text("/id");
        let saved = service.saved("k0", "https://example.com/").await;
        for (method, path) in [
            (Method::GET, "/v1/bookmarks".to_owned()),
            (Method::GET, format!("/v1/bookmarks/{saved}")),
            (Method::POST, "/v1/bookmarks".to_owned()),
            (Method::POST, format!("/v1/bookmarks/{saved}/reprocess")),
            (Method::DELETE, format!("/v1/bookmarks/{saved}")),
        ] {
            let ask = service.bare(method, &path).header("bookmarks-person", &ann).header("idempotency-key", "k1");
            let ask = if path == "/v1/bookmarks" { ask.json(&json!({ "url": "https://example.com/2" })) } else { ask };
            let answer = ask.clone().bearing(&bob).send().await;
            assert_eq!(answer.refusal(), (403, "person_other".to_owned()), "{path}");
            assert!(ask.bearing(&service.token).send().await.status.is_success(), "{path}");
        }
        let bobs = service.bare(Method::GET, "/v1/bookmarks").bearing(&bob).send().await;
        assert_eq!(bobs.json()["bookmarks"], json!([]));
        let nobody = service.get("/v1/bookmarks").header("bookmarks-person", "");
        assert_eq!(nobody.send().await.refusal().1, "person_other");
    }

    #[test]
    async fn signing_in_ends_the_previous_session_in_that_browser(fixture: ApiFixture) {
        let service = fixture.start().await;
        let bob = service.app.add_person("bob").await.unwrap().to_text();
        let anns = service.cookie().await;
        let wrong = service.bare(Method::POST, "/session").header("cookie", &anns).json(&json!({ "token": "bm_no" }));
        assert_eq!(wrong.send().await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(service.status_with(&anns).await, StatusCode::OK, "a wrong token ends nothing");
        let right = service.bare(Method::POST, "/session").header("cookie", &anns).json(&json!({ "token": bob }));
        assert_eq!(right.send().await.status, StatusCode::NO_CONTENT);
        assert_eq!(service.status_with(&anns).await, StatusCode::UNAUTHORIZED);
    }

    #[test]
    async fn a_sign_in_sets_a_cookie_that_expires(fixture: ApiFixture) {
        let service = fixture.start().await;
        let answer = service.sign_in(&service.token).await;
        let set = answer.header("set-cookie").unwrap();
        assert!(set.starts_with("bookmarks=bm_") && set.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age="), "{set}");
        assert!(!set.contains("Secure") && !set.contains(&service.token));
        let (first, second) = (service.cookie().await, service.cookie().await);
        assert_eq!(service.status_with(&first).await, StatusCode::OK);
        let out = service.bare(Method::DELETE, "/session").header("cookie", &first).send().await;
        assert!(out.status == StatusCode::NO_CONTENT && out.header("set-cookie").unwrap().contains("Max-Age=0"));
        assert_eq!(service.status_with(&first).await, StatusCode::UNAUTHORIZED);
        assert_eq!(service.status_with(&second).await, StatusCode::OK, "the other session continues");
        service.pass(Duration::from_hours(91 * 24));
        assert_eq!(service.status_with(&second).await, StatusCode::UNAUTHORIZED);
    }

    #[test]
    async fn behind_tls_the_cookie_is_secure(fixture: ApiFixture) {
        let service = fixture.start_as(|settings| settings.public_origin = Some("https://b.example".to_owned())).await;
        let answer = service.sign_in(&service.token).await;
        let set = answer.header("set-cookie").unwrap().to_owned();
        assert!(set.starts_with("__Host-bookmarks=") && set.ends_with("; Secure"), "{set}");
        let cookie = set.split(';').next().unwrap();
        let delete = service.bare(Method::DELETE, "/v1/bookmarks/x").header("cookie", cookie);
        assert_eq!(delete.clone().header("origin", "https://b.example").send().await.refusal().0, 404);
        let here = format!("http://{}", service.address);
        assert_eq!(delete.header("origin", &here).send().await.refusal().0, 403);
        let metrics = service.bare(Method::GET, "/metrics").send().await;
        assert_eq!(metrics.status, StatusCode::UNAUTHORIZED, "metrics need a token");
        assert_eq!(service.get("/metrics").send().await.status, StatusCode::OK);
    }

    /// A domain that somebody else controls can be made to resolve to this machine (DNS rebinding).
    #[test]
    async fn metrics_require_a_host_header_of_this_machine(fixture: ApiFixture) {
        let service = fixture.start().await;
        let page = |host: &str| service.bare(Method::GET, "/metrics").header("host", host);
        for own in ["localhost:4190", "127.0.0.1", "[::1]:4190"] {
            assert_eq!(page(own).send().await.status, StatusCode::OK, "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example:4190", "evil@127.0.0.1", "192.0.2.1"] {
            assert_eq!(page(foreign).send().await.refusal(), (403, "host_not_allowed".to_owned()), "{foreign}");
        }
    }

    #[test]
    async fn requests_with_a_cookie_must_come_from_our_pages(fixture: ApiFixture) {
        let service = fixture.start().await;
        let cookie = service.cookie().await;
        let here = format!("http://{}", service.address);
        let payload = json!({ "url": "https://example.com/" });
        let save = service.bare(Method::POST, "/v1/bookmarks").header("cookie", &cookie).json(&payload);
        let save = |key: &str| save.clone().header("idempotency-key", key);
        for foreign in [
            save("k1"),
            save("k2").header("sec-fetch-site", "cross-site").header("origin", &here),
            save("k3").header("sec-fetch-site", "same-site"),
            save("k4").header("origin", "https://evil.example"),
            save("k5").header("origin", "null"),
        ] {
            assert_eq!(foreign.send().await.refusal(), (403, "origin_not_allowed".to_owned()));
        }
        let form = save("k6").header("origin", &here).header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(form.send().await.refusal().0, 415);
        assert_eq!(service.count().await, 0);
        assert_eq!(save("k7").header("sec-fetch-site", "same-origin").send().await.status, StatusCode::CREATED);
        assert_eq!(save("k7").header("origin", &here).send().await.header("idempotency-replayed"), Some("true"));
        let sign_in = service.bare(Method::POST, "/session").json(&json!({ "token": service.token }));
        assert_eq!(sign_in.header("origin", "https://evil.example").send().await.refusal().0, 403);
    }

    #[test]
    async fn wrong_tokens_are_throttled_and_the_right_one_is_not(fixture: ApiFixture) {
        let service = fixture.start().await;
        let (start, _) = service.token.split_at(service.token.len() - 8);
        let wrong = format!("{start}AAAAAAAA");
        assert!(bookmarks::Credential::parse(&wrong).is_some(), "it is well formed, so it is looked up");
        assert_eq!(service.sign_in("").await.refusal(), (401, "token_wrong".to_owned()));
        for _ in 0..5 {
            service.cookie().await; // Right tokens are not counted.
        }
        for _ in 0..bookmarks::limits::MAX_WRONG_TOKENS_A_MINUTE - 1 {
            assert_eq!(service.sign_in(&wrong).await.refusal(), (401, "token_wrong".to_owned()));
        }
        for wrong in [wrong.as_str(), ""] {
            let answer = service.sign_in(wrong).await;
            assert_eq!(answer.refusal(), (429, "sign_in_busy".to_owned()));
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=61).contains(&wait), "{wait}");
        }
        let cookie = service.cookie().await;
        assert_eq!(service.status_with(&cookie).await, StatusCode::OK, "nobody is locked out");
    }

    #[test]
    async fn only_hashes_are_stored_and_bad_names_are_refused(fixture: ApiFixture) {
        let service = fixture.start().await;
        service.cookie().await;
        assert_eq!(service.number("SELECT count(*) FROM people WHERE length(token_hash) = 32").await, 1);
        assert_eq!(service.number("SELECT count(*) FROM sessions WHERE length(hash) = 32").await, 1);
        for name in ["", " ann", "a\nb", "ann", &"a".repeat(65)] {
            assert!(service.app.add_person(name).await.is_err(), "{name:?}");
        }
        let names: Vec<String> = service.app.people().await.unwrap().into_iter().map(|person| person.name).collect();
        assert_eq!(names, ["ann"]);
    }

    #[test]
    async fn a_renewed_token_ends_the_old_one_and_every_session(fixture: ApiFixture) {
        let service = fixture.start().await;
        let bob = service.app.add_person("bob").await.unwrap().to_text();
        let id = service.saved("k1", "https://example.com/").await;
        let cookie = service.cookie().await;
        let renewed = service.app.renew_person("ann").await.unwrap().to_text();
        assert_eq!(service.get("/v1/me").send().await.refusal(), (401, "signed_out".to_owned()));
        assert_eq!(service.sign_in(&service.token).await.refusal(), (401, "token_wrong".to_owned()));
        assert_eq!(service.status_with(&cookie).await, StatusCode::UNAUTHORIZED);
        let mine = service.get(&format!("/v1/bookmarks/{id}")).bearing(&renewed).send().await;
        assert_eq!(mine.status, StatusCode::OK, "the bookmarks stay");
        assert_eq!(service.sign_in(&renewed).await.status, StatusCode::NO_CONTENT);
        assert_eq!(service.get("/v1/me").bearing(&bob).send().await.status, StatusCode::OK, "another person's token stays valid");
        let unknown = service.app.renew_person("carol").await.unwrap_err().to_string();
        assert_eq!(unknown, "nobody has this name; known names: ann, bob");
    }

    /// Sign-ins during a renewal: whichever comes first, no session of the old token is left.
    #[test]
    async fn no_session_of_an_old_token_outlives_its_renewal(fixture: ApiFixture) {
        let service = fixture.start().await;
        let old = service.token.clone();
        for _ in 0..8 {
            let signing: Vec<_> = (0..4)
                .map(|_| {
                    let ask = service.bare(Method::POST, "/session").json(&json!({ "token": old }));
                    tokio::spawn(ask.send())
                })
                .collect();
            service.app.renew_person("ann").await.unwrap();
            for signing in signing {
                let answer = signing.await.unwrap();
                let cookie = answer.header("set-cookie").map(|set| set.split(';').next().unwrap().to_owned());
                if let Some(cookie) = cookie {
                    assert_eq!(service.status_with(&cookie).await, StatusCode::UNAUTHORIZED);
                }
            }
        }
    }
}
