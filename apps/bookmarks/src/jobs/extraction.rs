//! `extraction`: fetches a page, and writes what it says to the bookmark.

use ichido::destination::{Failed, Job};
use ichido_store::message::Note;

use super::{JobPayload, LLM_PROCESSING, close_letter, enqueue, llm_processing_queue, message};
use crate::app::App;
use crate::bookmarks;
use crate::fetch::Fetcher;
use crate::job_error::JobFailure;
use crate::reading;

pub(super) async fn run(app: &App, fetcher: &Fetcher, job: Job<JobPayload>) -> Result<(), Failed> {
    let Job { payload: task, message: this, identity, .. } = job;
    if let Some(dead) = task.replaces {
        // Here, and not where the retry was asked for: that is one transaction, and this is done as often as it takes.
        let note = Note { receipt: Some(this.to_string()), ..Note::default() };
        close_letter(&app.store, dead, &note).await?;
    }
    let url = &task.original_request.url;
    let now = app.store.now().await?;
    let came = fetcher.get(url, now).await.map_err(JobFailure::failed)?;
    // A long page would hold up a thread that others wait for.
    let page = tokio::task::spawn_blocking(move || reading::read(&came)).await?;

    // The page and the job that goes on with it, together or not at all (SPEC D4).
    let key = format!("{LLM_PROCESSING}-{this}");
    let next = JobPayload { replaces: None, ..task.clone() };
    let next = message(llm_processing_queue(), &identity, &key, &next, &app.settings.retry);
    let mut open = app.database.begin().await?;
    let mut connection = open.connection();
    if bookmarks::write_page(&mut connection, (task.bookmark_id, this), url, &page).await? {
        let next = enqueue(&mut connection, &app.store, next).await?;
        bookmarks::set_job(&mut connection, task.bookmark_id, next).await?;
    }
    open.commit().await?;
    app.store.queues().wake(&llm_processing_queue());
    Ok(())
}
