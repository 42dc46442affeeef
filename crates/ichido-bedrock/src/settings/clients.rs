//! Builds a client of AWS's SDK for each endpoint.
//!
//! Guarantee: no client retries automatically, whatever the environment or a profile says; each call ends within the
//! configured timeout.

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::config::{Builder, Region, SharedHttpClient, StalledStreamProtectionConfig};
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use ichido_core::settings::ConfigErrors;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::{BedrockSettings, Credentials, EndpointSettings, Keys, add};
use crate::bound::Bound;

/// The provider name that the SDK shows for configured keys.
const GIVEN: &str = "ichido";

/// Returns the names of the endpoints, and a client for each.
pub(crate) async fn open(settings: &BedrockSettings) -> Result<(Vec<String>, Vec<Client>), ConfigErrors> {
    let endpoints = match settings.endpoints.as_slice() {
        [] => vec![EndpointSettings::region(own_region().await?)],
        listed => listed.to_vec(),
    };
    let http = http_client(is_tls_spoken(settings, &endpoints))?;
    let base = match &settings.credentials {
        Credentials::Found => Builder::from(&found(http, &endpoints).await),
        Credentials::Given(keys) => given(keys, http),
    };
    let names = endpoints.iter().map(EndpointSettings::name).collect();
    let clients = endpoints.iter().map(|endpoint| client(base.clone(), endpoint, settings)).collect();
    Ok((names, clients))
}

fn client(base: Builder, endpoint: &EndpointSettings, settings: &BedrockSettings) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout)
        // A response begins when the model has finished, so waiting for its beginning is waiting for all of it.
        .read_timeout(settings.timeout)
        .operation_timeout(settings.timeout)
        .build();
    let mut config = base
        .region(Region::new(endpoint.region.clone()))
        // The caller has the only retry loop.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        // It mistakes a model that is still generating for a stalled connection. The timeout of the whole call is used
        // instead.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .interceptor(Bound);
    if let Some(url) = &endpoint.url {
        config = config.endpoint_url(url);
    }
    Client::from_conf(config.build())
}

/// Loads the configuration from AWS's environment and profiles. Credentials are looked up when first needed.
async fn found(http: SharedHttpClient, endpoints: &[EndpointSettings]) -> SdkConfig {
    // Without a region, the SDK would look for one over the network. Each client sets its own in the end.
    let region = endpoints.first().map(|endpoint| Region::new(endpoint.region.clone()));
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http).region(region);
    loader.load().with_subscriber(NoSubscriber::new()).await
}

/// Uses the given keys and nothing from the environment: a token there would override them.
fn given(keys: &Keys, http: SharedHttpClient) -> Builder {
    let keys = aws_sdk_bedrockruntime::config::Credentials::new(
        &keys.access_key_id,
        &keys.secret_access_key,
        keys.session_token.clone(),
        None,
        GIVEN,
    );
    Builder::new().behavior_version(BehaviorVersion::latest()).http_client(http).credentials_provider(keys)
}

/// Returns the region of the environment or profile. The instance metadata is not queried, because that takes seconds
/// where there is none.
async fn own_region() -> Result<String, ConfigErrors> {
    let chain = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
        .or_else(ProfileFileRegionProvider::new());
    let region = chain.region().with_subscriber(NoSubscriber::new()).await;
    region.map(|region| region.as_ref().to_owned()).ok_or_else(|| {
        let mut problems = ConfigErrors::default();
        add(&mut problems, "endpoints", "is empty; name at least one region or set AWS_REGION");
        problems
    })
}

/// Credentials that are looked up may come over TLS, wherever the model is.
fn is_tls_spoken(settings: &BedrockSettings, endpoints: &[EndpointSettings]) -> bool {
    let is_plain = |endpoint: &EndpointSettings| {
        endpoint.url.as_deref().is_some_and(|url| url.to_ascii_lowercase().starts_with("http://"))
    };
    matches!(settings.credentials, Credentials::Found) || !endpoints.iter().all(is_plain)
}

fn http_client(is_tls_spoken: bool) -> Result<SharedHttpClient, ConfigErrors> {
    let mut problems = ConfigErrors::default();
    if is_tls_spoken && rustls_native_certs::load_native_certs().certs.is_empty() {
        let help =
            "the system has no trusted certificates, so AWS cannot be verified; install `ca-certificates`";
        add(&mut problems, "endpoints", help);
        return Err(problems);
    }
    let trust = TrustStore::empty().with_native_roots(is_tls_spoken);
    let tls = TlsContext::builder().with_trust_store(trust).build().map_err(|error| {
        add(&mut problems, "endpoints", format!("cannot set up TLS: {error}"));
        problems
    })?;
    let builder = aws_smithy_http_client::Builder::new().tls_provider(Provider::rustls(CryptoMode::Ring));
    Ok(builder.tls_context(tls).build_https())
}
