//! The one source of the page: the sweeps that somebody looks at, each followed once for all tabs and let go when nobody has
//! asked for ten minutes, and what is asked for now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use togl_proto::wire;
use togl_sweeps::SweepName;
use togl_web::source::{Answer, FigureAsked, FoldsAsked, TableAsked, TableForm};
use togl_web::{Source, Trouble, view};
use tokio::sync::Mutex as Turns;

use super::{asked, compare, steer, views, worker};
use crate::clock;
use crate::facts::{self, Facts as _, KnownWorkers};
use crate::live::{CoordinatorLink, LiveSweep, Pace, trouble};
use crate::problem::Problem;
use crate::remote::{self, Client, CoordinatorTarget};

/// The overview is asked for at most this often, however many tabs there are.
const FRESH: Duration = Duration::from_millis(400);

/// A sweep that nobody has asked for since is let go.
const FORGOTTEN: Duration = Duration::from_secs(10 * 60);

/// Sweeps that are followed at once; the one that was looked at longest ago makes room.
const MOST: usize = 8;

/// Tables of other rows or columns that are kept.
const MOST_CHOSEN: usize = 16;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one step, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A table that was wanted otherwise.
struct Chosen {
    name: SweepName,
    asked: TableAsked,
    table: view::TableOnPage,
}

/// The source of the page.
pub struct Live {
    connection: Arc<CoordinatorLink>,
    overview: Turns<Option<(Instant, view::Overview)>>,
    pace: Mutex<Pace>,
    /// Tables that somebody wanted otherwise than their sweep says, as they were made last.
    chosen: Turns<Vec<Chosen>>,
    sweeps: Mutex<HashMap<SweepName, (Instant, Arc<LiveSweep>)>>,
}

impl Live {
    /// A source with a connection.
    pub fn new(target: CoordinatorTarget, client: Client) -> Result<Self, Problem> {
        let connection = Arc::new(CoordinatorLink::new(target, client)?);
        Ok(Self {
            connection,
            overview: Turns::default(),
            pace: Mutex::default(),
            chosen: Turns::default(),
            sweeps: Mutex::default(),
        })
    }

    /// The sweep of this name, followed from now on if it was not.
    fn live(&self, name: &str) -> Answer<(SweepName, Arc<LiveSweep>)> {
        let name: SweepName =
            name.parse().map_err(|error: togl_sweeps::ids::IdError| Trouble::Bad(error.to_string()))?;
        let now = clock::now();
        let mut sweeps = lock(&self.sweeps);
        sweeps.retain(|_, (used, _)| now.duration_since(*used) < FORGOTTEN);
        if let Some((used, sweep)) = sweeps.get_mut(&name) {
            *used = now;
            return Ok((name, sweep.clone()));
        }
        if sweeps.len() >= MOST
            && let Some(oldest) =
                sweeps.iter().min_by_key(|(_, (used, _))| *used).map(|(name, _)| name.clone())
        {
            sweeps.remove(&oldest);
        }
        let sweep = LiveSweep::follow(self.connection.clone(), name.clone());
        sweeps.insert(name.clone(), (now, sweep.clone()));
        Ok((name, sweep))
    }

    async fn look_around(&self) -> Answer<view::Overview> {
        let mut remote = self.connection.facts().await?;
        let seen = async {
            let sweeps = remote.sweeps(false).await?;
            let KnownWorkers::Here(workers) = remote.workers().await? else {
                return Err(Problem::ours("the coordinator told of workers of the past"));
            };
            let mut client = self.connection.client().await?;
            let disputes =
                client.list_disputes(wire::ListDisputesRequest {}).await.map_err(remote::refused)?;
            let disputes = disputes.into_inner().disputes.into_iter().map(|dispute| dispute.data).collect();
            let mut pace = lock(&self.pace);
            pace.note(clock::running(), &sweeps);
            Ok(views::overview(sweeps, workers, disputes, &pace))
        };
        let seen = seen.await;
        self.connection.told(seen)
    }
}

impl Source for Live {
    async fn about(&self) -> view::AboutPage {
        view::AboutPage {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            coordinator: self.connection.address().to_owned(),
            away_since: self.connection.away_since().unwrap_or_default(),
        }
    }

    async fn overview(&self) -> Answer<view::Overview> {
        let mut known = self.overview.lock().await;
        if let Some((at, overview)) = known.as_ref()
            && clock::now().duration_since(*at) < FRESH
        {
            return Ok(overview.clone());
        }
        match (self.look_around().await, known.as_ref()) {
            (Ok(overview), _) => {
                *known = Some((clock::now(), overview.clone()));
                Ok(overview)
            }
            (Err(Trouble::Away(_)), Some((_, last))) => Ok(last.clone()), // `about` says how old it is
            (Err(trouble), _) => Err(trouble),
        }
    }

    async fn sweep(&self, name: &str) -> Answer<view::SweepNow> {
        let (_, sweep) = self.live(name)?;
        let of = |planned: Arc<crate::live::Planned>| {
            let varying = planned.spec.varying().iter().map(|setting| setting.name.to_owned()).collect();
            (varying, planned.spec.scale().clone())
        };
        let (varying, scale) = sweep.planned().map(of).unwrap_or_default();
        let status = sweep.now().await?;
        let left = sweep.time_left(&status);
        Ok(views::sweep_now(status, varying, &scale, left, &lock(&self.pace)))
    }

