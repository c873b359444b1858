// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive import`.

use super::Place;
use anyhow::{Context, Result, ensure};
use clap::Args;
use fatpath_archive::import::{batch, import};
use fatpath_archive::store::{Put, Store};
use fatpath_archive::{Event, Kind};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Arguments {
    /// Flow logs or event logs of the daemon, a JSON object a line
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Host that the lines are of [default: this host's name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Lines that are stored together.
const BATCH: usize = 2000;

/// A line that is imported again is stored once. Lines that are none of either log are counted, and the rest is stored.
pub fn run(arguments: &Arguments) -> Result<()> {
    let host = arguments.host.clone().unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    });
    let mut importer = Importer {
        host,
        store: arguments.place.store()?,
        waiting: BTreeMap::new(),
        put: Put::default(),
        bad: 0,
    };
    for file in &arguments.files {
        importer.read(file)?;
    }
    let Put { stored, known, .. } = importer.put;
    println!(
        "{stored} events stored, {known} were there already, {} lines are not events",
        importer.bad
    );
    ensure!(
        importer.bad == 0,
        "some lines are neither of a flow log nor of an event log"
    );
    Ok(())
}

struct Importer {
    host: String,
    store: Box<dyn Store + Send>,
    waiting: BTreeMap<Kind, Vec<(u64, Event)>>,
    put: Put,
    bad: u64,
}

impl Importer {
    fn read(&mut self, path: &Path) -> Result<()> {
        let name = || path.display().to_string();
        let lines = BufReader::new(File::open(path).with_context(name)?).lines();
        for (line, number) in lines.zip(1u64..) {
            match import(&line.with_context(name)?) {
                Ok((kind, sequence, event)) => {
                    let waiting = self.waiting.entry(kind).or_default();
                    waiting.push((sequence, event));
                    if waiting.len() >= BATCH {
                        self.store()?;
                    }
                }
                Err(error) => {
                    if self.bad == 0 {
                        eprintln!("fatpath: {}:{number}: error: {error}", path.display());
                    }
                    self.bad += 1;
                }
            }
        }
        self.store()
    }

    fn store(&mut self) -> Result<()> {
        for (kind, events) in std::mem::take(&mut self.waiting) {
            let put = self.store.put(&batch(&self.host, kind, events))?;
            self.put.stored += put.stored;
            self.put.known += put.known;
        }
        Ok(())
    }
}
