//! `togl import folds` and `togl import store`: results that were trained under another coordinator, for sweeps that are here.
//! Reads them, asks first whether all of them can be taken, and then hands them over. What may be taken is decided by the
//! coordinator; where nobody serves the store, one is started in this process for as long as it takes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use togl_analysis::{FoldFrame, FoldRow};
use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::reading::{Fact, Reading, Wanted};
use togl_coordinator::store::{Readers as _, ResultRow};
use togl_proto::client;
use togl_proto::wire;
use togl_sweeps::{FoldKey, FoldResult, SweepSpec, WorkerId};

use super::steer::Because;
use super::table::explained;
use super::{backup, read_sweep_text};
use crate::embedded::{self, Embedded};
use crate::facts::{Facts as _, Remote, sweep_name, under_its_name};
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::remote::{self, Client, CoordinatorTarget};
use crate::state::StateDir;

/// Results of one request: few enough that others are heard in between.
const TOGETHER: usize = 500;

/// Bytes of one request, about; of a result without its learning curve; and of a line of that.
const BYTES: usize = 1 << 20;
const FIXED: usize = 1_000;
const EPOCH: usize = 60;

/// Take folds that were saved with a table, or by another program, into a sweep that is here
#[derive(Debug, clap::Args)]
pub struct Folds {
    /// Saved folds: .parquet, .arrow, .csv or .ndjson, as `togl table --out` writes them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The sweep that has these folds; submit its file first
    #[arg(long, value_name = "NAME")]
    sweep: String,
    #[command(flatten)]
    how: How,
}

/// Take the results of another store, such as a backup, for the sweeps that are here
#[derive(Debug, clap::Args)]
pub struct FromStore {
    /// A file that `togl backup` made, or sqlite:PATH or postgres://USER@HOST/DATABASE
    #[arg(value_name = "BACKUP")]
    backup: String,
    #[command(flatten)]
    how: How,
}

/// What both have in common.
#[derive(Debug, clap::Args)]
struct How {
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// What became of the results for one sweep.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Taken {
    sweep: String,
    taken: u64,
    same: u64,
    replicates: u64,
}

impl Taken {
    fn add(&mut self, reply: wire::AdoptReply) {
        self.taken += reply.taken;
        self.same += reply.same;
        self.replicates += reply.replicates;
    }

    fn sentence(&self) -> String {
        let Self { sweep, taken, same, replicates } = self;
        let beside = match replicates {
            0 => String::new(),
            some => format!(", {some} with other numbers kept as replicates"),
        };
        format!("{sweep}: {} taken, {same} known already{beside}", output::count(*taken, "result"))
    }
}

impl Folds {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let Self { files, sweep, how } = self;
        let frame = FoldFrame::read_all(&files).map_err(explained)?;
        let taken = with_coordinator(&how.target, async |client| {
            let spec = spec_of(&client, &sweep).await?;
            let rows = frame.read_back(&spec.trials).map_err(explained)?;
            let results: Vec<wire::AdoptedResult> = rows.into_iter().map(of_row).collect();
            let mut hand = Hand { client, because: &how.because, check_only: true };
            let mut taken = BTreeMap::new();
            for check_only in [true, false] {
                hand.check_only = check_only;
                taken.clear();
                for part in results.chunks(TOGETHER) {
                    hand.over(&sweep, part.to_vec(), &mut taken).await?;
                }
            }
            Ok(taken)
        })
        .await?;
        show(taken.into_values().collect(), how.format)?;
        eprintln!(
            "saved folds hold no confusion matrices and no learning curves, so these folds have none here; \
             `togl import store` brings them"
        );
        Ok(())
    }
}

