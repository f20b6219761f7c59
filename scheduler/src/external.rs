//! `external:CMD`: any program as a scheduler.
//!
//! The command is run by `sh -c`. It gets one JSON object on standard input,
//! `{"schema": 1, "problem": …, "arch": …, "objective": "Cycles", "budget": null, "seed": 0}`, and answers with one JSON
//! object on standard output: the mapping, or `{"mapping": …}`. What it writes to standard error is shown when it
//! fails. It may take [`LIMIT`]; a program that takes longer is stopped. The limit only separates a hang from an answer:
//! it does not decide which mapping comes out.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cyclonest_arch::{Accelerator, Mapping};
use cyclonest_workloads::Problem;
use serde::{Deserialize, Serialize};

use crate::judge::Judge;
use crate::{Objective, Request, ScheduleError, Scheduled, Scheduler};

/// Longest time that a program may take for one layer.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A program as a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct External {
    name: String,
    command: String,
    limit: Duration,
}

#[derive(Serialize)]
struct Question<'a> {
    schema: u32,
    problem: &'a Problem,
    arch: &'a Accelerator,
    objective: Objective,
    budget: Option<u64>,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Wrapped { mapping: Mapping },
    Plain(Mapping),
}

impl External {
    /// The program that `command` starts.
    #[must_use]
    pub fn new(command: &str) -> Self {
        External {
            name: format!("external:{command}"),
            command: command.to_string(),
            limit: LIMIT,
        }
    }

    /// The same with another time limit.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the program; returns what it wrote to standard output.
    fn run(&self, question: String) -> Result<String, String> {
        let mut child = Command::new("sh")
            .args(["-c", &self.command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`{}` cannot be started: {error}", self.command))?;
        // Pipes are served by threads: a program that reads nothing, or writes much, must not block this one.
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                // A program that does not read its input closes the pipe; its answer counts.
                let _ = stdin.write_all(question.as_bytes());
            }
        });
        let stdout = read_all(child.stdout.take());
        let stderr = read_all(child.stderr.take());
        let status = self.wait(&mut child)?;
        let _ = writer.join();
        let text = |thread: std::thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
        };
        let (answer, complaint) = (text(stdout), text(stderr));
        if status.success() {
            return Ok(answer);
        }
        let complaint: Vec<&str> = complaint.trim().lines().rev().take(5).collect();
        let complaint: Vec<&str> = complaint.into_iter().rev().collect();
        Err(format!(
            "`{}` failed ({status}): {}",
            self.command,
            complaint.join("; ")
        ))
    }

    fn wait(&self, child: &mut Child) -> Result<std::process::ExitStatus, String> {
        let start = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if start.elapsed() > self.limit => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("`{}` gave no answer within {:?}", self.command, self.limit));
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(error) => return Err(format!("`{}`: {error}", self.command)),
            }
        }
    }
}

fn read_all(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read until an error is what there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

impl Scheduler for External {
    fn name(&self) -> &str {
        &self.name
    }

    fn schedule(&self, request: &Request<'_>) -> Result<Scheduled, ScheduleError> {
        let question = Question {
            schema: 1,
            problem: request.problem,
            arch: request.arch,
            objective: request.objective,
            budget: request.budget,
            seed: request.seed,
        };
        let question = serde_json::to_string(&question).map_err(|error| ScheduleError::External(error.to_string()))?;
        let answer = self.run(question).map_err(ScheduleError::External)?;
        let answer: Answer = serde_json::from_str(&answer).map_err(|error| {
            let start: String = answer.trim().chars().take(60).collect();
            ScheduleError::External(format!(
                "`{}` answered no mapping: {error}; a JSON object with `bounds` and `levels` is expected, found `{start}`",
                self.command
            ))
        })?;
        let (Answer::Wrapped { mapping } | Answer::Plain(mapping)) = answer;
        let violations = mapping.check(request.problem, request.arch);
        if !violations.is_empty() {
            let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let why = format!("`{}` answered an invalid mapping: {}", self.command, texts.join("; "));
            return Err(ScheduleError::External(why));
        }
        let mut judge = Judge::new(request);
        (judge.tried, judge.valid) = (1, 1);
        judge.score(&mapping);
        judge.finish()
    }
}
