//! Where a save comes from, and the kind of page it leads to.
//!
//! The two are independent: a video is a video from a phone and from a bookmarklet. The kind is read from the URL alone,
//! so it is a hint; a client that knows better sends its own.
// SPEC A7.

use url::Url;

ichido_core::words! {
    /// The client that saved a bookmark.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum CreatedFrom {
        /// The page of this service.
        Web = "web",
        Bookmarklet = "bookmarklet",
        /// The share menu of a device where the page is installed.
        Share = "share",
        /// A shortcut on an iPhone or iPad.
        Ios = "ios",
        /// Any other program.
        Api = "api",
        /// A file of another program.
        Import = "import",
    }
}

ichido_core::words! {
    /// The kind of a page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SourceHint {
        Article = "article",
        Video = "video",
        Audio = "audio",
        Image = "image",
        Code = "code",
        Paper = "paper",
        Social = "social",
    }
}

/// Hosts whose pages are mostly of one kind, with all their subdomains.
const HOSTS: [(SourceHint, &[&str]); 6] = [
    (SourceHint::Video, &["youtube.com", "youtu.be", "vimeo.com", "twitch.tv", "nicovideo.jp", "ted.com"]),
    (SourceHint::Audio, &["open.spotify.com", "soundcloud.com", "podcasts.apple.com", "music.apple.com"]),
    (SourceHint::Image, &["flickr.com", "imgur.com", "pinterest.com", "unsplash.com"]),
    (
        SourceHint::Code,
        &[
            "github.com",
            "gitlab.com",
            "bitbucket.org",
            "codeberg.org",
            "sr.ht",
            "stackoverflow.com",
            "crates.io",
            "docs.rs",
            "npmjs.com",
            "pypi.org",
        ],
    ),
    (
        SourceHint::Paper,
        &[
            "arxiv.org",
            "doi.org",
            "dl.acm.org",
            "ieeexplore.ieee.org",
            "pubmed.ncbi.nlm.nih.gov",
            "openreview.net",
        ],
    ),
    (
        SourceHint::Social,
        &[
            "twitter.com",
            "x.com",
            "bsky.app",
            "mastodon.social",
            "facebook.com",
            "instagram.com",
            "linkedin.com",
            "reddit.com",
            "threads.net",
            "news.ycombinator.com",
        ],
    ),
];

/// Ends of file names. They win over the host: a PDF file on a code host is a paper.
const ENDINGS: [(SourceHint, &[&str]); 5] = [
    (SourceHint::Paper, &["pdf"]),
    (SourceHint::Video, &["mp4", "webm", "mov"]),
    (SourceHint::Audio, &["mp3", "m4a", "ogg", "flac", "wav"]),
    (SourceHint::Image, &["png", "jpg", "jpeg", "gif", "webp", "avif", "svg"]),
    (SourceHint::Code, &["rs", "py", "js", "ts", "go", "java", "c", "h", "cpp", "sql", "patch", "diff"]),
];

impl SourceHint {
    /// Detects the kind from a canonical URL. Any other page is an article.
    pub(crate) fn detect(url: &str) -> Self {
        let Ok(url) = Url::parse(url) else { return Self::Article };
        let name = url.path().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let by_ending = ENDINGS.iter().find(|(_, endings)| endings.contains(&ending));
        let host = url.host_str().unwrap_or_default();
        let is_of = |domain: &&str| {
            host.strip_suffix(*domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let by_host = || HOSTS.iter().find(|(_, hosts)| hosts.iter().any(is_of)).map(|(kind, _)| *kind);
        by_ending.map(|(kind, _)| *kind).or_else(by_host).unwrap_or(Self::Article)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_page_is_detected_from_its_url() {
        for (url, kind) in [
            ("https://example.com/", SourceHint::Article),
            ("https://example.com/2026/11/coffee.html", SourceHint::Article),
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ", SourceHint::Video),
            ("https://youtu.be/dQw4w9WgXcQ", SourceHint::Video),
            ("https://cdn.example.com/talk.MP4", SourceHint::Video),
            ("https://open.spotify.com/episode/1", SourceHint::Audio),
            ("https://example.com/feed/7.mp3?from=rss", SourceHint::Audio),
            ("https://example.com/fox.jpeg", SourceHint::Image),
            ("https://github.com/rust-lang/rust", SourceHint::Code),
            ("https://gist.github.com/ann/1", SourceHint::Code),
            ("https://example.com/src/main.rs", SourceHint::Code),
            ("https://arxiv.org/abs/2301.00001", SourceHint::Paper),
            ("https://github.com/ann/thesis/raw/main/thesis.pdf", SourceHint::Paper),
            ("https://x.com/ann/status/1", SourceHint::Social),
            ("https://old.reddit.com/r/rust/", SourceHint::Social),
            // Only whole labels of a host count.
            ("https://netflix.com/title/1", SourceHint::Article),
            ("https://notgithub.com/", SourceHint::Article),
            ("https://github.com.example/", SourceHint::Article),
            ("https://example.com/?next=https://github.com/", SourceHint::Article),
            ("http://[::1]:8080/a", SourceHint::Article),
            ("no URL", SourceHint::Article),
        ] {
            assert_eq!(SourceHint::detect(url), kind, "{url}");
        }
    }

    #[test]
    fn every_kind_can_be_detected() {
        let found = |kind: SourceHint| {
            kind == SourceHint::Article || HOSTS.iter().chain(&ENDINGS).any(|(listed, _)| *listed == kind)
        };
        assert!(SourceHint::ALL.into_iter().all(found));
    }
}
