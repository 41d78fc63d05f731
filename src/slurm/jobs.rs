//! What Slurm says about jobs: lines of `squeue`, the record of one job, what `sbatch` answers. Reads text that another
//! program wrote, in any version of it: a word that is not known is taken to be a job that lives.

use std::fmt;

/// What `squeue -o` is asked for: id, state, node, name, comment, and why it waits.
pub const FORMAT: &str = "%i|%T|%N|%j|%k|%r";

/// A job as Slurm calls it, such as `123_4`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub String);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JobId {
    /// What a worker in this job tells the coordinator.
    pub fn allocation(&self) -> String {
        format!("slurm:{}", self.0)
    }

    /// Whether it is the array of this number or a part of it.
    pub fn is_of(&self, array: &str) -> bool {
        self.0.strip_prefix(array).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

/// Where a job stands, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It has not begun.
    Waiting,
    /// It has begun, or nobody knows what its state means.
    Alive,
    /// It is over.
    Ended,
}

/// A line of `squeue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmJob {
    /// Its id; each task of an array is a job of its own.
    pub id: JobId,
    /// Where it stands.
    pub standing: JobState,
    /// Where it runs; empty while it waits.
    pub node: String,
    /// Its name.
    pub name: String,
    /// What was written down when it was submitted.
    pub comment: String,
    /// Why it waits, in Slurm's word.
    pub reason: String,
}

fn standing(word: &str) -> JobState {
    match word {
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "RESV_DEL_HOLD" | "SPECIAL_EXIT" => {
            JobState::Waiting
        }
        // Its worker has left and Slurm tidies up.
        "COMPLETING" | "COMPLETED" | "CANCELLED" | "FAILED" | "TIMEOUT" | "PREEMPTED" | "NODE_FAIL"
        | "OUT_OF_MEMORY" | "BOOT_FAIL" | "DEADLINE" | "REVOKED" => JobState::Ended,
        _ => JobState::Alive,
    }
}

/// All jobs of `squeue -h -r -o FORMAT`; lines of another form, such as the names of clusters, are passed over.
pub fn parse(text: &str) -> Vec<SlurmJob> {
    text.lines().filter_map(job).collect()
}

fn job(line: &str) -> Option<SlurmJob> {
    let mut words = line.splitn(6, '|').map(|word| word.trim().to_owned());
    let id = words.next().filter(|id| id.starts_with(|c: char| c.is_ascii_digit()))?;
    let standing = standing(&words.next()?);
    let (node, name, comment) = (words.next()?, words.next()?, words.next()?);
    let reason = words.next()?;
    Some(SlurmJob { id: JobId(id), standing, node, name, comment, reason })
}

/// How a job ended, from `scontrol show job -o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// On which node.
    pub node: String,
    /// Seconds that it ran.
    pub seconds: u64,
    /// Whether it ended by itself, and not because somebody wanted its place or its node failed.
    pub by_itself: bool,
}

/// Reads the record of one job; nothing if there is none, or if it has not ended.
pub fn ended(record: &str) -> Option<Ended> {
    let field = |name: &str| {
        let mut words = record.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let state = field("JobState=");
    if standing(&state) != JobState::Ended {
        return None;
    }
    let node =
        Some(field("BatchHost=")).filter(|node| !node.is_empty()).unwrap_or_else(|| field("NodeList="));
    let by_itself = matches!(state.as_str(), "FAILED" | "COMPLETED" | "OUT_OF_MEMORY");
    Some(Ended { node, seconds: seconds(&field("RunTime=")).unwrap_or(0), by_itself })
}

/// `[DAYS-][HOURS:]MINUTES:SECONDS`, as Slurm writes times.
pub fn seconds(text: &str) -> Option<u64> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let parts = rest.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<u64>>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes, seconds] => (hours, minutes, seconds),
        [minutes, seconds] => (0, minutes, seconds),
        _ => return None,
    };
    let hours = days.parse::<u64>().ok()?.checked_mul(24)?.checked_add(hours)?;
    hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)
}

/// What kind of trouble `sbatch` had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitRefusal {
    /// Slurm is busy or away: later it will work.
    Passing(String),
    /// No more jobs may be in the queue: when one ends it will work.
    Full(String),
    /// It will never work: somebody has to change something.
    Lasting(String),
}

