//! Each API when it works, and when the model answers badly.

use fake_llm::Script;
use fake_llm::api::Provider;
use serde_json::{Value, json};

use crate::client::{APIS, request_to, script};

#[tokio::test]
async fn same_item_gets_the_same_answer_in_each_api_format() {
    let fake = fake_llm::start(Script::default());
    let mut judgements = vec![];
    for api in APIS {
        let received = request_to(api, "a").send(fake.address()).await;
        assert_eq!(received.status, 200, "{}", received.text);
        let judged: Value = serde_json::from_str(received.reply_text(api)).expect("JSON");
        assert!(
            judged["label"].is_string() && judged["confidence"].is_number() && judged["reason"].is_string()
        );
        judgements.push(judged);
        let (stop, tokens_in, id) = match api {
            Provider::Bedrock => ("end_turn", &received.body["usage"]["inputTokens"], "x-amzn-requestid"),
            Provider::Openai => ("stop", &received.body["usage"]["prompt_tokens"], "x-request-id"),
            Provider::Anthropic => ("end_turn", &received.body["usage"]["input_tokens"], "request-id"),
        };
        assert_eq!(received.stop(api), stop);
        assert_eq!(*tokens_in, 6, "{}", received.text);
        assert!(!received.header(id).is_empty());
    }
    assert!(judgements.iter().all(|judged| *judged == judgements[0]));
    let seen = fake.seen();
    assert_eq!(seen.format_faults, []);
    assert_eq!((seen.all.requests, seen.all.completed, seen.items["a"].counts.completed), (3, 3, 3));
    assert_eq!((seen.concurrency, seen.max_concurrency), (0, 1));
}

#[tokio::test]
async fn model_and_headers_are_recorded_and_secrets_are_not() {
    let fake = fake_llm::start(Script::default());
    let arn = "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fmine/converse";
    for api in APIS {
        let mut ask = request_to(api, "a").header("x-mine", "seen");
        if api == Provider::Bedrock {
            arn.clone_into(&mut ask.path);
        }
        assert_eq!(ask.at("/east").send(fake.address()).await.status, 200);
        let last = fake.seen().last_request.unwrap();
        let model = match api {
            Provider::Bedrock => "arn:aws:bedrock:eu-west-1:1:inference-profile/mine",
            Provider::Openai => "gpt-x",
            Provider::Anthropic => "claude-x",
        };
        assert_eq!((last.model.as_str(), last.api, last.endpoint.as_str()), (model, api, "/east"));
        assert_eq!(last.headers["x-mine"], "seen");
        let secret = if api == Provider::Anthropic { "x-api-key" } else { "authorization" };
        assert_eq!(last.headers[secret], "(redacted)");
    }
}

#[tokio::test]
async fn the_answer_can_be_any_text_for_all_or_for_one_item() {
    let rule = json!({ "do": { "say": "just this" }, "item": "b" });
    let fake = fake_llm::start(script(&json!({ "answer": "{\"sum\": 3}", "rules": [rule] })));
    for api in APIS {
        assert_eq!(request_to(api, "a").send(fake.address()).await.reply_text(api), "{\"sum\": 3}");
        assert_eq!(request_to(api, "b").send(fake.address()).await.reply_text(api), "just this");
    }
}

#[tokio::test]
async fn damaged_answer_has_the_apis_stop_reason_and_is_billed() {
    let answer = r#"{"sum": 3, "text": "long enough to be cut"}"#;
    for (shape, stops) in [
        ("cut_off", ["max_tokens", "length", "max_tokens"]),
        ("prose", ["end_turn", "stop", "end_turn"]),
        ("fence", ["end_turn", "stop", "end_turn"]),
        ("schema_miss", ["end_turn", "stop", "end_turn"]),
    ] {
        let rule = json!({ "do": { "answer": shape } });
        let fake = fake_llm::start(script(&json!({ "answer": answer, "rules": [rule] })));
        for (api, stop) in APIS.into_iter().zip(stops) {
            let received = request_to(api, "a").send(fake.address()).await;
            assert_eq!((received.status, received.stop(api)), (200, stop), "{shape}");
            let reply_text = received.reply_text(api);
            let expected = match shape {
                "cut_off" => {
                    answer.starts_with(reply_text)
                        && !reply_text.is_empty()
                        && reply_text.len() < answer.len()
                }
                "prose" => {
                    reply_text.contains(answer)
                        && !reply_text.starts_with(answer)
                        && !reply_text.ends_with(answer)
                }
                "fence" => reply_text == format!("```json\n{answer}\n```"),
                _ => reply_text == r#"{"unasked":true}"#,
            };
            assert!(expected, "{shape}: {reply_text}");
        }
        assert_eq!(fake.seen().all.completed, 3);
    }
}

