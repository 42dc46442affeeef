//! A request that a provider would not understand is refused in its own format, and listed.

use fake_llm::Script;
use fake_llm::api::Provider;
use serde_json::{Value, json};

use crate::client::{APIS, ReceivedResponse, SIGNED, SentRequest, request_to, until};

/// Sends invalid requests, each with its expected status, the location that is named and a part of the message.
async fn refused(wrong: Vec<(SentRequest, u16, &str, &str)>) -> Vec<ReceivedResponse> {
    let fake = fake_llm::start(Script::default());
    let mut all = vec![];
    for (count, (ask, status, at, reply_text)) in wrong.into_iter().enumerate() {
        let path = ask.path.clone();
        let received = ask.send(fake.address()).await;
        assert_eq!(received.status, status, "{at}: {}", received.text);
        assert!(received.text.contains(reply_text), "{at}: {}", received.text);
        let faults = fake.seen().format_faults;
        assert_eq!(faults.len(), count + 1, "{at}");
        assert_eq!((faults[count].at.as_str(), &faults[count].path), (at, &path), "{:?}", faults[count]);
        all.push(received);
    }
    let seen = fake.seen();
    assert_eq!((seen.all.requests, seen.all.completed, seen.items.len()), (0, 0, 0));
    all
}

fn message(api: Provider, message: &Value) -> SentRequest {
    request_to(api, "a").with("messages", json!([message]))
}

/// A schema that is neither closed nor without bounds.
fn bounded() -> Value {
    json!({ "type": "object", "properties": { "sure": { "type": "number", "maximum": 1 } },
        "required": [], "additionalProperties": false })
}

#[tokio::test]
async fn bedrock_rejects_invalid_requests() {
    let new = || request_to(Provider::Bedrock, "a");
    let unsigned = |from: &str, to: &str| new().header("authorization", &SIGNED.replace(from, to));
    let mut raw_arn = new();
    "/model/arn:aws:bedrock:x/mine/converse".clone_into(&mut raw_arn.path);
    let schema = json!({ "schema": bounded().to_string() });
    let format = json!({ "type": "json_schema", "structure": { "jsonSchema": schema } });
    let tools = json!({ "tools": [{ "toolSpec": { "name": "a", "inputSchema": { "json": {} } } }],
        "toolChoice": { "tool": { "name": "b" } } });
    let two_turns = json!([{ "role": "user", "content": [{ "text": "a" }] },
        { "role": "user", "content": [{ "text": "b" }] }]);
    let valid = "ValidationException";
    let all = refused(vec![
        (new().header("authorization", ""), 403, "authorization", "version 4"),
        (new().header("authorization", "Bearer abc"), 403, "authorization", "version 4"),
        (unsigned("/bedrock/", "/s3/"), 403, "authorization", "correct service: 'bedrock'"),
        (unsigned("/aws4_request", ""), 403, "authorization", "credential"),
        (unsigned("host;", ""), 403, "authorization", "`host` is not signed"),
        (unsigned("=0123", "=wxyz"), 403, "authorization", "64 hexadecimal"),
        (new().header("x-amz-date", "20261116T000000Z"), 403, "x-amz-date", "day"),
        (new().header("content-type", "text/plain"), 415, "content-type", "text/plain"),
        (SentRequest { body: json!("{not json"), ..new() }, 400, "body", "not JSON"),
        (raw_arn, 400, "modelId", "slash"),
        (new().with("maxTokens", json!(5)), 400, "maxTokens", "it is unknown"),
        (new().without("messages"), 400, "messages", "Member must not be null"),
        (new().with("messages", json!([])), 400, "messages", "empty"),
        (new().with("messages", two_turns), 400, "messages.1.role", "alternate"),
        (
            message(Provider::Bedrock, &json!({ "role": "system", "content": [{ "text": "a" }] })),
            400,
            "messages.0.role",
            "system",
        ),
        (
            message(Provider::Bedrock, &json!({ "role": "user", "content": "a" })),
            400,
            "messages.0.content",
            "list",
        ),
        (
            message(
                Provider::Bedrock,
                &json!({ "role": "user", "content": [{ "type": "text", "text": "a" }] }),
            ),
            400,
            "messages.0.content.0.type",
            "it is unknown",
        ),
        (
            message(Provider::Bedrock, &json!({ "role": "user", "content": [{ "text": " " }] })),
            400,
            "messages.0.content.0.text",
            "blank",
        ),
        (
            new().with("inferenceConfig", json!({ "max_tokens": 5 })),
            400,
            "inferenceConfig.max_tokens",
            "it is unknown",
        ),
        (
            new().with("inferenceConfig", json!({ "temperature": 1.5 })),
            400,
            "inferenceConfig.temperature",
            "1.5",
        ),
        (
            new().with("outputConfig", json!({ "textFormat": format })),
            400,
            "outputConfig.textFormat.structure.jsonSchema.schema.properties.sure",
            "maximum",
        ),
        (new().with("toolConfig", tools), 400, "toolConfig.toolChoice.tool.name", "`b`"),
    ])
    .await;
    for received in &all {
        assert!(received.body["message"].is_string() && !received.header("x-amzn-requestid").is_empty());
        assert!(received.header("x-amzn-errortype").contains("Exception:"), "{:?}", received.headers);
    }
    assert!(all.last().is_some_and(|received| received.header("x-amzn-errortype").starts_with(valid)));
}