impl FromStore {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let Self { backup, how } = self;
        let there = address(&backup)?;
        let (taken, elsewhere) = with_coordinator(&how.target, async |client| {
            let here = folds_here(&client).await?;
            let mut hand = Hand { client, because: &how.because, check_only: true };
            hand.over_all(&there, &here).await?;
            hand.check_only = false;
            hand.over_all(&there, &here).await
        })
        .await?;
        if taken.is_empty() {
            return Err(Problem::negative(format!("no result in {backup} is of a sweep that is here"))
                .hint("submit the sweep file first, then import again"));
        }
        show(taken.into_values().collect(), how.format)?;
        if elsewhere > 0 {
            eprintln!("left there: {} of folds that no sweep here has", output::count(elsewhere, "result"));
        }
        Ok(())
    }
}

/// A file, or a store by its address.
fn address(text: &str) -> Result<StoreAddress, Problem> {
    let path = Path::new(text);
    match path.exists() {
        true => Ok(path.into()),
        false if text.contains(':') => text.parse().map_err(Problem::usage),
        false => Err(Problem::usage(format!("there is no file {text}"))
            .hint("name a file that `togl backup FILE` made, or a store as sqlite:PATH or postgres://...")),
    }
}

fn show(taken: Vec<Taken>, format: Plain) -> Result<(), Problem> {
    match format {
        Plain::Human => {
            taken.iter().for_each(|taken| eprintln!("{}", taken.sentence()));
            Ok(())
        }
        Plain::Json => output::print(&output::json(&taken)?),
    }
}

fn of_row(row: FoldRow) -> wire::AdoptedResult {
    sent(row.fold, row.worker, row.result)
}

fn sent(fold: FoldKey, worker: String, result: FoldResult) -> wire::AdoptedResult {
    wire::AdoptedResult { fold: Some(fold.into()), worker, result: Some(result.into()) }
}

async fn spec_of(client: &Client, sweep: &str) -> Result<SweepSpec, Problem> {
    let mut text = None;
    let wanted = Wanted { sweep: Some(sweep_name(sweep)?), ..Wanted::default() };
    Remote::new(client.clone())
        .read(wanted, &mut |fact| {
            if let Fact::Sweep(stored) = fact {
                text = Some(stored.yaml);
            }
            Ok(())
        })
        .await?;
    read_sweep_text(&text.unwrap_or_default())
}

/// The folds of all sweeps that are here, each with the first sweep that has it.
async fn folds_here(client: &Client) -> Result<HashMap<FoldKey, String>, Problem> {
    let mut texts = Vec::new();
    Remote::new(client.clone())
        .read(Wanted::default(), &mut |fact| {
            if let Fact::Sweep(stored) = fact {
                texts.push((stored.name.to_string(), stored.yaml));
            }
            Ok(())
        })
        .await?;
    let mut folds = HashMap::new();
    for (name, text) in texts {
        for fold in read_sweep_text(&text)?.folds() {
            folds.entry(fold).or_insert_with(|| name.clone());
        }
    }
    Ok(folds)
}

/// Hands results over, or asks whether they could be.
struct Hand<'a> {
    client: Client,
    because: &'a Because,
    check_only: bool,
}

