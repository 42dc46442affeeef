//! The causes of failure groups, to name a group by its error instead of its id.

use std::collections::HashMap;

use ichido_core::text::bounded;

use super::super::failure_groups::{FailureGroup, FailureGroupDetail, FailureGroups};
use super::Dashboard;
use super::bulk_plan::BulkPlan;
use super::bulk_texts::Texts as BulkTexts;
use super::message_texts::Fact;
use super::shell::{PageRefusal, Visitor};

/// Maximum groups that a list of operations can name; the others are named by the first digits of their id.
const MAX_NAMED: u32 = 100;
/// Maximum characters of a cause.
const MAX_CAUSE_CHARS: usize = 120;

/// Causes by the group's id.
pub(super) type GroupNames = HashMap<String, String>;

impl Dashboard {
    /// Returns the causes of the groups that need a person most, with one read.
    pub(super) async fn group_names(&self, visitor: &Visitor) -> Result<GroupNames, PageRefusal> {
        let target = format!("/v1/failure-groups?limit={MAX_NAMED}");
        let found: FailureGroups = self.read(visitor.caller()?, &target).await?;
        Ok(found.failure_groups.iter().map(name).collect())
    }

    /// Returns what a plan is about, in words.
    pub(super) async fn scope(&self, visitor: &Visitor, plan: &BulkPlan) -> Result<Vec<Fact>, PageRefusal> {
        let mut names = GroupNames::default();
        if let Some(group) = plan.get("group") {
            let target = format!("/v1/failure-groups/{group}");
            // A group without messages is deleted after a while.
            let found: Option<FailureGroupDetail> = self.read(visitor.caller()?, &target).await.ok();
            names.extend(found.map(|found| name(&found.group)));
        }
        Ok(plan.scope(visitor.t(), BulkTexts::of(visitor.language), &names))
    }
}

fn name(group: &FailureGroup) -> (String, String) {
    (group.id.to_string(), cause(group.code.as_deref(), &group.template))
}

/// Returns a cause in one line: the error's code and text.
pub(super) fn cause(code: Option<&str>, text: &str) -> String {
    bounded([code.unwrap_or_default(), text].join(" ").trim(), MAX_CAUSE_CHARS)
}
