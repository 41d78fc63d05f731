//! `togl run FILE`: everything on this machine. An embedded coordinator, local workers that are started again
//! when they die, progress, and the table at the end. What was finished before is not trained again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use togl_coordinator::private::OwnerOnly;
use togl_proto::client;
use togl_sweeps::SweepSpec;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::sources::{Sources, SweepSource};
use super::steer::Because;
use super::submit::Consent;
use super::{VerbOutcome, data, serve, status, submit, table};
use crate::embedded::{self, Embedded};
use crate::facts::{self, Depth, Facts as _, Remote};
use crate::local::{self, LocalWorker};
use crate::output;
use crate::problem::{self, Problem};
use crate::progress::{self, Progress};
use crate::remote::{Client, ListedSweep, SweepStatus};
use crate::state::StateDir;
use crate::web::{self, Page};

/// Run a sweep file on this machine
#[derive(Debug, clap::Args)]
pub struct Run {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    consent: Consent,
    /// Folds to train at the same time [default: one per GPU, or one per CPU core]
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Device to train on: cpu, cuda, cuda:N or mps [default: CUDA where it works, else CPU]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Train only with what nobody else needs: lowest priority, and a pause while others use this machine
    #[arg(long)]
    background: bool,
    /// Show the page of `togl web` meanwhile, at this address of this machine [default: 127.0.0.1:7448]
    #[arg(long, value_name = "IP:PORT", num_args = 0..=1, require_equals = true, default_missing_value = web::USUAL)]
    web: Option<String>,
    /// Where the table is written [default: tables/NAME in the state directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
    /// The store: sqlite:PATH, postgres://USER@HOST/DATABASE or memory: [default: a file in the state directory]
    #[arg(long, value_name = "ADDRESS", env = "TOGL_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Where data sets are
    #[arg(long, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
}

impl Run {
    pub(super) async fn run(self) -> VerbOutcome {
        let sources = self.sources.read()?;
        for source in &sources {
            check_datasets(&source.spec, self.data_dir.clone())?;
        }
        let program = local::worker_program()?;
        let listener = web::bind_if(self.web.as_deref()).await?;
        let state = StateDir::resolve(self.state.clone())?.with_store(self.store.as_deref())?;
        let Embedded { coordinator, announcement } =
            Embedded::start(&state, ([127, 0, 0, 1], 0).into(), |settings| {
                settings.checkpoint_room = 0; // its only worker has them already
                settings.programs = true; // whoever runs it here could run the program too
            })
            .await?;
        let coordinator_address = coordinator.address();
        let address = coordinator_address.to_string();
        let tokens = coordinator.tokens().clone();
        let programs = sources.iter().any(|source| source.spec.program.is_some());
        let worker = self.worker(program, (address.clone(), tokens.worker.clone()), &state, programs);
        let (finish, mut finished) = watch::channel(false);
        let serving = coordinator.run(async move {
            let _ = finished.wait_for(|done| *done).await; // an error means that this command is over
        });
        let command = async {
            let mut client = client::sweeps(&address, &tokens.operator).await.map_err(Problem::ours)?;
            let outcome = tokio::select! {
                outcome = self.carry_out_all(&mut client, sources, worker, &state) => outcome,
                never = self.shown(&state, coordinator_address, listener) => match never {},
            };
            drop(client);
            let _ = finish.send(true);
            outcome
        };
        let (served, outcome) = tokio::join!(serving, command);
        drop(announcement);
        served.map_err(|error| embedded::explain(error, &state))?;
        outcome
    }

    fn worker(
        &self,
        program: PathBuf,
        (address, token): (String, String),
        state: &StateDir,
        programs: bool,
    ) -> LocalWorker {
        LocalWorker {
            program,
            address,
            token,
            slots: self.slots,
            device: self.device.clone(),
            background: self.background,
            state: state.path().to_owned(),
            data_dir: self.data_dir.clone(),
            programs,
        }
    }

    /// Shows the page, if one is wanted, for as long as something is trained.
    async fn shown(
        &self,
        state: &StateDir,
        at: SocketAddr,
        listener: Option<TcpListener>,
    ) -> std::convert::Infallible {
        if let Some(listener) = listener {
            let served = async {
                let page = Page::open(web::own(state, at), &listener, false).await?;
                let again = self.state_option();
                progress::say(&format!("{}; afterwards: `togl serve --web{again}`", page.sentence()));
                page.serve(listener, std::future::pending()).await
            };
            if let Err(problem) = served.await {
                progress::say(&format!("the page is not served: {}", problem.in_one_line()));
            }
        }
        std::future::pending().await
    }