#[tokio::test]
async fn openai_rejects_invalid_requests() {
    let new = || request_to(Provider::Openai, "a");
    let schema = json!({ "name": "a", "strict": true, "schema": bounded() });
    let strict = json!({ "type": "json_schema", "json_schema": schema });
    let unnamed = json!({ "type": "json_schema", "json_schema": { "schema": {} } });
    let misnamed = json!({ "type": "json_schema", "json_schema": { "name": "a b", "schema": {} } });
    let two_limits = new().with("max_tokens", json!(5)).with("max_completion_tokens", json!(5));
    let all = refused(vec![
        (new().header("authorization", ""), 401, "authorization", "bearer"),
        (new().header("authorization", "Basic abc"), 401, "authorization", "bearer"),
        (new().header("content-type", ""), 400, "content-type", "application/json"),
        (SentRequest { body: json!("{not json"), ..new() }, 400, "body", "not JSON"),
        (SentRequest { body: json!([]), ..new() }, 400, "", "not an object"),
        (new().with("system", json!("a")), 400, "system", "unknown_parameter"),
        (new().without("model"), 400, "model", "missing_required_parameter"),
        (new().without("messages"), 400, "messages", "Missing required parameter: 'messages'"),
        (new().with("model", json!(5)), 400, "model", "invalid_type"),
        (new().with("temperature", json!(2.5)), 400, "temperature", "invalid_value"),
        (new().with("max_tokens", json!(0)), 400, "max_tokens", "less than 1"),
        (two_limits, 400, "max_tokens", "max_completion_tokens"),
        (new().with("stream", json!(true)), 400, "stream", "streaming"),
        (
            message(Provider::Openai, &json!({ "role": "model", "content": "a" })),
            400,
            "messages.0.role",
            "messages[0].role",
        ),
        (
            message(Provider::Openai, &json!({ "role": "user" })),
            400,
            "messages.0.content",
            "messages[0].content",
        ),
        (
            message(Provider::Openai, &json!({ "role": "user", "content": [{ "text": "a" }] })),
            400,
            "messages.0.content.0.type",
            "missing_required_parameter",
        ),
        (new().with("response_format", json!({ "type": "json" })), 400, "response_format.type", "`json`"),
        (new().with("response_format", unnamed), 400, "response_format.json_schema.name", "Missing"),
        (new().with("response_format", misnamed), 400, "response_format.json_schema.name", "letters"),
        (new().with("response_format", strict), 400, "response_format.json_schema.schema", "lacks `sure`"),
        (new().with("response_format", json!({ "type": "json_object" })), 400, "messages", "the word json"),
        (new().with("tool_choice", json!("required")), 400, "tool_choice", "required"),
    ])
    .await;
    for received in all {
        let error = &received.body["error"];
        assert_eq!(error["type"], "invalid_request_error", "{}", received.text);
        assert!(error["message"].is_string() && error.get("param").is_some() && error.get("code").is_some());
    }
}

