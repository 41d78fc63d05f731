//! `togl health`: whether a coordinator serves, in one line and an exit code, for probes of service managers and Kubernetes.

use std::process::ExitCode;

use togl_proto::health::Health as Said;
use togl_proto::own_machine::Served;

use super::VerbOutcome;
use crate::output;
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// Say whether a coordinator serves: exit code 0 if so, 1 if it answers and cannot work, 3 if nobody answers
#[derive(Debug, clap::Args)]
pub struct Health {
    #[command(flatten)]
    target: CoordinatorTarget,
    /// A coordinator of this state directory that waits to take over (`togl serve --standby`) is well, too
    #[arg(long)]
    or_standby: bool,
}

impl Health {
    pub(super) async fn run(self) -> VerbOutcome {
        let waiting = match self.or_standby {
            true => Served::waiting(self.target.state()?.path()),
            false => None,
        };
        match (self.target.health().await, waiting) {
            (Ok(Said::Serving(address)), _) => output::print(&format!("serving at {address}\n"))?,
            (Ok(Said::NotServing(address)), _) => {
                return Err(Problem::negative(format!(
                    "the coordinator at {address} answers, but its driver is stuck or its store is damaged"
                ))
                .hint("its log says which; `togl check` looks at the store"));
            }
            (Err(_), Some(Served { address, pid })) => {
                output::print(&format!("waiting to take over, then at {address} (process {pid})\n"))?;
            }
            (Err(problem), None) => return Err(problem),
        }
        Ok(ExitCode::SUCCESS)
    }
}
