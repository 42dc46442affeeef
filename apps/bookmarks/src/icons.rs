//! Icons of sites, fetched by the server so that no browser asks a saved site for anything.
//!
//! Guarantee: a host is asked once per person while its icon is kept, through the same guard as a page. An icon is a
//! bitmap by its first bytes, whatever the site says, and small.

use ichido::time::Timestamp;
use url::Url;
use uuid::Uuid;

use crate::app::App;
use crate::database::{DbConnection, on};
use crate::fetch::Fetcher;
use crate::settings::limits;

/// How each kind of bitmap begins. A drawing (SVG) could contain a script.
const MEDIA: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"GIF8", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"RIFF", "image/webp"),
];

/// Returns the media type of a bitmap, by its first bytes.
pub(crate) fn media(bytes: &[u8]) -> Option<&'static str> {
    let (_, media) = MEDIA.iter().find(|(start, _)| bytes.starts_with(start))?;
    let is_whole = *media != "image/webp" || bytes.get(8..12) == Some(b"WEBP");
    is_whole.then_some(media)
}

/// Returns the icon for a page of a person, and fetches it if its host is new.
pub(crate) async fn of_page(
    app: &App,
    fetcher: &Fetcher,
    person: Uuid,
    (page, icon): (&Url, Url),
    now: Timestamp,
) -> Result<Option<Uuid>, sqlx::Error> {
    const FIND: &str = "SELECT id, media, fetched_at FROM icons WHERE person_id = $1 AND host = $2";
    const SAVE: &str = "\
        INSERT INTO icons (id, person_id, host, fetched_at, media, bytes) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (person_id, host)
        DO UPDATE SET fetched_at = excluded.fetched_at, media = excluded.media, bytes = excluded.bytes
        RETURNING id";
    let host = page.origin().ascii_serialization();
    let mut pooled = app.database.connect().await?;
    let known: Option<(Uuid, Option<String>, i64)> = on!(pooled.connection(), c => {
        sqlx::query_as(FIND).bind(person).bind(&host).fetch_optional(c).await?
    });
    drop(pooled);
    let is_recent = |fetched_at| now < Timestamp::from_micros(fetched_at).plus(limits::NO_ICON_FOR);
    match known {
        Some((id, Some(_), _)) => return Ok(Some(id)),
        Some((_, None, fetched_at)) if is_recent(fetched_at) => return Ok(None),
        _ => (),
    }
    let (media, bytes) = fetcher.icon(icon, now).await.unzip();
    let mut pooled = app.database.connect().await?;
    let id: Uuid = on!(pooled.connection(), c => {
        let save = sqlx::query_scalar(SAVE).bind(Uuid::now_v7()).bind(person).bind(&host).bind(now.as_micros());
        save.bind(media).bind(bytes.map(|bytes| bytes.to_vec())).fetch_one(c).await?
    });
    Ok(media.map(|_| id))
}

/// Returns one of a person's icons: its media type and its bytes.
pub(crate) async fn find(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
) -> Result<Option<(String, Vec<u8>)>, sqlx::Error> {
    const SQL: &str = "SELECT media, bytes FROM icons WHERE person_id = $1 AND id = $2 AND media IS NOT NULL";
    on!(connection, c => sqlx::query_as(SQL).bind(person).bind(id).fetch_optional(&mut **c).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bitmaps_are_icons() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], Some("image/png")),
            (b"\0\0\x01\0\x01", Some("image/x-icon")),
            (b"GIF89a", Some("image/gif")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\0\0\0\0WEBPVP8", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg xmlns=", None),
            (b"<html>", None),
            (b"", None),
        ] {
            assert_eq!(media(bytes), expected);
        }
    }
}
