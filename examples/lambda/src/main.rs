//! An AWS Lambda function that judges articles with a model on Amazon Bedrock.
//!
//! Guarantee: an event that is a list of articles gets one result for each, in order, before Lambda's deadline. An article
//! that could not be judged by then has a fallback with its reason.
//!
//! Start at `judging`; `runtime` is the protocol of Lambda, and `settings` reads the environment.
// Spec: B5, B9, B12.

mod judging;
mod runtime;
mod settings;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use ichido_http::clock;

use judging::Judging;
use runtime::RuntimeApi;

/// The variable with the address of the runtime API, which Lambda sets.
const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Err(why) = serve().await;
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// Handles one invocation after the other; Lambda starts another process after an error.
async fn serve() -> Result<std::convert::Infallible, String> {
    let address = std::env::var(RUNTIME_API)
        .map_err(|_| format!("{RUNTIME_API} is not set; this program runs in AWS Lambda only"))?;
    let api = RuntimeApi::new(&address)?;
    let judging = match settings::judging(&|name| std::env::var(name).ok()).await {
        Ok(judging) => judging,
        Err(faults) => {
            api.fail_init(&faults.to_string()).await?;
            return Err(faults.to_string());
        }
    };
    loop {
        handle_one(&api, &judging).await?;
    }
}

/// Waits for an invocation and reports its results, or why there are none.
async fn handle_one(api: &RuntimeApi, judging: &Judging) -> Result<(), String> {
    let invocation = api.next().await?;
    match judging.run(&invocation.event, invocation.deadline.since(clock::now())).await {
        Ok(judged) => {
            // CloudWatch makes metrics of this line.
            println!("{}", judged.metrics(clock::now()));
            api.respond(&invocation.id, &judged.results).await
        }
        Err(why) => api.fail(&invocation.id, &why).await,
    }
}
