//! Which API a path belongs to.
//!
//! Guarantee: what stands before an API's own path is kept as the endpoint, so that one server can play
//! several regions, each with a behaviour of its own.

use serde::{Deserialize, Serialize};

/// An API that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Converse of the Bedrock runtime.
    Bedrock,
    /// Chat completions of OpenAI and of all that imitate it.
    Openai,
    /// Messages of Anthropic.
    Anthropic,
}

/// Where a request wants to go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) api: Provider,
    /// What stands before the API's own path: nothing, or for example `/east`.
    pub(crate) endpoint: String,
    /// The model as the path names it, still encoded. Only Bedrock names it there.
    pub(crate) model: Option<String>,
}

/// Reads the path of a request as it came, before any decoding: an ARN has slashes of its own.
pub(crate) fn route(path: &str) -> Option<Route> {
    let plain = |api, endpoint: &str| Some(Route { api, endpoint: endpoint.to_owned(), model: None });
    if let Some(endpoint) = path.strip_suffix("/v1/chat/completions") {
        return plain(Provider::Openai, endpoint);
    }
    if let Some(endpoint) = path.strip_suffix("/v1/messages") {
        return plain(Provider::Anthropic, endpoint);
    }
    let (endpoint, model) = path.strip_suffix("/converse")?.split_once("/model/")?;
    Some(Route { api: Provider::Bedrock, endpoint: endpoint.to_owned(), model: Some(model.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_path_of_an_api_is_the_endpoint() {
        let routed = |path| route(path).map(|route| (route.api, route.endpoint));
        assert_eq!(routed("/v1/messages"), Some((Provider::Anthropic, String::new())));
        assert_eq!(routed("/east/v1/chat/completions"), Some((Provider::Openai, "/east".to_owned())));
        assert_eq!(routed("/a/b/model/m/converse"), Some((Provider::Bedrock, "/a/b".to_owned())));
        assert_eq!(routed("/v1/completions"), None);
        assert_eq!(routed("/converse"), None);
    }
}
