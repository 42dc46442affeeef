//! `bookmarks retry-failed`: requeues failed jobs after an operator has fixed the cause.

use bookmarks::{App, Retried, Settings};

use super::{CommandError, LISTEN, require_store};

#[derive(clap::Args)]
pub(super) struct RetryFailed {
    /// Only jobs that failed with this code, such as `model_refused` [default: all retryable jobs]
    #[arg(long, value_name = "CODE")]
    code: Option<String>,

    /// Count the jobs and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl RetryFailed {
    pub(super) async fn run(self, store: String) -> Result<(), CommandError> {
        require_store(&store)?;
        let app = App::open(Settings::new(store, LISTEN.parse()?)).await?;
        let did = if self.dry_run { "would requeue" } else { "requeued" };
        let retried = app.retry_failed(self.code.as_deref(), self.dry_run).await?;
        let Retried { put_back, left } = retried;
        println!("bookmarks: {did} {put_back} of {} failed jobs", put_back + left);
        if 0 < left {
            println!("bookmarks: the others were not changed; list them with `ichido dead list`");
        }
        app.close().await;
        Ok(())
    }
}
