//! Builds a Converse request from a prompt.

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::error::BuildError;
use aws_sdk_bedrockruntime::operation::converse::builders::ConverseFluentBuilder;
use aws_sdk_bedrockruntime::types::{
    ContentBlock, ConversationRole, InferenceConfiguration, JsonSchemaDefinition, Message, OutputConfig,
    OutputFormat, OutputFormatStructure, OutputFormatType, SystemContentBlock,
};
use ichido_llm::models::{AnswerForm, Prompt};

use crate::settings::Forms;

/// Builds the call, or returns why it cannot be built.
pub(crate) fn build(
    client: &Client,
    called: &str,
    prompt: &Prompt,
    forms: Forms,
) -> Result<ConverseFluentBuilder, String> {
    let unbuilt = |error: BuildError| format!("not sent: the request cannot be built: {error}");
    let message = Message::builder()
        .role(ConversationRole::User)
        .content(ContentBlock::Text(prompt.user.clone()))
        .build();
    let system = prompt.system.clone().map(|text| vec![SystemContentBlock::Text(text)]);
    let max_tokens = i32::try_from(prompt.max_tokens).unwrap_or(i32::MAX);
    let form = match (forms, &prompt.form) {
        (Forms::Schema, Some(form)) => output(form).map_err(unbuilt)?,
        (Forms::Prompt, _) | (_, None) => None,
    };
    let call = client.converse().model_id(called).messages(message.map_err(unbuilt)?).set_system(system);
    let bounds = InferenceConfiguration::builder().max_tokens(max_tokens).build();
    Ok(call.inference_config(bounds).set_output_config(form))
}

/// Returns the output format that constrains the model, if Bedrock supports the form.
fn output(form: &AnswerForm) -> Result<Option<OutputConfig>, BuildError> {
    let Some(schema) = form.closed_schema() else {
        return Ok(None);
    };
    let schema = JsonSchemaDefinition::builder().name(form.name()).schema(schema.to_string()).build()?;
    let format = OutputFormat::builder()
        .r#type(OutputFormatType::JsonSchema)
        .structure(OutputFormatStructure::JsonSchema(schema))
        .build()?;
    Ok(Some(OutputConfig::builder().text_format(format).build()))
}
