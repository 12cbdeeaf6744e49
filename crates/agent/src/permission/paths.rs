//! Files that are special by their name: those that run or configure something, and those that hold secrets.

use std::path::{Component, Path, PathBuf};

/// Folders in which every file runs or configures something.
const PROTECTED_FOLDERS: [&str; 36] = [
    ".git",
    ".husky",
    ".githooks",
    ".vscode",
    ".zed",
    ".idea",
    ".vs",
    ".fleet",
    ".nvim",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".goose",
    ".gander",
    ".continue",
    ".windsurf",
    ".opencode",
    ".roo",
    ".amp",
    ".ci",
    ".circleci",
    ".buildkite",
    ".woodpecker",
    ".devcontainer",
    ".cargo",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".direnv",
    ".yarn",
    ".config",
    ".gitea",
    ".forgejo",
];

/// Files that run or configure something wherever they lie.
const PROTECTED_FILES: [&str; 56] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".envrc",
    ".xinitrc",
    ".xprofile",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".emacs",
    ".dir-locals.el",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".mcp.json",
    "mcp.json",
    "gander.toml",
    ".aider.conf.yml",
    ".goosehints",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    "jenkinsfile",
    "cloudbuild.yaml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pypirc",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".tool-versions",
    ".mise.toml",
];

/// Two names in a row that run something.
const PROTECTED_PAIRS: [(&str, &str); 3] = [(".github", "workflows"), (".github", "actions"), ("fish", "config.fish")];

/// Folders whose files are secrets.
const SECRET_FOLDERS: [&str; 5] = [".ssh", ".gnupg", ".aws", ".kube", ".docker"];

/// Files that hold secrets.
const SECRET_FILES: [&str; 17] = [
    ".env",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "credentials.json",
    "secrets.json",
    "service-account.json",
];

/// Endings of files that hold secrets.
const SECRET_ENDINGS: [&str; 8] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];

/// Endings of files that show what an `.env` would hold.
const SAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".defaults"];

/// True if writing this file could make something run, or change how tools and agents behave.
pub fn is_protected(path: &Path) -> bool {
    let names = names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    folders.iter().any(|folder| PROTECTED_FOLDERS.contains(&folder.as_str()))
        || PROTECTED_FILES.contains(&file.as_str())
        || PROTECTED_FOLDERS.contains(&file.as_str())
        || names.windows(2).any(|pair| PROTECTED_PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
        || is_secret(path)
}

/// True if this file holds secrets, by its name. Samples such as `.env.example` do not.
pub fn is_secret(path: &Path) -> bool {
    let names = names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    let env = file.starts_with(".env.") && !SAMPLES.iter().any(|sample| file.ends_with(sample));
    env || folders.iter().any(|folder| SECRET_FOLDERS.contains(&folder.as_str()))
        || SECRET_FOLDERS.contains(&file.as_str())
        || SECRET_FILES.contains(&file.as_str())
        || SECRET_ENDINGS.iter().any(|ending| file.ends_with(ending))
}

/// The path without `.` and `..`, by its letters alone.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
        normal
    })
}

/// Lower case, because some file systems do not tell `.GIT` from `.git`; trailing dots and spaces likewise.
fn names(path: &Path) -> Vec<String> {
    let normal = normal(path);
    let names = normal.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    names.map(|name| name.trim_end_matches(['.', ' ']).to_owned()).collect()
}
