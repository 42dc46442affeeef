//! A prompt for a model.

use std::sync::Arc;

use super::AnswerForm;

/// A prompt for a model.
#[derive(Clone)]
pub struct Prompt {
    /// The system prompt.
    pub system: Option<String>,
    /// The question.
    pub user: String,
    /// Maximum number of tokens of the answer.
    pub max_tokens: u32,
    /// The JSON that the model must answer with; it is sent where the API supports it.
    pub form: Option<Arc<AnswerForm>>,
}

ichido_core::debug_only! {
    /// Prompts stay out of logs.
    // SPEC B8.
    Prompt as prompt {
        system_bytes: prompt.system.as_ref().map(String::len),
        user_bytes: prompt.user.len(),
        max_tokens,
        form,
    }
}

impl Prompt {
    /// Estimates the number of tokens of the prompt.
    ///
    /// Four bytes of English are one token. Most other scripts have fewer tokens per byte, so this is rather too many
    /// for them.
    pub fn tokens(&self) -> u64 {
        const BYTES_PER_TOKEN: u64 = 4;
        let bytes = self.user.len() + self.system.as_ref().map_or(0, String::len);
        (bytes as u64).div_ceil(BYTES_PER_TOKEN)
    }

    /// Estimates the maximum tokens of a call: the prompt and the longest answer.
    pub fn max_tokens(&self) -> u64 {
        self.tokens().saturating_add(u64::from(self.max_tokens))
    }
}
