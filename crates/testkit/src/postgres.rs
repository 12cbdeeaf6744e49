//! A PostgreSQL server for tests: made in a folder of its own, on a Unix socket, gone when the test process is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::geteuid;
use uuid::Uuid;

/// A server that is there already: tests make schemas in it and leave them.
const SERVER_URL: &str = "GANDER_TEST_POSTGRES";

/// Without it nothing else is needed: the folder is made below it.
const USER: &str = "gander";

/// A server of this process's own.
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    /// Ends the server when our end of its input is closed, however we end.
    _guard: Child,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Clients are sent away, and everything is written.
    Fast,
    /// As in a crash: the next start recovers from the log.
    Immediate,
}

/// Whether writes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskSync {
    /// Quick, and safe from everything but a power cut.
    Off,
    /// As people run it.
    On,
}

/// The one server of a test process: its tests share it, each in a schema of its own.
pub type SharedServer = OnceLock<Option<PostgresServer>>;

/// The URL of a new schema for one test; none if no PostgreSQL is installed.
pub fn new_schema(shared: &SharedServer) -> Option<String> {
    let url = match std::env::var(SERVER_URL) {
        Ok(url) => Some(url),
        Err(_) => shared.get_or_init(start_if_installed).as_ref().map(PostgresServer::url),
    };
    url.map(|url| make_schema(&url).unwrap_or_else(|error| panic!("no schema could be made: {error:#}")))
}

fn start_if_installed() -> Option<PostgresServer> {
    find_programs()?;
    Some(PostgresServer::start(DiskSync::Off).unwrap_or_else(|error| panic!("PostgreSQL does not start: {error:#}")))
}

/// Makes a schema in a database; gives the database's URL with it.
pub fn make_schema(url: &str) -> anyhow::Result<String> {
    let schema = format!("test_{}", Uuid::now_v7().simple());
    let programs = find_programs().context("psql is not installed")?;
    let mut psql = Command::new(programs.join("psql"));
    run(psql.args(["--quiet", "--no-psqlrc", "--dbname", url, "--command", &format!("CREATE SCHEMA {schema}")]))?;
    let sign = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{sign}options=-csearch_path%3D{schema}"))
}

impl PostgresServer {
    /// Makes a database in a new folder and starts a server for it.
    pub fn start(sync: DiskSync) -> anyhow::Result<Self> {
        let server = Self::in_new_folder()?;
        let data = server.data();
        let initdb = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username", USER, "--pgdata"];
        run(server.program("initdb").args(initdb).arg(&data))?;
        server.write_settings(sync)?;
        server.restart()?;
        Ok(server)
    }

    /// A copy that follows this server's log until it is promoted.
    pub fn start_standby(&self) -> anyhow::Result<Self> {
        let standby = Self::in_new_folder()?;
        let copy =
            ["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync", "--username", USER];
        let mut program = standby.program("pg_basebackup");
        run(program.args(copy).arg("--host").arg(&self.folder).arg("--pgdata").arg(standby.data()))?;
        standby.add_setting(&format!("unix_socket_directories = '{}'", standby.folder.display()))?;
        standby.restart()?;
        Ok(standby)
    }

    /// Makes a standby the server that writes.
    pub fn promote(&self) -> anyhow::Result<()> {
        run(self.program("pg_ctl").args(["promote", "--wait", "--silent", "--pgdata"]).arg(self.data()))
    }

    /// Adds a setting to what was set before; it counts from the next start or `reload` on.
    pub fn add_setting(&self, setting: &str) -> anyhow::Result<()> {
        let path = self.data().join("postgresql.auto.conf");
        let settings = std::fs::read_to_string(&path)?;
        Ok(std::fs::write(path, format!("{settings}{setting}\n"))?)
    }

    /// Has it read its settings again.
    pub fn reload(&self) -> anyhow::Result<()> {
        run(self.program("pg_ctl").args(["reload", "--silent", "--pgdata"]).arg(self.data()))
    }

