//! Measures the commands of `palog` as whole processes on a large session: MB of input per second of processor time, and
//! the peak of anonymous memory.
//!
//! `cargo bench -p palog-cli --features parquet --bench throughput [-- --size 500M] [--vendor claude|codex] [--input FILE.jsonl] [--runs 3]`
//!
//! Without `--input` it makes a session of `--size` with `benches/data/gen_VENDOR.py` (Python 3) under the target directory.
//! It reads `/proc`, so it runs on Linux only. The median of the runs is printed; nothing is judged.

#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Ticks of `utime` and `stime` in `/proc/<pid>/stat` per second, the same on every Linux that this runs on.
const TICKS: f64 = 100.0;

/// One run of a command.
#[derive(Clone, Copy)]
struct Run {
    cpu: f64,
    wall: f64,
    /// Peak of anonymous memory, in kB.
    anonymous: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).cloned();
    let runs: usize = option("--runs").map_or(Ok(3), |n| n.parse())?;
    let work = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("throughput");
    fs::create_dir_all(&work)?;
    let input = match option("--input") {
        Some(path) => PathBuf::from(path),
        None => {
            let (vendor, size) = (option("--vendor"), option("--size"));
            generated(&work, vendor.as_deref().unwrap_or("claude"), size.as_deref().unwrap_or("500M"))?
        }
    };
    let bytes = fs::metadata(&input)?.len() as f64;
    let out = work.join("out");
    println!("{} MB in {}", (bytes / 1e6).round(), input.display());
    println!("| command | MB per CPU-second | CPU s | wall s | peak anonymous MB |");
    println!("|---|--:|--:|--:|--:|");
    report("import", bytes, runs, || {
        let _ = fs::remove_dir_all(&out);
        palog(&["import".as_ref(), input.as_ref(), "-o".as_ref(), out.as_ref()])
    })?;
    let log = largest(&out)?;
    let log_bytes = fs::metadata(&log)?.len() as f64;
    report("validate (log)", log_bytes, runs, || palog(&["validate".as_ref(), log.as_ref()]))?;
    report("recover (log)", log_bytes, runs, || palog(&["recover".as_ref(), log.as_ref()]))?;
    report("recover (session)", bytes, runs, || palog(&["recover".as_ref(), input.as_ref()]))?;
    if cfg!(feature = "parquet") {
        let dataset = work.join("dataset");
        report("export to parquet (log)", log_bytes, runs, || {
            let _ = fs::remove_dir_all(&dataset);
            palog(&[
                "export".as_ref(),
                log.as_ref(),
                "--to".as_ref(),
                "parquet".as_ref(),
                "-o".as_ref(),
                dataset.as_ref(),
            ])
        })?;
    }
    println!(
        "the log has {} MB; import is counted by its input, the others by what they read",
        (log_bytes / 1e6).round()
    );
    Ok(())
}

fn generated(work: &Path, vendor: &str, size: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = work.join(format!("{vendor}-{size}.jsonl"));
    if !path.exists() {
        let generator = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("benches/data/gen_{vendor}.py"));
        let status = Command::new("python3").arg(generator).arg(&path).args(["--size", size]).status()?;
        if !status.success() {
            return Err("the generator failed".into());
        }
    }
    Ok(path)
}

/// The largest log in a directory: the session's own, its subagents being smaller.
fn largest(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let logs = fs::read_dir(folder)?
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl"));
    logs.max_by_key(|p| p.metadata().map_or(0, |m| m.len())).ok_or_else(|| "no log was written".into())
}

fn report(
    name: &str,
    bytes: f64,
    runs: usize,
    mut run: impl FnMut() -> Result<Run, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    run()?;
    let mut measured = (0..runs).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    measured.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    let median = measured[runs / 2];
    let rate = bytes / 1e6 / median.cpu;
    println!(
        "| {name} | {rate:.0} | {:.2} | {:.2} | {:.0} |",
        median.cpu,
        median.wall,
        median.anonymous as f64 * 1024.0 / 1e6
    );
    Ok(())
}

/// Runs the program to its end and measures it.
fn palog(arguments: &[&std::ffi::OsStr]) -> Result<Run, Box<dyn Error>> {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_palog"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (status, stat) = (format!("/proc/{}/status", child.id()), format!("/proc/{}/stat", child.id()));
    let mut anonymous = 0;
    loop {
        // The figures of a process that ended stay readable until it is waited for.
        let text = fs::read_to_string(&stat)?;
        let fields: Vec<&str> = text.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split(' ').collect());
        if fields.first() == Some(&"Z") {
            let ticks = |at: usize| -> Result<f64, Box<dyn Error>> {
                Ok(fields.get(at).ok_or("a short stat line")?.parse::<f64>()?)
            };
            let (cpu, wall) = ((ticks(11)? + ticks(12)?) / TICKS, start.elapsed().as_secs_f64());
            let code = child.wait()?;
            return if code.success() {
                Ok(Run { cpu, wall, anonymous })
            } else {
                Err(format!("palog ended with {code}").into())
            };
        }
        if let Some(line) = fs::read_to_string(&status)?.lines().find_map(|l| l.strip_prefix("RssAnon:")) {
            anonymous = anonymous.max(line.trim().trim_end_matches(" kB").trim().parse()?);
        }
        sleep(Duration::from_millis(5));
    }
}
