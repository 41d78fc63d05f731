//! The job that starts one worker: a script of a few lines, and the options of `sbatch` that belong to it. Writes text and
//! runs nothing. No token is in it, only the name of the file with one.

use std::path::PathBuf;

use super::pool::Pool;

/// How workers are started.
#[derive(Debug, Clone)]
pub struct Start {
    /// Lines of shell before the worker, such as `module load cuda`.
    pub setup: Vec<String>,
    /// The worker program.
    pub program: PathBuf,
    /// Where the coordinator listens, as seen from the nodes.
    pub address: String,
    /// File with the worker token, as seen from the nodes.
    pub token_file: PathBuf,
    /// Where results wait and checkpoints are, as seen from the nodes.
    pub state: PathBuf,
    /// Where all workers keep checkpoints.
    pub checkpoints: PathBuf,
    /// Seconds without work after which a worker leaves.
    pub idle_exit: u64,
    /// More options of `togl-worker join`.
    pub options: Vec<String>,
    /// Folder of the logs.
    pub logs: PathBuf,
    /// What the user gives to `sbatch`.
    pub sbatch: Vec<String>,
}

/// Options that a pool sets itself, long and short.
const OURS: &[&str] = &[
    "--array",
    "-a",
    "--comment",
    "--job-name",
    "-J",
    "--no-requeue",
    "--open-mode",
    "--output",
    "-o",
    "--parsable",
    "--requeue",
    "--signal",
    "--test-only",
    "--time",
    "-t",
    "--wrap",
    "--wait",
    "-W",
];

/// Refuses options of `sbatch` that a pool sets itself, and scripts.
pub fn check_options(options: &[String]) -> Result<(), String> {
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        let short = name.starts_with('-') && !name.starts_with("--");
        let is = |ours: &&&str| name == **ours || (short && ours.len() == 2 && name.starts_with(**ours));
        if let Some(ours) = OURS.iter().find(is) {
            return Err(format!("`{ours}` is set by togl; leave it out after `--`"));
        }
    }
    Ok(())
}

/// What `-M` or `--clusters` says, for the other programs.
pub fn clusters(options: &[String]) -> Option<String> {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option == "-M" || option == "--clusters" {
            return options.next().cloned();
        }
        let joined = option.strip_prefix("--clusters=").or_else(|| option.strip_prefix("-M"));
        if let Some(joined) = joined {
            return Some(joined.to_owned());
        }
    }
    None
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Start {
    /// The options of `sbatch` for so many workers; the script comes on standard input.
    pub fn options(&self, pool: &Pool, count: u32, excluded: &[String]) -> Vec<String> {
        let minutes = pool.lifetime.div_ceil(60);
        let mut options = vec![
            "--parsable".to_owned(),
            format!("--job-name={}", pool.job_name()),
            format!("--comment={}", pool.comment()),
            format!("--array=0-{}", count.saturating_sub(1)),
            format!("--time={minutes}"),
            // Slurm may send it a minute early, and saving must fit in.
            format!("--signal=B:TERM@{}", (pool.lifetime / 4).clamp(1, 120)),
            // The demand replaces workers sooner than Slurm would, and no job lives twice.
            "--no-requeue".to_owned(),
            "--open-mode=append".to_owned(),
            format!("--output={}", self.logs.join("%A_%a.log").display()),
        ];
        if !excluded.is_empty() {
            options.push(format!("--exclude={}", excluded.join(",")));
        }
        options.extend(self.sbatch.iter().cloned());
        options
    }

    /// The script of one worker.
    pub fn script(&self, pool: &Pool) -> String {
        let mut join = vec![
            quoted(&self.program.to_string_lossy()),
            "join".to_owned(),
            quoted(&self.address),
            format!("--token-file {}", quoted(&self.token_file.to_string_lossy())),
            format!("--state {}/\"$(uname -n)\"", quoted(&self.state.to_string_lossy())),
            format!("--checkpoint-dir {}", quoted(&self.checkpoints.to_string_lossy())),
            format!("--idle-exit {}", self.idle_exit),
            "--lifetime \"$left\"".to_owned(),
        ];
        if pool.device != "any" {
            join.push(format!("--device {}", quoted(&pool.device)));
        }
        if let Some(slots) = pool.slots {
            join.push(format!("--slots {slots}"));
        }
        join.extend(self.options.iter().map(|option| quoted(option)));
        let (name, lifetime) = (&pool.name, pool.lifetime);
        let (setup, join) = (self.setup.join("\n"), join.join(" "));
        format!(
            "#!/bin/bash\n# One worker of pool {name}, submitted by `togl slurm up`.\n{setup}\n{LEFT}left={lifetime}\n{ASK}{join} </dev/null &\n{WAIT}"
        )
    }
}