#[tokio::test]
async fn filtered_answer_is_marked() {
    let fake = fake_llm::start(script(&json!({ "rules": [{ "do": { "answer": "filtered" } }] })));
    for (api, stop) in APIS.into_iter().zip(["content_filtered", "content_filter", "refusal"]) {
        assert_eq!(request_to(api, "a").send(fake.address()).await.stop(api), stop);
    }
}

#[tokio::test]
async fn requested_json_mode_is_recorded() {
    let schema = json!({ "type": "object", "properties": { "label": { "type": "string" } },
        "required": ["label"], "additionalProperties": false });
    let strict = json!({ "name": "judgement", "strict": true, "schema": schema });
    let in_text = json!({ "name": "judgement", "schema": schema.to_string() });
    let fake = fake_llm::start(Script::default());
    for (api, member, value) in [
        (Provider::Openai, "response_format", json!({ "type": "json_schema", "json_schema": strict })),
        (
            Provider::Anthropic,
            "output_config",
            json!({ "format": { "type": "json_schema", "schema": schema } }),
        ),
        (
            Provider::Bedrock,
            "outputConfig",
            json!({ "textFormat": { "type": "json_schema", "structure": { "jsonSchema": in_text } } }),
        ),
    ] {
        let received = request_to(api, "a").with(member, value).send(fake.address()).await;
        assert_eq!(received.status, 200, "{}", received.text);
        let request_to = fake.seen().last_request.unwrap().asked_json.unwrap();
        assert_eq!((request_to.by.as_str(), request_to.schema.as_ref()), (member, Some(&schema)));
    }
    let without = request_to(Provider::Openai, "a").send(fake.address()).await;
    assert_eq!((without.status, fake.seen().last_request.unwrap().asked_json), (200, None));
}

#[tokio::test]
async fn required_tool_gets_the_answer_as_input() {
    let schema = json!({ "type": "object" });
    let answer = json!({ "sum": 3 });
    let fake = fake_llm::start(script(&json!({ "answer": answer.to_string() })));
    let input = json!({ "json": schema });
    let tools = json!([{ "toolSpec": { "name": "judge", "inputSchema": input } }]);
    let bedrock = json!({ "tools": tools, "toolChoice": { "tool": { "name": "judge" } } });
    let received = request_to(Provider::Bedrock, "a").with("toolConfig", bedrock).send(fake.address()).await;
    assert_eq!(received.body["output"]["message"]["content"][0]["toolUse"]["input"], answer);
    assert_eq!(received.stop(Provider::Bedrock), "tool_use");

    let anthropic = request_to(Provider::Anthropic, "a")
        .with("tools", json!([{ "name": "judge", "input_schema": schema }]))
        .with("tool_choice", json!({ "type": "tool", "name": "judge" }));
    let received = anthropic.send(fake.address()).await;
    assert_eq!(
        (&received.body["content"][0]["type"], &received.body["content"][0]["input"]),
        (&json!("tool_use"), &answer)
    );
    assert_eq!(received.stop(Provider::Anthropic), "tool_use");

    let function = json!({ "name": "judge", "parameters": schema });
    let openai = request_to(Provider::Openai, "a")
        .with("tools", json!([{ "type": "function", "function": function }]))
        .with("tool_choice", json!({ "type": "function", "function": { "name": "judge" } }));
    let received = openai.send(fake.address()).await;
    let call = &received.body["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!((&call["name"], &call["arguments"]), (&json!("judge"), &json!(answer.to_string())));
    assert_eq!(fake.seen().last_request.unwrap().asked_json.unwrap().by, "tools");
}