    /// One sweep after the other; the first that cannot be carried out ends the command.
    async fn carry_out_all(
        &self,
        client: &mut Client,
        sources: Vec<SweepSource>,
        worker: LocalWorker,
        state: &StateDir,
    ) -> VerbOutcome {
        let mut worst = ExitCode::from(problem::DONE);
        self.say_others(client, &sources).await?;
        for source in sources {
            self.consent.ask(client, &source.yaml).await?;
            let ended = self.carry_out(client, source, worker.clone(), state).await?;
            if ended != ExitCode::from(problem::DONE) {
                worst = ended;
            }
        }
        Ok(worst)
    }

    /// The state directory may hold more than was asked for now: what is left of other sweeps is trained as well.
    async fn say_others(&self, client: &Client, sources: &[SweepSource]) -> Result<(), Problem> {
        let is_meant =
            |sweep: &ListedSweep| sources.iter().any(|source| source.spec.name.as_str() == sweep.name);
        let sweeps = Remote::new(client.clone()).sweeps(false).await?;
        for ListedSweep { name, pending, .. } in
            sweeps.into_iter().filter(|sweep| sweep.state == "active" && !is_meant(sweep))
        {
            let (folds, state) = (output::count(pending, "fold"), self.state_option());
            eprintln!(
                "{name}: {folds} left from before, trained beside it; `togl cancel {name}{state}` ends that"
            );
        }
        Ok(())
    }

    async fn carry_out(
        &self,
        client: &mut Client,
        source: SweepSource,
        worker: LocalWorker,
        state: &StateDir,
    ) -> VerbOutcome {
        let submitted = submit::submit(client, source, &Because::default()).await?;
        let sweep = submitted.sweep.as_str();
        eprintln!("{}", submitted.sentence());
        let last = match submitted.done == submitted.folds {
            true => None,
            false => Some(self.train(client, sweep, worker).await?),
        };
        let collected = facts::collected(&mut Remote::new(client.clone()), sweep, Depth::Curves).await?;
        let made = table::make(&collected)?;
        output::styled(&togl_analysis::render::terminal(&made, output::colour()))?;
        let (folder, _private) = match &self.out {
            Some(folder) => (folder.clone(), None),
            None => (state.tables(sweep)?, Some(OwnerOnly::begin())),
        };
        table::write(&folder, sweep, &collected.frame, &made)?;
        table::write_figures(&folder, sweep, &collected)?;
        let Some(last) = last else { return Ok(ExitCode::from(problem::DONE)) };
        eprint!("{}", status::failures(&last, &self.state_option()));
        Ok(ExitCode::from(if last.sweep.failed > 0 { problem::NEGATIVE } else { problem::DONE }))
    }

    /// Trains what is missing; Ctrl-C stops the trainers and keeps what is finished.
    async fn train(
        &self,
        client: &mut Client,
        sweep: &str,
        worker: LocalWorker,
    ) -> Result<SweepStatus, Problem> {
        let (stop, told) = watch::channel(false);
        let mut progress = Progress::start();
        let keep = worker.keep(told, |text| progress::say(&text));
        tokio::pin!(keep);
        let mut away = None; // it lives in this process
        // So does the worker, nearly: before it has joined nobody has to start one.
        let mut show = |status: &SweepStatus| {
            if !status.standstill.starts_with("no worker is connected") {
                progress.show(status);
            }
        };
        let outcome = tokio::select! {
            watched = status::until_over(client, sweep, &mut show, &mut away) => watched,
            () = serve::interrupted() => Err(self.interrupted()),
            gave_up = &mut keep => {
                return Err(gave_up.err().unwrap_or_else(|| Problem::ours("the worker ended by itself")));
            }
        };
        match &outcome {
            Err(_) => progress.leave(),
            Ok(_) => drop(progress),
        }
        let _ = stop.send(true);
        let _ = keep.await; // how the worker takes its leave does not matter any more
        outcome
    }

    /// The option that finds the same state again, as typed.
    fn state_option(&self) -> String {
        self.state.as_ref().map_or_else(String::new, |folder| format!(" --state {}", folder.display()))
    }

    fn interrupted(&self) -> Problem {
        let state = self.state_option();
        Problem::interrupted("trainers stopped; finished folds are kept")
            .hint(format!("go on with `togl run {}{state}`", self.sources.typed()))
    }
}

/// A data set that does not exist should not wait for a worker to say so.
fn check_datasets(spec: &SweepSpec, data_dir: Option<PathBuf>) -> Result<(), Problem> {
    if spec.program.is_some() {
        return Ok(()); // it may know data that we do not; splits of ours are checked by the worker
    }
    data::check_splits(spec, data_dir.clone())?;
    data::check_names(&spec.datasets(), data_dir)
}