impl SubmitRefusal {
    /// What Slurm said.
    pub fn words(&self) -> &str {
        match self {
            Self::Passing(said) | Self::Full(said) | Self::Lasting(said) => said,
        }
    }
}

/// Sorts what `sbatch` said. The words are those of Slurm's table of errors.
pub fn refusal(words: &str) -> SubmitRefusal {
    const FULL: &[&str] = &[
        "temporarily unable to accept job",
        "job submit limit",
        "Job violates accounting/QOS policy",
        "MaxSubmitJob",
        "too many jobs",
    ];
    const PASSING: &[&str] = &[
        "timed out",
        "Unable to contact slurm controller",
        "Resource temporarily unavailable",
        "Connection refused",
        "Communication connection failure",
        "controller is in standby",
        "Slurm backup controller",
        "Zero Bytes were transmitted",
        "Unexpected message received",
        "authentication",
    ];
    let said = first_line(words);
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    match (has(FULL), has(PASSING)) {
        (true, _) => SubmitRefusal::Full(said),
        (false, true) => SubmitRefusal::Passing(said),
        (false, false) => SubmitRefusal::Lasting(said),
    }
}

/// The line that says most, without the name of the program before it.
pub fn first_line(words: &str) -> String {
    let lines =
        words.lines().map(|line| line.trim_start_matches("sbatch: ").trim_start_matches("error: ").trim());
    let failed = lines.clone().find_map(|line| line.strip_prefix("Batch job submission failed: "));
    let line = failed.or_else(|| lines.clone().find(|line| !line.is_empty()));
    line.unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_squeue_are_read_whatever_stands_between_them() {
        let text = "CLUSTER: loop\n12_0|RUNNING|n1|togl-gpu|togl:1:-:gpu:1|None\n\
                    12_1|PENDING||togl-gpu|togl:1:-:gpu:1|(Resources)\n13|DREAMING|n2|other|(null)|a|b\n|\n";
        let jobs = parse(text);
        let standings: Vec<_> = jobs.iter().map(|job| (job.id.0.as_str(), job.standing)).collect();
        let expected = [("12_0", JobState::Alive), ("12_1", JobState::Waiting), ("13", JobState::Alive)];
        assert_eq!(standings, expected, "a word that nobody knows is a job that lives");
        assert_eq!((jobs[0].node.as_str(), jobs[2].reason.as_str()), ("n1", "a|b"));
        assert!(jobs[0].id.is_of("12") && !jobs[0].id.is_of("1"));
    }

    #[test]
    fn times_are_read_as_slurm_writes_them() {
        let read =
            ["1-02:03:04", "02:03:04", "03:04", "UNLIMITED", "", "9999999999999999999-00:00:00"].map(seconds);
        assert_eq!(read, [Some(93_784), Some(7_384), Some(184), None, None, None]);
    }

    #[test]
    fn the_record_of_a_job_says_how_it_ended() {
        let record =
            "JobId=5 JobState=FAILED Reason=NonZeroExitCode RunTime=00:00:02 BatchHost=n2 NodeList=n2";
        assert_eq!(ended(record), Some(Ended { node: "n2".to_owned(), seconds: 2, by_itself: true }));
        assert!(!ended("JobState=PREEMPTED RunTime=00:00:02 NodeList=n2").unwrap().by_itself);
        assert_eq!(ended("JobState=PENDING RunTime=00:00:00"), None);
        assert_eq!(ended("slurm_load_jobs error: Invalid job id specified"), None);
    }

    #[test]
    fn passing_trouble_a_full_queue_and_lasting_trouble_are_told_apart() {
        let line = "sbatch: error: Batch job submission failed: ";
        let passing = refusal(&format!("{line}Socket timed out on send/recv operation"));
        assert_eq!(passing, SubmitRefusal::Passing("Socket timed out on send/recv operation".to_owned()));
        let full = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n";
        assert!(matches!(refusal(full), SubmitRefusal::Full(_)));
        let lasting = refusal(&format!(
            "sbatch: error: invalid partition specified: gpus\n{line}Invalid partition name specified"
        ));
        assert_eq!(lasting, SubmitRefusal::Lasting("Invalid partition name specified".to_owned()));
        assert_eq!(refusal(""), SubmitRefusal::Lasting("it said nothing".to_owned()));
    }
}
