//! Finds the API of a path.
//!
//! Guarantee: the path before an API's own path is the endpoint, so one server can imitate several regions, each with
//! its own behaviour.

use serde::{Deserialize, Serialize};

/// An API that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Converse of the Bedrock runtime.
    Bedrock,
    /// Chat completions of OpenAI and compatible servers.
    Openai,
    /// Messages of Anthropic.
    Anthropic,
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) api: Provider,
    /// The path before the API's own path: empty, or for example `/east`.
    pub(crate) endpoint: String,
    /// The model in the path, still encoded. Only Bedrock has it there.
    pub(crate) model: Option<String>,
}

/// Parses the path of a request before any decoding: an ARN contains slashes.
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
    fn prefix_before_the_api_path_is_the_endpoint() {
        let routed = |path| route(path).map(|route| (route.api, route.endpoint));
        assert_eq!(routed("/v1/messages"), Some((Provider::Anthropic, String::new())));
        assert_eq!(routed("/east/v1/chat/completions"), Some((Provider::Openai, "/east".to_owned())));
        assert_eq!(routed("/a/b/model/m/converse"), Some((Provider::Bedrock, "/a/b".to_owned())));
        assert_eq!(routed("/v1/completions"), None);
        assert_eq!(routed("/converse"), None);
    }
}
