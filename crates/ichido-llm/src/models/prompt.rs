//! What a model is asked.

use std::sync::Arc;

use super::Form;

/// What a model is asked.
#[derive(Clone)]
pub struct Prompt {
    /// How it is to behave.
    pub system: Option<String>,
    /// What it is asked.
    pub user: String,
    /// The most tokens of its answer.
    pub max_tokens: u32,
    /// The JSON that it is to answer with; it is told so where its API can be told.
    pub form: Option<Arc<Form>>,
}

ichido_core::debug_only! {
    /// The words stay out of logs (SPEC B8).
    Prompt as prompt {
        system_bytes: prompt.system.as_ref().map(String::len),
        user_bytes: prompt.user.len(),
        max_tokens,
        form,
    }
}

impl Prompt {
    /// About how many tokens it is: four bytes of English are one, of most other writing fewer, so that this is rather too many for those.
    pub fn tokens(&self) -> u64 {
        const BYTES_PER_TOKEN: u64 = 4;
        let bytes = self.user.len() + self.system.as_ref().map_or(0, String::len);
        (bytes as u64).div_ceil(BYTES_PER_TOKEN)
    }

    /// About how many tokens a call may take: of the prompt, and the longest answer.
    pub fn tokens_max(&self) -> u64 {
        self.tokens().saturating_add(u64::from(self.max_tokens))
    }
}
