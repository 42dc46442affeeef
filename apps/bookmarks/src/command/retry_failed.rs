//! `bookmarks retry-failed`: requeues failed jobs after an operator has fixed the cause.

use bookmarks::{App, Retried, Settings};

use super::{CommandError, LISTEN, require_store};

#[derive(clap::Args)]
pub(super) struct RetryFailed {
    /// Those alone that failed with this code, such as `model_refused` [default: all for which a retry can help]
    #[arg(long, value_name = "CODE")]
    code: Option<String>,

    /// Say how many there are, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl RetryFailed {
    pub(super) async fn run(self, store: String) -> Result<(), CommandError> {
        require_store(&store)?;
        let app = App::open(Settings::new(store, LISTEN.parse()?)).await?;
        let did = if self.dry_run { "would be put" } else { "were put" };
        let retried = app.retry_failed(self.code.as_deref(), self.dry_run).await?;
        let Retried { put_back, left } = retried;
        println!("bookmarks: {put_back} of {} failed jobs {did} back into their queues", put_back + left);
        if 0 < left {
            println!("bookmarks: the others are left as they are; `ichido dead list` shows them");
        }
        app.close().await;
        Ok(())
    }
}
