//! `togl-worker deliver`: reports the results in the folder of a worker that will not do it itself, because its host never
//! returns, or has no way to the coordinator. Trains nothing; what is delivered is removed as the worker would have done.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use togl_agent::agent::{Agent, AgentEnd, Habits};
use togl_agent::identity::{WorkerIdentity, unique_worker_id};
use togl_agent::spool::Spool;
use togl_agent::{link, tasks};
use togl_proto::client::ClientAccess;
use tokio::sync::mpsc;

use crate::calling::AgentCaller;
use crate::{Usage, host, version};

/// Reports what a worker left.
#[derive(Debug, clap::Args)]
pub struct Deliver {
    /// The folder of the worker, such as STATE/worker-2, or a copy of it
    folder: PathBuf,
    /// Where the coordinator listens, as HOST:PORT
    address: String,
    #[command(flatten)]
    caller: AgentCaller,
    /// Give up after so many seconds without an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
}

impl Deliver {
    /// Delivers; exit code 1 if something is left.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.spool()?;
        let access = self.caller.access(&self.address)?;
        let spool = Spool::open(&folder)?;
        let before = spool.all().count();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stopped = runtime.block_on(self.deliver(access, spool));
        let (left, rejected) = (reports(&folder), reports(&folder.join("rejected")));
        match stopped {
            Some(AgentEnd::Refused { why, .. }) => anyhow::bail!(Usage::new(why)),
            Some(AgentEnd::Asked | AgentEnd::Idle) => {}
            None => eprintln!("no answer from {} within {} s", self.address, self.patience),
        }
        eprintln!("delivered {} of {before} results", before.saturating_sub(left));
        if rejected > 0 {
            eprintln!("{rejected} were refused for good; they are in {}", folder.join("rejected").display());
        }
        if left > 0 {
            eprintln!(
                "{left} are left in {}: they belong to another store, or wait for an answer",
                folder.display()
            );
        }
        Ok(ExitCode::from(u8::from(left > 0)))
    }

    /// The folder of reports in what was named, which must be there: a new one would be no mistake to anybody.
    fn spool(&self) -> anyhow::Result<PathBuf> {
        let is_spool = |folder: &Path| folder.join("rejected").is_dir();
        let found =
            [self.folder.join("spool"), self.folder.clone()].into_iter().find(|folder| is_spool(folder));
        let named = self.folder.display();
        Ok(found.ok_or_else(|| {
            Usage::new(format!("{named} is not the folder of a worker"))
                .hint("name a folder such as worker-2 in the state directory; it has a folder `spool`")
        })?)
    }

    /// Nothing if nobody answered for too long.
    async fn deliver(&self, access: ClientAccess, spool: Spool) -> Option<AgentEnd> {
        let host = host::name();
        let (worker, code_version) = (unique_worker_id(&host), version::VERSION.to_owned());
        let (allocation, moves_checkpoints) = (host::allocation(), false);
        let (devices, memories) = (vec![], vec![]);
        let identity = WorkerIdentity {
            worker,
            host,
            code_version,
            devices,
            memories,
            allocation,
            moves_checkpoints,
            offers: Vec::new(),
        };
        let habits =
            Habits { grace: Duration::ZERO, idle_exit: None, life: None, tidy: Arc::new(|_| Ok(())) };
        let (link_events, link_inbox) = mpsc::channel(256);
        let address = self.address.clone();
        let connect = move || {
            let (access, address) = (access.clone(), address.clone());
            async move { access.workers(&address).await }
        };
        tasks::spawn("link", link::keep(connect, link_events));
        let (_slots, slot_inbox) = mpsc::channel(1);
        let (_stop, stopped) = mpsc::channel(1);
        let agent = Agent::new(identity, habits, spool, vec![]).run(link_inbox, slot_inbox, stopped);
        tokio::time::timeout(Duration::from_secs(self.patience), agent).await.ok()
    }
}

/// Reports in a folder.
fn reports(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count()
}