/// Seconds of `[DAYS-]HOURS:MINUTES:SECONDS` or `MINUTES:SECONDS`.
const LEFT: &str = r#"seconds() {
    local days=0 hours=0 rest=$1
    case $rest in *-*) days=${rest%%-*} rest=${rest#*-} ;; esac
    case $rest in *:*:*) hours=${rest%%:*} rest=${rest#*:} ;; esac
    echo $((((10#$days * 24 + 10#$hours) * 60 + 10#${rest%%:*}) * 60 + 10#${rest##*:}))
}
"#;

/// What Slurm says is left counts (asked by the task: the last one of an array has the array's own number as job), less up to 5 % so that the workers of an array do not leave all at once.
const ASK: &str = r#"said=$(squeue --noheader --jobs="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" --format=%L 2>/dev/null)
case $said in *[!0-9:-]* | "") ;; *:*) left=$(seconds "$said") ;; esac
left=$((left - left * (RANDOM % 6) / 100))
worker=
# Slurm signals this script, not the worker: pass it on.
trap '[ -z "$worker" ] || kill -TERM "$worker" 2>/dev/null' TERM INT
"#;

/// A signal ends `wait` early; wait again until the worker has really gone.
const WAIT: &str = r#"worker=$!
status=0
wait "$worker" || status=$?
while kill -0 "$worker" 2>/dev/null; do
    status=0
    wait "$worker" || status=$?
done
exit "$status"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Start {
        Start {
            setup: vec!["module load cuda".to_owned()],
            program: "/opt/it's/togl-worker".into(),
            address: "head:7447".to_owned(),
            token_file: "/home/me/worker.token".into(),
            state: "/home/me/state".into(),
            checkpoints: "/home/me/checkpoints".into(),
            idle_exit: 120,
            options: vec!["--data".to_owned(), "/data; rm -rf".to_owned()],
            logs: "/home/me/logs".into(),
            sbatch: vec!["--partition=gpu".to_owned()],
        }
    }

    fn pool() -> Pool {
        Pool {
            name: "gpu".to_owned(),
            max_workers: 4,
            max_waiting: 4,
            device: "cuda".to_owned(),
            memory: None,
            slots: None,
            lifetime: 43_200,
            pin: "-".to_owned(),
        }
    }

    fn bash(arguments: &[&str]) -> std::process::Output {
        std::process::Command::new("bash").args(arguments).output().unwrap()
    }

    #[test]
    fn the_script_is_one_that_the_shell_reads_and_words_stay_words() {
        let script = start().script(&pool());
        let checked = bash(&["-n", "-c", &script]);
        assert!(checked.status.success(), "{}\n{script}", String::from_utf8_lossy(&checked.stderr));
        assert!(script.contains(r"'/opt/it'\''s/togl-worker' join 'head:7447'"), "{script}");
        assert!(script.contains("'--data' '/data; rm -rf' </dev/null &"), "{script}");
        assert!(!script.contains("TOGL_TOKEN"));
    }

    #[test]
    fn the_script_reads_what_slurm_says_is_left() {
        let read = |text: &str| {
            let said = bash(&["-c", &format!("{LEFT}seconds '{text}'")]).stdout;
            String::from_utf8(said).unwrap().trim().parse().ok()
        };
        for text in ["1-02:03:04", "11:59:58", "08:09"] {
            assert_eq!(read(text), super::super::jobs::seconds(text), "{text}");
        }
    }

    #[test]
    fn options_that_a_pool_sets_are_refused_and_clusters_are_passed_on() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            check_options(&words("--partition=gpu -A me --gres=gpu:1 --test-only")).unwrap_err(),
            "`--test-only` is set by togl; leave it out after `--`"
        );
        assert!(
            check_options(&words("-t10")).is_err() && check_options(&words("--tmp=1G --account x")).is_ok()
        );
        assert_eq!(clusters(&words("-p gpu -M far")).as_deref(), Some("far"));
        assert_eq!(clusters(&words("--clusters=far")).as_deref(), Some("far"));
        assert_eq!(clusters(&words("--mem=1G")), None);
        let options = start().options(&pool(), 3, &["n1".to_owned(), "n2".to_owned()]);
        let has = |option: &str| options.iter().any(|given| given == option);
        assert!(
            has("--array=0-2") && has("--time=720") && has("--exclude=n1,n2") && has("--signal=B:TERM@120")
        );
        assert_eq!(
            options.last().map(String::as_str),
            Some("--partition=gpu"),
            "the user's come last and win"
        );
    }
}