    async fn table_version(&self, name: &str) -> Answer<u64> {
        Ok(self.live(name)?.1.version().await)
    }

    async fn table(&self, name: &str, asked: TableAsked) -> Answer<view::TableOnPage> {
        let (name, sweep) = self.live(name)?;
        let made = sweep.made().await?;
        if asked == TableAsked::default() {
            return Ok(views::made(&made));
        }
        let mut chosen = self.chosen.lock().await;
        let known = chosen.iter().position(|one| one.name == name && one.asked == asked);
        if let Some(known) = known {
            let one = chosen.remove(known);
            if one.table.version == made.version {
                let table = one.table.clone();
                chosen.push(one);
                return Ok(table);
            }
        }
        let table = asked::table(made, asked.clone()).await?;
        if chosen.len() >= MOST_CHOSEN {
            chosen.remove(0); // the one that nobody has asked for since
        }
        chosen.push(Chosen { name, asked, table: table.clone() });
        Ok(table)
    }

    async fn table_as(&self, name: &str, asked: TableAsked, form: TableForm) -> Answer<String> {
        let made = self.live(name)?.1.made().await?;
        asked::table_as(made, asked, form).await
    }

    async fn folds(&self, name: &str, asked: FoldsAsked) -> Answer<view::FoldsOnPage> {
        let wanted = asked::folds_wanted(name, &asked)?;
        let mut remote = self.connection.facts().await?;
        self.connection.told(asked::folds(&mut remote, wanted, asked.from).await)
    }

    async fn failures(&self, name: &str) -> Answer<view::Failures> {
        let mut remote = self.connection.facts().await?;
        self.connection.told(asked::failures(&mut remote, name).await)
    }

    async fn acts(&self, sweep: Option<&str>) -> Answer<view::Acts> {
        let mut remote = self.connection.facts().await?;
        self.connection.told(asked::acts(&mut remote, sweep).await)
    }

    async fn figure(&self, name: &str, figure: FigureAsked) -> Answer<String> {
        let (name, sweep) = self.live(name)?;
        let made = sweep.made().await?;
        let drawn = match figure {
            FigureAsked::Against { setting } => asked::against(made, setting).await,
            FigureAsked::Timeline => asked::timeline(&name, made).await,
            FigureAsked::Curves => {
                let mut remote = self.connection.facts().await?;
                asked::curves(&mut remote, &name, made).await
            }
        };
        self.connection.told(drawn)
    }

    async fn curves(&self, name: &str) -> Answer<view::CurvesNow> {
        let (name, sweep) = self.live(name)?;
        let made = sweep.made().await?;
        let client = self.connection.client().await;
        let (mut client, mut remote) = (self.connection.told(client)?, self.connection.facts().await?);
        self.connection.told(asked::curve_points(&mut remote, &mut client, &name, made).await)
    }

    async fn against(&self, name: &str, setting: &str) -> Answer<view::Against> {
        let made = self.live(name)?.1.made().await?;
        self.connection.told(asked::against_points(made, setting.to_owned()).await)
    }

    async fn trials(&self, name: &str, from: u64, limit: u64) -> Answer<view::Trials> {
        let made = self.live(name)?.1.made().await?;
        self.connection.told(asked::trials(made, from, limit).await)
    }

    async fn worker(&self, name: &str) -> Answer<view::WorkerNow> {
        let mut remote = self.connection.facts().await?;
        self.connection.told(worker::worker(&mut remote, name).await)
    }

    async fn compare(&self, name: &str, a: &str, b: &str) -> Answer<view::ComparisonOnPage> {
        let (name, sweep) = self.live(name)?;
        let made = sweep.made().await?;
        let mut remote = self.connection.facts().await?;
        self.connection.told(compare::compare(&mut remote, &name, &made, [a, b]).await)
    }

    async fn fold(&self, fold: &str) -> Answer<view::FoldOnPage> {
        let mut remote = self.connection.facts().await?;
        let client = self.connection.client().await;
        let mut client = self.connection.told(client)?;
        self.connection.told(asked::fold(&mut remote, &mut client, fold).await)
    }

    async fn steer_sweep(&self, name: &str, act: view::SweepAct) -> Answer<view::Done> {
        facts::sweep_name(name).map_err(|problem| trouble(&problem))?;
        let client = self.connection.client().await;
        let mut client = self.connection.told(client)?;
        self.connection.told(steer::steer_sweep(&mut client, name, act).await)
    }

    async fn steer_worker(&self, worker: &str, act: view::WorkerAct) -> Answer<view::Done> {
        // An empty name would mean all of them.
        if worker.is_empty() {
            return Err(Trouble::Bad("no worker is named".to_owned()));
        }
        let client = self.connection.client().await;
        let mut client = self.connection.told(client)?;
        self.connection.told(steer::steer_worker(&mut client, worker, act).await)
    }
}
