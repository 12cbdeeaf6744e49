//! What a task consists of, given what is on this machine. Nothing is run here.

use crate::web::Web;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Run,
    Web,
    Install,
    Dist,
    PublishCheck,
}

impl Task {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "run" => Some(Self::Run),
            "web" => Some(Self::Web),
            "install" => Some(Self::Install),
            "dist" => Some(Self::Dist),
            "publish-check" => Some(Self::PublishCheck),
            _ => None,
        }
    }
}

/// One thing to do. The first that fails is the last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Say(String),
    Fail(String),
    /// `folder` is relative to the repository.
    Run {
        program: &'static str,
        arguments: Vec<String>,
        folder: &'static str,
    },
    MakePackages {
        arguments: Vec<String>,
    },
}

/// The steps of a task; `rest` goes to the program that ends it.
pub(crate) fn plan(task: Task, web: &Web, rest: Vec<String>) -> Vec<Step> {
    // In the profile of the tests: both share what is built.
    let run = ["run", "--quiet", "--bin", "gander", "--"];
    let install = ["install", "--path", "crates/cli", "--profile", "dist", "--locked"];
    let (mut steps, last) = match task {
        Task::Web => return page(web, Step::Fail),
        Task::PublishCheck => return vec![publish_check(&rest)],
        Task::Run => (page(web, Step::Say), cargo(&run, rest)),
        Task::Install => (page(web, Step::Say), cargo(&install, rest)),
        // What is published has the full page.
        Task::Dist => (page(web, Step::Fail), Step::MakePackages { arguments: rest }),
    };
    steps.push(last);
    steps
}

/// Builds the page. Who asked for nothing else fails without Node, everybody else goes on with the built-in page.
fn page(web: &Web, without_node: fn(String) -> Step) -> Vec<Step> {
    if !web.exists {
        return vec![Step::Say("no web/package.json: gander has only its built-in page, nothing to build".to_owned())];
    }
    if !web.node {
        let text = "Node and npm are not found: the page in web/ is not built, gander shows its built-in page";
        return vec![without_node(text.to_owned())];
    }
    if web.is_fresh {
        return vec![Step::Say("web/dist is newer than its sources: not built again".to_owned())];
    }
    let npm = |arguments: &[&str]| Step::Run { program: "npm", arguments: owned(arguments), folder: "web" };
    let mut steps = vec![Step::Say("Node and npm are found: building the page in web/".to_owned())];
    if !web.is_installed {
        // No package of somebody else runs a script on this machine.
        steps.push(npm(&["ci", "--no-audit", "--no-fund", "--ignore-scripts"]));
    }
    steps.push(npm(&["run", "build"]));
    steps
}

/// Cargo finds the order itself, and takes crates that are on no registry from the packages that it has just made.
fn publish_check(rest: &[String]) -> Step {
    let publish = ["publish", "--workspace", "--dry-run", "--locked", "--allow-dirty"];
    match rest {
        [] => cargo(&publish, owned(&["--no-verify"])),
        [verify] if verify == "--verify" => cargo(&publish, Vec::new()),
        [unknown, ..] => Step::Fail(format!("publish-check takes --verify or nothing: {unknown}")),
    }
}

fn cargo(arguments: &[&str], rest: Vec<String>) -> Step {
    let arguments = owned(arguments).into_iter().chain(rest).collect();
    Step::Run { program: "cargo", arguments, folder: "" }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: Web = Web { exists: true, node: true, is_installed: false, is_fresh: false };

    /// One line for each step: programs with their folder, what is said by its first word.
    fn lines(task: Task, web: &Web, rest: &[&str]) -> Vec<String> {
        let line = |step| match step {
            Step::Say(text) => format!("say {}", text.split(' ').next().unwrap_or_default()),
            Step::Fail(text) => format!("fail {}", text.split(' ').next().unwrap_or_default()),
            Step::Run { program, arguments, folder } => format!("{folder}: {program} {}", arguments.join(" ")),
            Step::MakePackages { arguments } => format!("packages {}", arguments.join(" ")),
        };
        plan(task, web, owned(rest)).into_iter().map(line).collect()
    }

    #[test]
    fn without_a_page_only_cargo_runs() {
        let nothing = Web::default();
        assert_eq!(lines(Task::Web, &nothing, &[]), ["say no"]);
        assert_eq!(
            lines(Task::Run, &nothing, &["run", "help"]),
            ["say no", ": cargo run --quiet --bin gander -- run help"]
        );
        let install = ": cargo install --path crates/cli --profile dist --locked --root /opt";
        assert_eq!(lines(Task::Install, &nothing, &["--root", "/opt"]), ["say no", install]);
    }

    #[test]
    fn with_node_the_page_is_built_first() {
        let built = ["say Node", "web: npm ci --no-audit --no-fund --ignore-scripts", "web: npm run build"];
        assert_eq!(lines(Task::Web, &READY, &[]), built);
        for task in [Task::Run, Task::Install] {
            let lines = lines(task, &READY, &[]);
            assert_eq!(lines[..3], built);
            assert!(lines[3].starts_with(": cargo "), "{lines:?}");
        }
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        let installed = Web { is_installed: true, ..READY };
        assert_eq!(lines(Task::Web, &installed, &[]), ["say Node", "web: npm run build"]);
        let fresh = Web { is_fresh: true, ..installed };
        assert_eq!(lines(Task::Web, &fresh, &[]), ["say web/dist"]);
    }

    #[test]
    fn without_node_only_the_page_itself_fails() {
        let bare = Web { node: false, ..READY };
        assert_eq!(lines(Task::Web, &bare, &[]), ["fail Node"]);
        assert_eq!(lines(Task::Dist, &bare, &[])[0], "fail Node");
        assert_eq!(lines(Task::Run, &bare, &[])[0], "say Node");
        assert_eq!(lines(Task::Install, &bare, &[])[0], "say Node");
    }

    #[test]
    fn a_check_of_what_is_published_uploads_nothing() {
        let quick = lines(Task::PublishCheck, &READY, &[]);
        assert_eq!(quick, [": cargo publish --workspace --dry-run --locked --allow-dirty --no-verify"]);
        let whole = lines(Task::PublishCheck, &READY, &["--verify"]);
        assert_eq!(whole, [": cargo publish --workspace --dry-run --locked --allow-dirty"]);
        assert_eq!(lines(Task::PublishCheck, &READY, &["--force"]), ["fail publish-check"]);
    }

    #[test]
    fn tasks_have_names() {
        let named = ["run", "web", "install", "dist"].map(Task::named);
        assert_eq!(named, [Some(Task::Run), Some(Task::Web), Some(Task::Install), Some(Task::Dist)]);
        assert_eq!(Task::named("publish-check"), Some(Task::PublishCheck));
        assert_eq!(Task::named("help"), None);
    }
}
