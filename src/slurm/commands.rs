//! Slurm's programs: runs them within a time limit and hands back what they said. The only file here that starts processes.
//! Tokens of the user never get into a job: the environment that names them is left out.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::jobs::{self, Ended, JobId, SlurmJob, SubmitRefusal};
use super::pool::Pool;
use super::script::{self, Start};
use crate::problem::Problem;

/// How long one of the programs may take; `sbatch` tries for minutes while the queue is full.
const PATIENCE: Duration = Duration::from_secs(30);

/// What jobs must not find in their environment: `sbatch` hands all of it on.
const SECRET: &[&str] = &["TOGL_TOKEN", "TOGL_COORDINATOR", "TOGL_IDENTITY", "TOGL_STATE"];

/// A Slurm cluster, or several that are named with `--clusters`.
#[derive(Debug, Clone)]
pub struct SlurmCommands {
    clusters: Option<String>,
}

/// What a program said, or how far it got.
struct Said {
    success: bool,
    out: String,
    words: String,
}

impl SlurmCommands {
    /// The one that these options of `sbatch` mean. Its programs must be there.
    pub async fn find(sbatch: &[String]) -> Result<Self, Problem> {
        let slurm = Self { clusters: script::clusters(sbatch) };
        match slurm.run("sbatch", &["--version".to_owned()], None).await {
            Ok(_) => Ok(slurm),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Problem::usage(
                "there is no `sbatch` on the path",
            )
            .hint("run this where jobs are submitted, such as a login node; `module load slurm` may help")),
            Err(error) => Err(Problem::usage(format!("cannot run `sbatch`: {error}"))),
        }
    }

    async fn run(&self, program: &str, arguments: &[String], input: Option<&str>) -> io::Result<Said> {
        let mut command = Command::new(program);
        if let Some(clusters) = self.clusters.as_ref().filter(|_| program != "sbatch") {
            command.arg(format!("--clusters={clusters}"));
        }
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        SECRET.iter().for_each(|name| _ = command.env_remove(name));
        let mut child = command.spawn()?;
        if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(text.as_bytes()).await?;
        }
        let (mut out, mut words) = (child.stdout.take(), child.stderr.take());
        let (mut said, mut complained) = (Vec::new(), Vec::new());
        // What it said so far counts even if it does not end.
        let ended = tokio::time::timeout(PATIENCE, async {
            let reading = async { read(&mut out, &mut said).await };
            tokio::join!(reading, read(&mut words, &mut complained));
            child.wait().await
        });
        let ended = ended.await;
        let (out, words) = (text(&said), text(&complained));
        match ended {
            Ok(status) => Ok(Said { success: status?.success(), out, words }),
            Err(_) => Ok(Said {
                success: false,
                out,
                words: format!("{words}\n{program} timed out after {} s", PATIENCE.as_secs()),
            }),
        }
    }

    /// Jobs of this user with the name of one pool; nothing if Slurm does not answer.
    pub async fn queue(&self, pool: &Pool) -> Option<Vec<SlurmJob>> {
        let user = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?);
        let arguments = [
            "--noheader".to_owned(),
            "--array".to_owned(),
            format!("--user={user}"),
            format!("--name={}", pool.job_name()),
            format!("--format={}", jobs::FORMAT),
        ];
        let said = self.run("squeue", &arguments, None).await.ok().filter(|said| said.success)?;
        Some(jobs::parse(&said.out).into_iter().filter(|job| pool.owns(job)).collect())
    }

    /// Submits one array; gives its number.
    pub async fn submit(
        &self,
        start: &Start,
        pool: &Pool,
        count: u32,
        excluded: &[String],
    ) -> Result<String, SubmitRefusal> {
        let options = start.options(pool, count, excluded);
        let said = self.run("sbatch", &options, Some(&start.script(pool))).await;
        let said = said.map_err(|error| SubmitRefusal::Passing(error.to_string()))?;
        let number = said.out.trim().split(';').next().unwrap_or_default().to_owned();
        match said.success && number.starts_with(|c: char| c.is_ascii_digit()) {
            true => Ok(number),
            false => Err(jobs::refusal(&said.words)),
        }
    }

    /// Asks Slurm whether it would take such a job; gives what it says about when it would start.
    pub async fn test(&self, start: &Start, pool: &Pool) -> Result<String, SubmitRefusal> {
        let mut options = start.options(pool, 1, &[]);
        options.insert(0, "--test-only".to_owned());
        let said = self.run("sbatch", &options, Some(&start.script(pool))).await;
        let said = said.map_err(|error| SubmitRefusal::Passing(error.to_string()))?;
        match said.success {
            true => Ok(jobs::first_line(&said.words)),
            false => {
                Err(jobs::refusal(&said.words.replace("allocation failure", "Batch job submission failed")))
            }
        }
    }

    /// Cancels jobs; with `waiting`, only if they have not begun.
    pub async fn cancel(&self, ids: &[JobId], waiting: bool) {
        let mut arguments = if waiting { vec!["--state=PENDING".to_owned()] } else { Vec::new() };
        arguments.extend(ids.iter().map(|id| id.0.clone()));
        if let Err(error) = self.run("scancel", &arguments, None).await {
            tracing::warn!(%error, "cannot run scancel");
        }
    }

    /// How a job ended, while Slurm remembers it.
    pub async fn end_of(&self, id: &JobId) -> Option<Ended> {
        let arguments = ["show", "job", "--oneliner", &id.0].map(str::to_owned);
        jobs::ended(&self.run("scontrol", &arguments, None).await.ok()?.out)
    }

    /// The largest array that Slurm takes.
    pub async fn largest_array(&self) -> Option<u32> {
        let said = self.run("scontrol", &["show", "config"].map(str::to_owned), None).await.ok()?;
        let line = said.out.lines().find(|line| line.starts_with("MaxArraySize"))?;
        line.split('=').nth(1)?.trim().parse().ok()
    }
}

async fn read(from: &mut Option<impl tokio::io::AsyncRead + Unpin>, into: &mut Vec<u8>) {
    const MOST: u64 = 16 << 20;
    if let Some(from) = from {
        let mut from = tokio::io::AsyncReadExt::take(from, MOST);
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut from, into).await; // what came so far counts
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
