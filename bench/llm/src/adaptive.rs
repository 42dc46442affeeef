//! The AWS SDK with its adaptive retries: one rate limiter and one backoff for all calls of a client.
//!
//! Its retry quota is lifted, because with it the SDK gives up items instead of waiting.

use std::sync::Arc;

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::retry::{RetryConfig, RetryPartition, TokenBucket};
use aws_sdk_bedrockruntime::config::{
    BehaviorVersion, Config, Credentials, Region, StalledStreamProtectionConfig,
};
use aws_sdk_bedrockruntime::error::DisplayErrorContext;
use aws_sdk_bedrockruntime::types::{
    ContentBlock, ConversationRole, InferenceConfiguration, Message, SystemContentBlock,
};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use ichido_llm::models::Prompt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::load::{ACCESS_KEY_ID, BatchTask, MODEL, PARALLEL, REGION, SECRET_ACCESS_KEY};

const MAX_ATTEMPTS: u32 = 1_000;

pub(crate) async fn run(task: BatchTask) -> usize {
    let client = client(task.url);
    let slots = Arc::new(Semaphore::new(usize::try_from(PARALLEL.get()).expect("it is 64")));
    let mut items = JoinSet::new();
    for prompt in task.prompts {
        let (client, slots) = (client.clone(), Arc::clone(&slots));
        items.spawn(async move {
            let _slot = slots.acquire_owned().await.expect("it is never closed");
            is_answered(&client, prompt).await
        });
    }
    items.join_all().await.into_iter().filter(|is_answered| *is_answered).count()
}

fn client(url: String) -> Client {
    // The server speaks plain HTTP, so no certificate is trusted; reading the system's roots would take time.
    let tls =
        TlsContext::builder().with_trust_store(TrustStore::empty()).build().expect("an empty trust store");
    let http = Builder::new().tls_provider(Provider::rustls(CryptoMode::Ring)).tls_context(tls).build_https();
    // Its own, because the default one is global to the process.
    let partition = RetryPartition::custom("bench").token_bucket(TokenBucket::unlimited()).build();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new(ACCESS_KEY_ID, SECRET_ACCESS_KEY, None, None, "bench"))
        .http_client(http)
        .endpoint_url(url)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .retry_partition(partition)
        .retry_config(RetryConfig::adaptive().with_max_attempts(MAX_ATTEMPTS));
    Client::from_conf(config.build())
}

async fn is_answered(client: &Client, prompt: Prompt) -> bool {
    let message = Message::builder().role(ConversationRole::User).content(ContentBlock::Text(prompt.user));
    let max_tokens = i32::try_from(prompt.max_tokens).unwrap_or(i32::MAX);
    let call = client
        .converse()
        .model_id(MODEL)
        .messages(message.build().expect("a whole message"))
        .set_system(prompt.system.map(|text| vec![SystemContentBlock::Text(text)]))
        .inference_config(InferenceConfiguration::builder().max_tokens(max_tokens).build());
    match call.send().await {
        Ok(_) => true,
        Err(error) => {
            eprintln!("gave up: {}", DisplayErrorContext(&error));
            false
        }
    }
}