#[tokio::test]
async fn anthropic_rejects_invalid_requests() {
    let new = || request_to(Provider::Anthropic, "a");
    let format = |schema: Value| json!({ "format": { "type": "json_schema", "schema": schema } });
    let open = json!({ "type": "object", "properties": {} });
    let begun = json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": "{" }]);
    let tool = json!([{ "name": "a", "input_schema": { "type": "object" } }]);
    let all = refused(vec![
        (new().header("x-api-key", ""), 401, "x-api-key", "authentication_error"),
        (new().header("anthropic-version", ""), 400, "anthropic-version", "Field required"),
        (new().header("anthropic-version", "v1"), 400, "anthropic-version", "`v1`"),
        (new().header("content-type", "text/plain"), 400, "content-type", "application/json"),
        (SentRequest { body: json!("{not json"), ..new() }, 400, "body", "not JSON"),
        (new().without("max_tokens"), 400, "max_tokens", "max_tokens: Field required"),
        (new().with("max_tokens", json!(0)), 400, "max_tokens", "less than 1"),
        (new().without("model"), 400, "model", "model: Field required"),
        (new().without("messages"), 400, "messages", "messages: Field required"),
        (new().with("response_format", json!({})), 400, "response_format", "Extra inputs are not permitted"),
        (new().with("output_format", json!({})), 400, "output_format", "Extra inputs are not permitted"),
        (new().with("temperature", json!(1.5)), 400, "temperature", "1.5"),
        (
            new().header("anthropic-version", "2026-10-21").with("temperature", json!(1)),
            400,
            "temperature",
            "Extra inputs are not permitted",
        ),
        (new().with("stream", json!(true)), 400, "stream", "streaming"),
        (new().with("messages", begun), 400, "messages.1.role", "end with a user message"),
        (
            message(Provider::Anthropic, &json!({ "role": "system", "content": "a" })),
            400,
            "messages.0.role",
            "system",
        ),
        (
            message(Provider::Anthropic, &json!({ "role": "assistant", "content": "a" })),
            400,
            "messages.0.role",
            "first message",
        ),
        (
            message(Provider::Anthropic, &json!({ "role": "user", "content": "" })),
            400,
            "messages.0.content",
            "empty",
        ),
        (
            message(Provider::Anthropic, &json!({ "role": "user", "content": [{ "text": "a" }] })),
            400,
            "messages.0.content.0.type",
            "Field required",
        ),
        (new().with("system", json!(5)), 400, "system", "not a list"),
        (
            new().with("output_config", format(bounded())),
            400,
            "output_config.format.schema.properties.sure",
            "maximum",
        ),
        (
            new().with("output_config", format(open)),
            400,
            "output_config.format.schema",
            "additionalProperties",
        ),
        (new().with("tools", json!([{ "name": "a" }])), 400, "tools.0.input_schema.type", "object"),
        (
            new().with("tools", tool).with("tool_choice", json!({ "type": "tool", "name": "b" })),
            400,
            "tool_choice.name",
            "`b`",
        ),
    ])
    .await;
    for received in all {
        assert_eq!(received.body["type"], "error");
        assert_eq!(received.body["request_id"], received.header("request-id"));
        let kind = if received.status == 401 { "authentication_error" } else { "invalid_request_error" };
        assert_eq!(received.body["error"]["type"], kind);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_recorded() {
    let elsewhere = SentRequest { path: "/v1/completions".to_owned(), ..request_to(Provider::Openai, "a") };
    let mut wrong = vec![(elsewhere, 404, "path", "does not exist")];
    for api in APIS {
        wrong.push((SentRequest { method: "PUT", ..request_to(api, "a") }, 400, "method", "PUT"));
    }
    refused(wrong).await;
}

#[tokio::test]
async fn only_too_long_requests_are_recorded_not_cut_ones() {
    let fake = fake_llm::start(Script::default());
    let mut broken_off = request_to(Provider::Openai, "a").header("content-length", "99999");
    broken_off.body = json!("{");
    drop(broken_off.send_only(fake.address()).await);
    let long = "a".repeat(9 * 1024 * 1024);
    // Whether the client receives it depends on how much it has sent.
    let _: Result<ReceivedResponse, hyper::Error> =
        request_to(Provider::Openai, &long).try_send(fake.address()).await;
    until(&fake, "it is listed", |seen| !seen.format_faults.is_empty()).await;
    let faults = fake.seen().format_faults;
    assert_eq!((faults.len(), faults[0].at.as_str()), (1, "body"), "{faults:?}");
    assert!(faults[0].why.contains("8388608"), "{faults:?}");
    assert_eq!(fake.seen().all.requests, 0);
}

#[tokio::test]
async fn every_valid_request_is_accepted() {
    let fake = fake_llm::start(Script::default());
    let turns = |block: fn(&str) -> Value| {
        let turn = |role: &str, text: &str| json!({ "role": role, "content": [block(text)] });
        json!([turn("user", "item-a"), turn("assistant", "{}"), turn("user", "again")])
    };
    let bedrock = request_to(Provider::Bedrock, "a")
        .with("messages", turns(|text| json!({ "text": text })))
        .with("system", json!([{ "text": "You judge." }]))
        .with(
            "inferenceConfig",
            json!({ "maxTokens": 9, "temperature": 0, "topP": 1, "stopSequences": ["x"] }),
        )
        .with("requestMetadata", json!({ "run": "1" }));
    let openai = request_to(Provider::Openai, "a")
        .with("messages", turns(|text| json!({ "type": "text", "text": text })))
        .with("max_completion_tokens", json!(9))
        .with("temperature", json!(0))
        .with("seed", json!(7))
        .with("user", json!("me"))
        .with("stream", json!(false));
    let anthropic = request_to(Provider::Anthropic, "a")
        .with("messages", turns(|text| json!({ "type": "text", "text": text })))
        .with(
            "system",
            json!([{ "type": "text", "text": "You judge.", "cache_control": { "type": "ephemeral" } }]),
        )
        .with("max_tokens", json!(9))
        .with("output_config", json!({ "effort": "low" }))
        .with("metadata", json!({ "user_id": "me" }));
    let newest = anthropic
        .clone()
        .header("x-api-key", "")
        .header("authorization", "Bearer sk-secret")
        .header("anthropic-version", "2026-10-21");
    let anthropic = anthropic.with("temperature", json!(0));
    for ask in [bedrock, openai, anthropic, newest] {
        let received = ask.send(fake.address()).await;
        assert_eq!(received.status, 200, "{}", received.text);
        assert_eq!(fake.seen().last_request.and_then(|last| last.max_tokens), Some(9));
    }
    assert_eq!(fake.seen().format_faults, []);
    assert_eq!(fake.seen().items["a"].counts.completed, 4);
}