    /// Lets everybody of a network in at an address of this machine, and starts it again there.
    pub fn listen_at(&self, address: &str, network: &str) -> anyhow::Result<()> {
        self.add_setting(&format!("listen_addresses = '{address}'"))?;
        let path = self.data().join("pg_hba.conf");
        let rules = std::fs::read_to_string(&path)?;
        std::fs::write(path, format!("{rules}host all all {network} trust\n"))?;
        self.stop(StopMode::Fast)?;
        self.restart()
    }

    /// Where its socket is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn in_new_folder() -> anyhow::Result<Self> {
        let programs = find_programs().context("PostgreSQL is not installed")?;
        let folder = std::env::temp_dir().join(format!("gander-postgres-{}", Uuid::now_v7().simple()));
        std::fs::create_dir(&folder)?;
        if geteuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder))?;
        }
        let guard = Command::new("sh")
            .args([
                "-c",
                "cat >/dev/null; kill -QUIT \"$(head -n 1 \"$0/data/postmaster.pid\")\"; sleep 1; rm -rf \"$0\"",
            ])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { programs, folder, _guard: guard })
    }

    /// Where its own database is.
    pub fn url(&self) -> String {
        format!("postgres://{USER}@localhost/postgres?host={}", self.folder.display())
    }

    /// Starts it again after it was stopped.
    pub fn restart(&self) -> anyhow::Result<()> {
        let log = self.folder.join("log");
        run(self
            .program("pg_ctl")
            .args(["start", "--wait", "--silent"])
            .arg("--pgdata")
            .arg(self.data())
            .arg("--log")
            .arg(log))
    }

    /// Stops it.
    pub fn stop(&self, mode: StopMode) -> anyhow::Result<()> {
        let mode = match mode {
            StopMode::Fast => "fast",
            StopMode::Immediate => "immediate",
        };
        run(self.program("pg_ctl").args(["stop", "--silent", "--mode", mode, "--pgdata"]).arg(self.data()))
    }

    /// The process that the others are children of.
    pub fn pid(&self) -> anyhow::Result<i32> {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid"))?;
        Ok(text.lines().next().context("empty pid file")?.trim().parse()?)
    }

    /// Processor time of all its processes so far, as far as they live.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        let parent = self.pid()?;
        let mut ticks = 0;
        for process in std::fs::read_dir("/proc")?.flatten() {
            let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else { continue };
            let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
            let fields: Vec<&str> = tail.split(' ').collect();
            let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
            if number(1) == u64::from(parent.unsigned_abs()) || head.starts_with(&format!("{parent} ")) {
                ticks += number(11) + number(12);
            }
        }
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Runs SQL as the database's owner; gives its output.
    pub fn psql(&self, sql: &str) -> anyhow::Result<String> {
        let url = self.url();
        let mut psql = Command::new(self.programs.join("psql"));
        let output =
            psql.args(["--quiet", "--no-psqlrc", "--tuples-only", "--dbname", &url, "--command", sql]).output()?;
        ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// One of its programs, as the user that the server runs as: it refuses to be root.
    pub fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        if !geteuid().is_root() {
            return Command::new(path);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(path).current_dir("/");
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn write_settings(&self, sync: DiskSync) -> anyhow::Result<()> {
        let socket = self.folder.display();
        let sync = if sync == DiskSync::On { "on" } else { "off" };
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{socket}'\nfsync = {sync}\nfull_page_writes = {sync}\n\
             max_connections = 300\nshared_buffers = 64MB\n"
        );
        let path = self.data().join("postgresql.auto.conf");
        Ok(std::fs::write(path, settings)?)
    }
}

/// The folder of PostgreSQL's programs: Debian keeps them out of the path.
fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    folders.into_iter().find(|folder| has_programs(folder))
}

fn has_programs(folder: &Path) -> bool {
    ["initdb", "pg_ctl", "psql"].iter().all(|name| folder.join(name).exists())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let log = std::env::temp_dir().join(format!("gander-postgres-{}.out", Uuid::now_v7().simple()));
    // A file and no pipe: a server that is started inherits it and never closes it.
    let file = std::fs::File::create(&log)?;
    let mut child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if began.elapsed() > Duration::from_secs(120) => {
                child.kill()?;
                break child.wait()?;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let output = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::remove_file(&log)?;
    ensure!(status.success(), "{command:?}: {status}: {output}");
    Ok(())
}
