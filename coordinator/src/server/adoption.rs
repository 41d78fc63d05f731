//! What a request to adopt results says, as the scheduler takes it. Converts and checks each result; whether it may be taken is
//! decided in the scheduler.

use togl_proto::convert;
use togl_proto::wire;
use togl_scheduler::{Adoption, AdoptionCounts, FromElsewhere};
use togl_sweeps::{CheckedResult, SweepName};
use tonic::Status;

/// Results of one request.
const MOST: usize = 5_000;

/// The results of a request; the first that cannot be read is named.
pub(super) fn adoption(sweep: SweepName, results: Vec<wire::AdoptedResult>) -> Result<Adoption, Status> {
    if results.len() > MOST {
        return Err(Status::invalid_argument(format!("at most {MOST} results can be in one request")));
    }
    let results = results.into_iter().map(from_elsewhere).collect::<Result<_, _>>()?;
    Ok(Adoption { sweep, results })
}

fn from_elsewhere(sent: wire::AdoptedResult) -> Result<FromElsewhere, Status> {
    let fold = convert::fold(sent.fold).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let refuse = |reason: String| Status::invalid_argument(format!("fold {fold}: {reason}"));
    let worker = sent.worker.parse().map_err(|error: togl_sweeps::ids::IdError| refuse(error.to_string()))?;
    let result = sent.result.ok_or_else(|| refuse("the field `result` is missing".to_owned()))?;
    let result = CheckedResult::try_from(result).map_err(|error| refuse(error.to_string()))?;
    Ok(FromElsewhere { fold, worker, result: Box::new(result) })
}

/// What became of them.
pub(super) fn counted(AdoptionCounts { taken, same, replicates }: AdoptionCounts) -> wire::AdoptReply {
    wire::AdoptReply { taken, same, replicates }
}
