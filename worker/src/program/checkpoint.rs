//! Checkpoints of programs: one file of the program's own making behind a head of ours, which says how far it is, whose it is,
//! and the digest of the rest. Owns that form; where such files are kept is `checkpoints`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use togl_durable::{Draft, MINE};
use togl_sweeps::result::EpochRecord;
use togl_sweeps::{Attempt, FoldKey};

use crate::checkpoints::Checkpoints;

/// What such a file begins with; the head follows in one line, then the digest of the rest in one line, then the rest.
const MAGIC: &[u8] = b"togl program checkpoint 1\n";

/// The longest head: a learning curve.
const LONGEST_HEAD: u64 = 64 << 20;

/// Where a program goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Which fold.
    pub fold: String,
    /// Which attempt saved it.
    pub attempt: Attempt,
    /// Epochs that are done.
    pub epochs: u32,
    /// Seconds of training so far.
    pub seconds: f64,
    /// The learning curve so far.
    pub history: Vec<EpochRecord>,
}

/// How far a checkpoint of a program is; none if it is no such file.
pub fn epochs_of(bytes: &[u8]) -> Option<u32> {
    head(&mut bytes.get(..)?).ok().map(|(resumed, _)| resumed.epochs)
}

/// Reads the head and the digest.
fn head(from: &mut impl BufRead) -> io::Result<(Resumed, String)> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(io::Error::other("it is no checkpoint of a program"));
    }
    let mut line = String::new();
    from.take(LONGEST_HEAD).read_line(&mut line)?;
    let resumed = serde_json::from_str(&line)?;
    line.clear();
    from.take(100).read_line(&mut line)?;
    Ok((resumed, line.trim_end().to_owned()))
}

/// Copies all of it; says the digest of what was copied.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<String> {
    let (mut hasher, mut block) = (blake3::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match from.read(&mut block)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            read => {
                hasher.update(&block[..read]);
                to.write_all(&block[..read])?;
            }
        }
    }
}

impl Checkpoints {
    /// Keeps what the program has saved in the place of its attempt's last checkpoint, then makes room.
    pub fn save_program(&self, fold: FoldKey, resumed: &Resumed, saved: &Path) -> io::Result<()> {
        let digest = copy(File::open(saved)?, io::sink())?;
        let path = self.path_of_program(fold, &resumed.attempt.to_string());
        togl_agent::durable::make_folder(&self.folder)?;
        let mut draft = Draft::beside(&path, MINE)?;
        draft.write_all(MAGIC)?;
        draft.write_all(serde_json::to_string(resumed)?.as_bytes())?;
        draft.write_all(format!("\n{digest}\n").as_bytes())?;
        if copy(File::open(saved)?, &mut draft)? != digest {
            return Err(io::Error::other("the program changed its checkpoint while it was kept"));
        }
        draft.publish()?;
        let _ = fs::remove_file(saved); // the next one is another file
        self.make_room(&path)
    }

    /// Puts the checkpoint of a fold that has come furthest where the program finds it. One that cannot be used is left alone.
    pub fn resume_program(&self, fold: FoldKey, to: &Path) -> Option<Resumed> {
        let mut found: Vec<(Resumed, String, BufReader<File>)> = Vec::new();
        for path in self.of_fold(fold) {
            let Ok(file) = File::open(&path) else { continue };
            let mut file = BufReader::new(file);
            match head(&mut file) {
                Ok((resumed, digest)) if resumed.fold == fold.to_string() => {
                    found.push((resumed, digest, file))
                }
                Ok(_) => {
                    eprintln!("warning: the checkpoint {} is ignored: it is of another fold", path.display())
                }
                Err(error) => eprintln!("warning: the checkpoint {} is ignored: {error}", path.display()),
            }
        }
        found.sort_by_key(|(resumed, ..)| std::cmp::Reverse(resumed.epochs));
        found.into_iter().find_map(|(resumed, digest, mut file)| {
            match File::create(to).and_then(|to| copy(&mut file, to)) {
                Ok(copied) if copied == digest => Some(resumed),
                Ok(_) => {
                    eprintln!("warning: a checkpoint is ignored: it is torn");
                    let _ = fs::remove_file(to);
                    None
                }
                Err(error) => {
                    eprintln!("warning: a checkpoint is ignored: {error}");
                    None
                }
            }
        })
    }
}