impl Hand<'_> {
    async fn over(
        &mut self,
        sweep: &str,
        results: Vec<wire::AdoptedResult>,
        taken: &mut BTreeMap<String, Taken>,
    ) -> Result<(), Problem> {
        let request = wire::AdoptRequest { sweep: sweep.to_owned(), results, check_only: self.check_only };
        let reply = self.client.adopt(self.because.ask(request)).await.map_err(remote::refused)?.into_inner();
        let new = || Taken { sweep: sweep.to_owned(), ..Taken::default() };
        taken.entry(sweep.to_owned()).or_insert_with(new).add(reply);
        Ok(())
    }

    /// Every result of a store that is of a fold here, with its learning curve; and how many others there are.
    async fn over_all(
        &mut self,
        there: &StoreAddress,
        here: &HashMap<FoldKey, String>,
    ) -> Result<(BTreeMap<String, Taken>, u64), Problem> {
        let (mut taken, mut elsewhere) = (BTreeMap::new(), 0);
        let (mut seen, mut gathered) = (HashSet::new(), Gathered::default());
        let wanted = Wanted { results: true, curves: true, ..Wanted::default() };
        let reader = there.open_reader().map_err(backup::explain)?;
        let mut reading = Reading::new(reader, wanted).map_err(backup::explain)?;
        while let Some(page) = reading.page().map_err(backup::explain)? {
            for fact in page.into_iter().map(under_its_name) {
                let Fact::Result(row) = fact else { continue };
                if !seen.insert(row.fold) {
                    continue; // several sweeps have it
                }
                match here.get(&row.fold) {
                    Some(sweep) => gathered.add(sweep, *row),
                    None => elsewhere += 1,
                }
            }
            for (sweep, results) in gathered.full(false) {
                self.over(&sweep, results, &mut taken).await?;
            }
        }
        for (sweep, results) in gathered.full(true) {
            self.over(&sweep, results, &mut taken).await?;
        }
        Ok((taken, elsewhere))
    }
}

/// Results on their way, by sweep.
#[derive(Default)]
struct Gathered(BTreeMap<String, (Vec<wire::AdoptedResult>, usize)>);

impl Gathered {
    fn add(&mut self, sweep: &str, row: ResultRow) {
        let (results, bytes) = self.0.entry(sweep.to_owned()).or_default();
        *bytes += FIXED + EPOCH * row.result.history.len();
        results.push(sent(row.fold, WorkerId::to_string(&row.worker), row.result));
    }

    /// What fills requests, or all that is left.
    fn full(&mut self, all: bool) -> Vec<(String, Vec<wire::AdoptedResult>)> {
        let mut requests = Vec::new();
        for (sweep, (results, bytes)) in &mut self.0 {
            if results.is_empty() || !(all || *bytes >= BYTES || results.len() >= TOGETHER) {
                continue;
            }
            // A page may be more than one request, and a result with a long curve much larger than another.
            let each = (results.len() * BYTES / (*bytes).max(1)).clamp(1, TOGETHER);
            while !results.is_empty() {
                let rest = results.split_off(each.min(results.len()));
                requests.push((sweep.clone(), std::mem::replace(results, rest)));
            }
            *bytes = 0;
        }
        requests
    }
}

/// Does something with the coordinator that is meant. Where nobody serves the store of the state directory, one serves it in
/// this process meanwhile, for nobody else.
async fn with_coordinator<T>(
    target: &CoordinatorTarget,
    act: impl AsyncFnOnce(Client) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let state = target.state()?;
    let own = target.coordinator.is_none() && state.has_store();
    if !own || state.served().is_some() {
        match target.connect().await {
            Ok(client) => return act(client).await,
            Err(problem) if own && problem.is_unreachable() => {}
            Err(problem) => return Err(problem),
        }
    }
    in_this_process(&state, act).await
}

async fn in_this_process<T>(
    state: &StateDir,
    act: impl AsyncFnOnce(Client) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let nobody_else =
        |settings: &mut togl_coordinator::service::ServiceSettings| settings.checkpoint_room = 0;
    let Embedded { coordinator, announcement } =
        Embedded::start(state, ([127, 0, 0, 1], 0).into(), nobody_else).await?;
    let (address, token) = (coordinator.address().to_string(), coordinator.tokens().operator.clone());
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let serving = coordinator.run(async move { _ = finished.await }); // an error means that this command is over
    let command = async {
        let outcome = match client::sweeps(&address, &token).await {
            Ok(client) => act(client).await,
            Err(error) => Err(Problem::ours(error)),
        };
        _ = finish.send(()); // it may have ended by itself
        outcome
    };
    let (served, outcome) = tokio::join!(serving, command);
    drop(announcement);
    served.map_err(|error| embedded::explain(error, state))?;
    outcome
}
