//! The table: each figure, the raw one beside it, and what was promised.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::{Bench, disk};

/// All figures of one run.
#[derive(Debug)]
pub(crate) struct Report {
    rows: Vec<Row>,
    /// Facts about the run that are no figures.
    notes: Vec<String>,
    /// Counts that differ.
    pub(crate) faults: Vec<String>,
    /// Safe small writes per second of this disk, in this run.
    pub(crate) disk: f64,
}

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    raw: Option<f64>,
    bounds: Option<Bounds>,
}

/// What was promised: the figure, or its ratio to the raw one, on this side of the number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounds {
    /// No more than (must, aim).
    Most(f64, f64),
    /// No less than (must, aim).
    Least(f64, f64),
    /// Ratio no less than (must, aim).
    RatioLeast(f64, f64),
    /// Ratio no more than (must, aim).
    RatioMost(f64, f64),
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit, raw: None, bounds: None }
    }

    /// Beside the same of the raw upstream.
    pub(crate) fn raw(mut self, raw: f64) -> Self {
        self.raw = Some(raw);
        self
    }

    pub(crate) fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = Some(bounds);
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.raw.map(|raw| self.value / raw)
    }

    fn verdict(&self) -> &'static str {
        let ratio = self.ratio().unwrap_or(f64::NAN);
        let (must, aim) = match self.bounds {
            None => return "",
            Some(Bounds::Most(must, aim)) => (self.value <= must, self.value <= aim),
            Some(Bounds::Least(must, aim)) => (self.value >= must, self.value >= aim),
            Some(Bounds::RatioLeast(must, aim)) => (ratio >= must, ratio >= aim),
            Some(Bounds::RatioMost(must, aim)) => (ratio <= must, ratio <= aim),
        };
        match (must, aim) {
            (_, true) => "aim",
            (true, false) => "must",
            (false, false) => "MISSED",
        }
    }

    fn line(&self) -> String {
        let raw = self.raw.map(number).unwrap_or_default();
        let ratio = self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let bounds = self.bounds.map(|bounds| bounds.text()).unwrap_or_default();
        let value = format!("{} {}", number(self.value), self.unit);
        format!("| {} | {} | {raw} | {ratio} | {bounds} | {} |", self.what, value.trim_end(), self.verdict())
    }
}

impl Bounds {
    fn text(self) -> String {
        match self {
            Self::Most(must, aim) => format!("≤ {} / {}", number(must), number(aim)),
            Self::Least(must, aim) => format!("≥ {} / {}", number(must), number(aim)),
            Self::RatioLeast(must, aim) => format!("≥ {must} / {aim} of raw"),
            Self::RatioMost(must, aim) => format!("≤ {must} / {aim} of raw"),
        }
    }
}

impl Report {
    pub(crate) async fn new(bench: &Bench) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let disk = disk::syncs_per_second(folder.path())?;
        let version = tokio::process::Command::new(&bench.binary).arg("--version").output().await?.stdout;
        let cores = std::thread::available_parallelism()?;
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        let notes = vec![
            format!("{version} ({}), default settings; {cores} cores shared by server, model and client", bench.built),
            format!("disk: {disk:.0} fdatasync/s in this run, so one takes {:.2} ms", 1e3 / disk),
        ];
        notes.iter().for_each(|note| eprintln!("{note}"));
        Ok(Self { rows: Vec::new(), notes, faults: Vec::new(), disk })
    }

    pub(crate) fn add(&mut self, row: Row) {
        eprintln!("{}", row.line());
        self.rows.push(row);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        eprintln!("{note}");
        self.notes.push(note);
    }

    /// Counts that must be the same. If they are not, the caller prints no figure.
    pub(crate) fn same(&mut self, what: &str, sent: i64, found: i64) -> bool {
        if sent != found {
            self.faults.push(format!("{what}: {sent} sent, {found} found"));
        }
        sent == found
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("| what | gander | raw | ratio | must / aim | met |\n|---|---|---|---|---|---|\n");
        for row in &self.rows {
            writeln!(text, "{}", row.line()).expect("writing to a string");
        }
        for note in &self.notes {
            write!(text, "\n- {note}").expect("writing to a string");
        }
        text
    }

    pub(crate) fn write(&self, out: &Path) -> anyhow::Result<()> {
        std::fs::write(out.with_extension("md"), format!("{}\n", self.markdown()))?;
        let row = |row: &Row| json!({"what": row.what, "value": row.value, "unit": row.unit, "raw": row.raw, "ratio": row.ratio(), "met": row.verdict()});
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        let whole = json!({"rows": rows, "notes": self.notes, "faults": self.faults});
        std::fs::write(out.with_extension("json"), format!("{whole:#}\n"))?;
        Ok(())
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        large if large >= 100.0 => format!("{value:.0}"),
        large if large >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
