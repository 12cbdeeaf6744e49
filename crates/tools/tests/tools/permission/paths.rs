//! Files that are special by their name.

use std::path::Path;

use gander_domain::{Policy, ToolCall};
use gander_tools::permission::{CallContext, WorkspaceFolders, decide_permission, is_protected_path, is_secret_path};

use crate::permission::{context, read, verdict, word, write};

const PROTECTED: [&str; 70] = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/info/attributes",
    "sub/.git/hooks/x",
    ".GIT/config",
    ".git./config",
    ".husky/pre-push",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".inputrc",
    ".envrc",
    "fish/config.fish",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".VSCode/tasks.json",
    ".zed/settings.json",
    ".zed/tasks.json",
    ".idea/workspace.xml",
    ".nvim.lua",
    ".exrc",
    ".vimrc",
    ".mcp.json",
    ".cursor/mcp.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".goose/config.yaml",
    ".gander/x",
    "gander.toml",
    "sub/gander.toml",
    ".github/workflows/ci.yml",
    ".github/actions/x/action.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".travis.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    ".ci/run",
    ".buildkite/pipeline.yml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".devcontainer/devcontainer.json",
    ".cargo/config.toml",
    "rust-toolchain.toml",
    ".npmrc",
    ".yarnrc.yml",
    ".gitmodules",
    ".ssh/authorized_keys",
    ".env",
    "a/../.git/config",
    ".git",
    "sub/.git",
    "CLAUDE.local.md",
    "docs/AGENTS.md",
    ".agents/skills/x/SKILL.md",
    ".kiro/steering/x.md",
    ".github/prompts/x.prompt.md",
    ".github/instructions/x.md",
    "project.code-workspace",
    "My.Code-Workspace",
    ".lintstagedrc.json",
    "lefthook.toml",
    ".Rprofile",
    ".azure-pipelines/build.yml",
    ".run/app.run.xml",
    "mise.local.toml",
];

const OPEN: [&str; 14] = [
    "src/main.rs",
    "Cargo.toml",
    "README.md",
    ".github/README.md",
    ".gitignore",
    ".editorconfig",
    "git/config",
    "docs/git.md",
    "package.json",
    "x.git/readme",
    ".env.example",
    "src/env.rs",
    "profile",
    "src/zshrc.rs",
];

const SECRET: [&str; 34] = [
    ".env",
    "sub/.env",
    ".env.local",
    ".env.production",
    ".ENV",
    "id_rsa",
    "id_ed25519",
    "tls/server.pem",
    "tls/server.key",
    "x.p12",
    "x.pfx",
    ".netrc",
    ".npmrc",
    ".git-credentials",
    ".ssh/config",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    ".envrc",
    "deploy/prod.env",
    ".azure/accessTokens.json",
    ".config/gh/hosts.yml",
    ".config/gcloud",
    "a/.CONFIG/gcloud/x.db",
    ".git/config",
    "sub/.git/config",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".my.cnf",
    "secrets.yaml",
    "client_secret_12.json",
    "infra/terraform.tfstate",
    "home/.bash_history",
    "share/keyrings/login.keyring",
];

#[test]
fn protected_files_ask_even_in_auto_edit() {
    for path in PROTECTED {
        assert!(is_protected_path(Path::new(path)), "{path}");
        let words = [Policy::AutoEdit, Policy::Ask, Policy::Auto]
            .map(|policy| word(&verdict(policy, &write(&format!("/ws/{path}")))));
        assert_eq!(words, ["ask", "ask", "allow"], "{path}");
    }
}

#[test]
fn other_files_are_edited_freely_in_auto_edit() {
    for path in OPEN {
        assert!(!is_protected_path(Path::new(path)), "{path}");
        let words = [Policy::AutoEdit, Policy::Ask, Policy::ReadOnly]
            .map(|policy| word(&verdict(policy, &write(&format!("/ws/{path}")))));
        assert_eq!(words, ["allow", "ask", "deny"], "{path}");
    }
}

#[test]
fn secrets_are_not_read_unasked() {
    for path in SECRET {
        assert!(is_secret_path(Path::new(path)), "{path}");
        let words = [Policy::ReadOnly, Policy::Ask, Policy::AutoEdit, Policy::Auto]
            .map(|policy| word(&verdict(policy, &read(&format!("/ws/{path}")))));
        assert_eq!(words, ["deny", "ask", "ask", "allow"], "{path}");
    }
    for path in OPEN {
        assert_eq!(word(&verdict(Policy::ReadOnly, &read(&format!("/ws/{path}")))), "allow", "{path}");
    }
}

#[test]
fn what_lies_outside_asks() {
    let paths = ["/etc/passwd", "/wsx/a", "/ws2/a", "/"];
    assert_eq!(paths.map(|path| word(&verdict(Policy::AutoEdit, &write(path)))), ["ask"; 4]);
    assert_eq!(paths.map(|path| word(&verdict(Policy::Ask, &read(path)))), ["ask"; 4]);
    assert_eq!(word(&verdict(Policy::AutoEdit, &write("/lib/a"))), "allow");
}

#[test]
fn the_name_of_the_workspace_itself_counts() {
    let row = |root: &str, path: &str| {
        let folders = WorkspaceFolders { root: root.into(), extra: Vec::new() };
        let decided = |call: &ToolCall| {
            decide_permission(
                Policy::AutoEdit,
                &[],
                &[],
                call,
                &CallContext { folders: folders.clone(), ..context(call) },
            )
        };
        let (changes, looks) = (decided(&write(path)), decided(&read(path)));
        (word(&changes), word(&looks))
    };
    assert_eq!(row("/repo/.github", "/repo/.github/workflows/ci.yml"), ("ask", "allow"));
    assert_eq!(row("/repo/.vscode", "/repo/.vscode/tasks.json"), ("ask", "allow"));
    assert_eq!(row("/home/u/.ssh", "/home/u/.ssh/config"), ("ask", "ask"));
    assert_eq!(row("/home/u/.config/notes", "/home/u/.config/notes/a.md"), ("allow", "allow"));
    assert_eq!(row("/", "/srv/a.md"), ("allow", "allow"));
}
