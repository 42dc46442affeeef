//! Sessions: which browser signed in with which token.
//!
//! Guarantee: a session holds the id of a token and no secret, so every request asks anew whether the token is still valid and what it
//! may do. The cookie's value is random, and only its hash is kept. At most [`MAX_SESSIONS`] exist; the one that was idle longest makes
//! room. A session ends after [`MAX_IDLE`] without a request, after [`MAX_AGE`], and when the server restarts.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ichido_core::digest::Digest;
use ichido_core::sync::lock;
use tokio::time::Instant;
use uuid::Uuid;

/// Maximum sessions at once.
pub(super) const MAX_SESSIONS: usize = 1_000;
/// A session without a request for this long has ended.
pub(super) const MAX_IDLE: Duration = Duration::from_hours(12);
/// A session ends after this time, used or not.
pub(super) const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// The random bytes of a session's id, too many to guess.
const ID_BYTES: usize = 32;

/// The sessions of this process.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], BrowserSession>>);

/// A browser that signed in.
struct BrowserSession {
    token: Uuid,
    began: Instant,
    used: Instant,
}

impl BrowserSession {
    fn is_live(&self, now: Instant) -> bool {
        now.duration_since(self.used) < MAX_IDLE && now.duration_since(self.began) < MAX_AGE
    }
}

impl Sessions {
    /// Starts a session for a token, and returns the value of its cookie; `None` if the system has no random bytes.
    pub(super) fn start(&self, token: Uuid, now: Instant) -> Option<String> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).ok()?;
        let id = URL_SAFE_NO_PAD.encode(id);
        let mut sessions = lock(&self.0);
        sessions.retain(|_, session| session.is_live(now));
        while MAX_SESSIONS <= sessions.len() {
            let idle = sessions.iter().min_by_key(|(_, session)| session.used).map(|(id, _)| *id);
            let Some(idle) = idle else { break };
            sessions.remove(&idle);
        }
        sessions.insert(hash(&id), BrowserSession { token, began: now, used: now });
        Some(id)
    }

    /// Returns the token of a live session, which counts as used now.
    pub(super) fn token(&self, id: &str, now: Instant) -> Option<Uuid> {
        let mut sessions = lock(&self.0);
        let session = sessions.get_mut(&hash(id)).filter(|session| session.is_live(now))?;
        session.used = now;
        Some(session.token)
    }

    /// Ends a session.
    pub(super) fn end(&self, id: &str) {
        lock(&self.0).remove(&hash(id));
    }
}

fn hash(id: &str) -> [u8; 32] {
    *Digest::of_bytes(id.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sessions_end_when_idle_old_or_signed_out() {
        let (sessions, token, now) = (Sessions::default(), Uuid::from_u128(1), Instant::now());
        let id = sessions.start(token, now).expect("random bytes");
        assert!(ID_BYTES < id.len(), "{id}");
        assert_eq!(sessions.token(&id, now), Some(token));
        assert_eq!(sessions.token("0123", now), None, "a guess");
        let almost = now + MAX_IDLE - Duration::from_secs(1);
        assert_eq!(sessions.token(&id, almost), Some(token), "used again just in time");
        assert_eq!(sessions.token(&id, almost + MAX_IDLE), None, "idle for too long");

        let id = sessions.start(token, now).expect("random bytes");
        let step = MAX_IDLE / 2;
        let mut at = now;
        while at + step < now + MAX_AGE {
            at += step;
            assert_eq!(sessions.token(&id, at), Some(token), "in use");
        }
        assert_eq!(sessions.token(&id, now + MAX_AGE), None, "too old, though in use");

        let id = sessions.start(token, now).expect("random bytes");
        sessions.end(&id);
        assert_eq!(sessions.token(&id, now), None, "signed out");
    }

    #[tokio::test]
    async fn the_longest_idle_session_makes_room() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let ids: Vec<String> = (0..MAX_SESSIONS)
            .map(|number| {
                let at = now + Duration::from_millis(number as u64);
                sessions.start(Uuid::from_u128(number as u128), at).expect("random bytes")
            })
            .collect();
        let later = now + Duration::from_mins(1);
        assert!(sessions.token(&ids[0], later).is_some(), "the first is used again");
        sessions.start(Uuid::nil(), later).expect("random bytes");
        assert!(sessions.token(&ids[0], later).is_some());
        assert!(sessions.token(&ids[1], later).is_none(), "it was idle longest");
        assert_eq!(lock(&sessions.0).len(), MAX_SESSIONS);
    }
}
