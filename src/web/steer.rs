//! What operators do from the page: the calls that commands make, with the reason that was typed. Decides nothing; whether
//! somebody may is the coordinator's business.

use togl_proto::wire;
use togl_web::view;

use crate::cli::Because;
use crate::problem::Problem;
use crate::remote::{Client, refused};

pub async fn steer_sweep(
    client: &mut Client,
    name: &str,
    act: view::SweepAct,
) -> Result<view::Done, Problem> {
    use view::SweepAct;
    let (sweep, because) = (name.to_owned(), Because::of(act.reason()));
    let said = match act {
        SweepAct::Pause { .. } => {
            client.pause(because.ask(wire::PauseRequest { sweep })).await.map_err(refused)?;
            format!("{name} is paused; what runs goes on")
        }
        SweepAct::Resume { .. } => {
            client.resume(because.ask(wire::ResumeRequest { sweep })).await.map_err(refused)?;
            format!("{name} goes on")
        }
        SweepAct::Retry { .. } => {
            let request = because.ask(wire::RetryRequest { sweep });
            let reply = client.retry(request).await.map_err(refused)?.into_inner();
            format!("{} failed folds of {name} are tried again", reply.folds)
        }
        SweepAct::Cancel { .. } => {
            let request = because.ask(wire::CancelRequest { sweep });
            let reply = client.cancel(request).await.map_err(refused)?.into_inner();
            format!("{name} is cancelled; {} folds stopped, {} results kept", reply.abandoned, reply.finished)
        }
        SweepAct::Archive { .. } => {
            let request = because.ask(wire::ArchiveRequest { sweep });
            let reply = client.archive(request).await.map_err(refused)?.into_inner();
            format!("{name} is archived; {} folds stopped, {} results kept", reply.abandoned, reply.finished)
        }
        SweepAct::Prioritise { priority, .. } => {
            let request = because.ask(wire::PrioritiseRequest { sweep, priority });
            client.prioritise(request).await.map_err(refused)?;
            format!("{name} has priority {priority} now")
        }
    };
    Ok(view::Done { said })
}

pub async fn steer_worker(
    client: &mut Client,
    worker: &str,
    act: view::WorkerAct,
) -> Result<view::Done, Problem> {
    let undo = matches!(act, view::WorkerAct::Undrain { .. });
    let request = wire::DrainRequest { worker: worker.to_owned(), undo };
    client.drain(Because::of(act.reason()).ask(request)).await.map_err(refused)?;
    let said = match undo {
        false => format!("{worker} finishes what it runs and leaves"),
        true => format!("{worker} goes on"),
    };
    Ok(view::Done { said })
}
