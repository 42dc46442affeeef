//! The address at which people and programs reach this server.

use crate::config::ServeConfig;

/// What the settings say about the address.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnUrl {
    /// The setting `public_url`, without a trailing slash.
    public: Option<String>,
    /// Whether the server encrypts.
    is_tls: bool,
}

impl OwnUrl {
    pub(super) fn new(config: &ServeConfig) -> Self {
        let public = config.public_url.as_ref().map(|url| {
            let scheme = if url.is_tls { "https" } else { "http" };
            format!("{scheme}://{}{}", url.authority, url.target.path().trim_end_matches('/'))
        });
        Self { public, is_tls: config.tls.is_some() }
    }

    /// Returns the address for the commands of a page: the configured one, or the one that the page was asked under.
    pub(super) fn of_page(&self, host: &str, is_https: bool) -> String {
        let scheme = if self.is_tls || is_https { "https" } else { "http" };
        self.public.clone().unwrap_or_else(|| format!("{scheme}://{host}"))
    }
}
