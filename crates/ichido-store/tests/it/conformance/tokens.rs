//! Tokens are stored as hashes, and changes to them are in the audit trail.
// SPEC F5.

use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use ichido_store::token::{NewToken, TokenRole, limits};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{StoreFixture, queue};

fn token(name: &str, role: TokenRole) -> NewToken {
    NewToken { id: Uuid::now_v7(), name: name.to_owned(), role, hash: [7; 32], ttl: None }
}

fn producer(queues: Vec<QueueName>) -> TokenRole {
    TokenRole::Producer { identity: "shop 1".to_owned(), queues }
}

impl StoreFixture {
    /// Returns the names of the valid tokens, newest first.
    async fn live(&self) -> Vec<String> {
        let now = self.store.now().await.unwrap();
        let tokens = self.store.tokens().list().await.unwrap();
        tokens.into_iter().filter(|token| token.is_live(now)).map(|token| token.name).collect()
    }
}

both_databases! {
    #[test]
    async fn a_token_comes_back_as_it_was_made(fixture: StoreFixture) {
        let mails = QueueName::parse("mail.welcome:eu").unwrap();
        let roles = [TokenRole::Viewer, TokenRole::Operator, TokenRole::Admin, producer(vec![queue(), mails])];
        for role in &roles {
            fixture.store.tokens().add(&token(role.as_str(), role.clone()), "olivia").await.unwrap();
        }
        let kept = fixture.store.tokens().list().await.unwrap();
        let newest_first: Vec<&TokenRole> = roles.iter().rev().collect();
        assert_eq!(kept.iter().map(|token| &token.role).collect::<Vec<_>>(), newest_first);
        assert!(kept.iter().all(|token| token.hash == [7; 32] && token.expires_at.is_none()));
    }

    #[test]
    async fn token_ends_when_revoked_or_expired(fixture: StoreFixture) {
        let (first, second) = (token("first", TokenRole::Admin), token("second", TokenRole::Admin));
        let short = NewToken { ttl: Some(Duration::from_mins(1)), ..token("short", TokenRole::Viewer) };
        for token in [&first, &second, &short] {
            fixture.store.tokens().add(token, "olivia").await.unwrap();
        }
        assert_eq!(fixture.live().await, ["short", "second", "first"]);
        assert!(fixture.store.tokens().revoke(first.id, "pete").await.unwrap());
        assert!(!fixture.store.tokens().revoke(first.id, "pete").await.unwrap(), "it ends once");
        assert!(!fixture.store.tokens().revoke(Uuid::now_v7(), "pete").await.unwrap(), "there is no such token");
        assert_eq!(fixture.live().await, ["short", "second"]);
        fixture.store.advance_clock(Duration::from_secs(61));
        assert_eq!(fixture.live().await, ["second"]);
        assert_eq!(fixture.store.tokens().list().await.unwrap().len(), 3, "the trail names them");
    }

    #[test]
    async fn session_ends_when_it_expires_or_is_ended(fixture: StoreFixture) {
        let (tokens, token) = (fixture.store.tokens(), Uuid::now_v7());
        for (hash, minutes) in [([1; 32], 1), ([2; 32], 2)] {
            tokens.start_session(token, hash, Duration::from_mins(minutes)).await.unwrap();
        }
        assert_eq!(tokens.session([1; 32]).await.unwrap(), Some(token));
        assert_eq!(tokens.session([3; 32]).await.unwrap(), None);
        fixture.store.advance_clock(Duration::from_secs(61));
        assert_eq!(tokens.session([1; 32]).await.unwrap(), None);
        assert_eq!(tokens.session([2; 32]).await.unwrap(), Some(token));
        tokens.end_session([2; 32]).await.unwrap();
        assert_eq!(tokens.session([2; 32]).await.unwrap(), None);
    }

    #[test]
    async fn sessions_are_bounded(fixture: StoreFixture) {
        let tokens = fixture.store.tokens();
        let hash = |number: u32| *Digest::of_bytes(&number.to_be_bytes()).as_bytes();
        let token = |number: u32| Uuid::from_u128((number / limits::MAX_SESSIONS_PER_TOKEN).into());
        for number in 0..=limits::MAX_SESSIONS {
            let ttl = Duration::from_hours(1) + Duration::from_millis(number.into());
            tokens.start_session(token(number), hash(number), ttl).await.unwrap();
        }
        assert_eq!(tokens.session(hash(0)).await.unwrap(), None, "it ends first");
        assert_eq!(tokens.session(hash(1)).await.unwrap(), Some(token(1)));
    }

    #[test]
    async fn a_token_ends_only_its_own_sessions(fixture: StoreFixture) {
        let (tokens, ann, eve) = (fixture.store.tokens(), Uuid::now_v7(), Uuid::now_v7());
        let hash = |number: u32| *Digest::of_bytes(&number.to_be_bytes()).as_bytes();
        let ttl = |number: u32| Duration::from_hours(1) + Duration::from_millis(number.into());
        tokens.start_session(ann, hash(0), ttl(0)).await.unwrap();
        for number in 1..=limits::MAX_SESSIONS_PER_TOKEN + 1 {
            tokens.start_session(eve, hash(number), ttl(number)).await.unwrap();
        }
        assert_eq!(tokens.session(hash(0)).await.unwrap(), Some(ann));
        assert_eq!(tokens.session(hash(1)).await.unwrap(), None, "its own oldest makes room");
        assert_eq!(tokens.session(hash(2)).await.unwrap(), Some(eve));
    }

    #[test]
    async fn token_changes_are_audited_with_their_actor(fixture: StoreFixture) {
        let token = token("web", producer(vec![queue()]));
        fixture.store.tokens().add(&token, "olivia").await.unwrap();
        fixture.store.tokens().revoke(token.id, "pete").await.unwrap();
        let actions = fixture.store.actions().list(None, 10).await.unwrap();
        let summary: Vec<_> = actions.iter().map(|row| {
            let action = &row.action;
            (action.about.as_str(), action.kind.as_str(), action.actor.as_deref(), action.detail.as_deref())
        }).collect();
        assert_eq!(summary, [
            ("token web", "revoked", Some("pete"), None),
            ("token web", "created", Some("olivia"), Some("producer for shop 1 into orders")),
        ]);
        assert_eq!(actions[0].action.subject, actions[1].action.subject, "they are one chain");
    }

    #[test]
    async fn invalid_token_is_refused(fixture: StoreFixture) {
        let many = vec![queue(); limits::MAX_QUEUES + 1];
        let nobody = TokenRole::Producer { identity: String::new(), queues: vec![queue()] };
        for refused in [
            token("", TokenRole::Viewer),
            token(&"n".repeat(limits::MAX_NAME_BYTES + 1), TokenRole::Viewer),
            token("nul\0", TokenRole::Viewer),
            token("nowhere", producer(Vec::new())),
            token("everywhere", producer(many)),
            token("for nobody", nobody),
        ] {
            let error = fixture.store.tokens().add(&refused, "olivia").await.unwrap_err();
            assert!(
                matches!(error, StoreError::Empty { .. } | StoreError::TooLarge { .. } | StoreError::NulInText { .. }),
                "{error}"
            );
        }
        assert!(fixture.store.tokens().list().await.unwrap().is_empty());
        assert!(fixture.store.actions().list(None, 10).await.unwrap().is_empty());
    }

    #[test]
    async fn paused_queues_are_listed_with_their_actor(fixture: StoreFixture) {
        assert!(fixture.store.queues().pauses().await.unwrap().is_empty());
        fixture.store.queues().pause(&queue(), true, Some("olivia")).await.unwrap();
        let paused = fixture.store.queues().pauses().await.unwrap();
        assert_eq!((paused[0].queue.as_str(), paused[0].paused, paused[0].by.as_deref()), ("orders", true, Some("olivia")));
        fixture.store.queues().pause(&queue(), false, Some("pete")).await.unwrap();
        let resumed = fixture.store.queues().pauses().await.unwrap();
        assert_eq!((resumed.len(), resumed[0].paused, resumed[0].by.as_deref()), (1, false, Some("pete")));
    }
}
