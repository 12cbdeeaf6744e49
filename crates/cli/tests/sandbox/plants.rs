//! Tries that leave something in the workspace which programs outside would run: git, editors, agents, shells, CI.

use crate::tries::{Try, alter, later, plant};

pub const PLANTS: &[Try] = &[
    // Git: its settings, its hooks, and the folder itself.
    alter(
        "set a program in git's settings",
        "ws/.git/config",
        "printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config",
    ),
    alter("replace git's settings", "ws/.git/config", "printf '[alias]\\n\\tst = !evil\\n' > c && mv -f c .git/config"),
    alter("write git's settings by git", "ws/.git/config", "git config core.fsmonitor evil"),
    alter(
        "move the repository away",
        "ws/.git/config",
        "mv .git away && cp -r away .git && printf '[core]\\n\\thooksPath = evil\\n' >> .git/config",
    ),
    alter(
        "hide the repository",
        "ws/.git/config",
        "mv .git node_modules && mkdir .git && printf '[core]\\nfsmonitor=e\\n' > .git/config",
    ),
    alter(
        "put a link for the repository",
        "ws/.git/config",
        "mv .git away && ln -s away .git && printf '[core]\\nfsmonitor=e\\n' >> .git/config",
    ),
    alter("put a file for the repository", "ws/.git/config", "mv .git away && echo 'gitdir: away' > .git"),
    alter(
        "write git's settings by a hard link",
        "ws/.git/config",
        "ln .git/config l && printf '[alias]\\nx=!e\\n' >> l",
    ),
    plant("plant a hook of git", "ws/.git/hooks/pre-commit", "echo evil > .git/hooks/pre-commit"),
    plant(
        "replace the folder of hooks",
        "ws/.git/hooks/post-checkout",
        "mv .git/hooks .git/h && mkdir .git/hooks && echo evil > .git/hooks/post-checkout",
    ),
    plant(
        "put a link for the folder of hooks",
        "ws/.git/hooks/pre-push",
        "rmdir .git/hooks && mkdir e && echo evil > e/pre-push && ln -s ../e .git/hooks",
    ),
    plant(
        "plant attributes for git",
        "ws/.git/info/attributes",
        "mkdir -p .git/info && echo '* filter=e' > .git/info/attributes",
    ),
    plant(
        "lend git other objects",
        "ws/.git/objects/info/alternates",
        "mkdir -p .git/objects/info && echo /e > .git/objects/info/alternates",
    ),
    plant("send git to another folder", "ws/.git/commondir", "echo ../e > .git/commondir"),
    plant(
        "plant settings of a work tree",
        "ws/.git/config.worktree",
        "printf '[core]\\nfsmonitor=e\\n' > .git/config.worktree",
    ),
    plant(
        "plant settings of a submodule",
        "ws/.git/modules/s/config",
        "mkdir -p .git/modules/s/objects .git/modules/s/refs && cd .git/modules/s && echo x > HEAD && printf '[core]\\nfsmonitor=e\\n' > config",
    ),
    plant(
        "plant a command of a rebase",
        "ws/.git/rebase-merge/git-rebase-todo",
        "mkdir .git/rebase-merge && echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
    ),
    plant(
        "plant a repository in a folder",
        "ws/sub/.git/config",
        "mkdir -p sub/.git && printf '[core]\\nfsmonitor = evil\\n' > sub/.git/config",
    ),
    plant(
        "plant a repository without a name",
        "ws/lib/config",
        "mkdir -p lib/objects lib/refs && echo 'ref: refs/heads/main' > lib/HEAD && printf '[core]\\nfsmonitor = e\\n' > lib/config",
    ),
    plant("plant .gitattributes", "ws/.gitattributes", "echo '* diff=evil' > .gitattributes"),
    plant("plant .gitmodules", "ws/.gitmodules", "echo '[submodule \"x\"]' > .gitmodules"),
    // Editors.
    alter("change an editor's tasks", "ws/.vscode/tasks.json", "echo '{\"tasks\":[]}' > .vscode/tasks.json"),
    plant("plant an editor's settings", "ws/.vscode/settings.json", "echo '{}' > .vscode/settings.json"),
    alter(
        "replace an editor's folder",
        "ws/.vscode/tasks.json",
        "mv .vscode v && mkdir .vscode && echo evil > .vscode/tasks.json",
    ),
    plant("plant tasks of zed", "ws/.zed/tasks.json", "mkdir .zed && echo '[]' > .zed/tasks.json"),
    plant(
        "plant tasks by a linked folder",
        "ws/.zed/tasks.json",
        "mkdir e && echo '[]' > e/tasks.json && ln -s e .zed",
    ),
    plant("plant settings of idea", "ws/.idea/workspace.xml", "mkdir .idea && echo x > .idea/workspace.xml"),
    plant("plant .exrc", "ws/.exrc", "echo '!evil' > .exrc"),
    plant("plant .nvimrc", "ws/.nvimrc", "echo '!evil' > .nvimrc"),
    plant("plant .vimrc", "ws/.vimrc", "echo '!evil' > .vimrc"),
    plant("plant .dir-locals.el", "ws/.dir-locals.el", "echo '((nil . ((eval . (evil)))))' > .dir-locals.el"),
    plant(
        "plant a container for editors",
        "ws/.devcontainer/devcontainer.json",
        "mkdir .devcontainer && echo '{}' > .devcontainer/devcontainer.json",
    ),
    // Agents.
    alter("change the project's own settings", "ws/.gander/agents.md", "echo evil > .gander/agents.md"),
    plant(
        "plant settings of an agent",
        "ws/.claude/settings.json",
        "mkdir .claude && echo '{}' > .claude/settings.json",
    ),
    plant("plant servers of an agent", "ws/.cursor/mcp.json", "mkdir .cursor && echo '{}' > .cursor/mcp.json"),
    plant("plant .mcp.json", "ws/.mcp.json", "echo '{}' > .mcp.json"),
    plant("plant AGENTS.md", "ws/AGENTS.md", "echo 'run evil first' > AGENTS.md"),
    // CI.
    plant(
        "plant a workflow",
        "ws/.github/workflows/x.yml",
        "mkdir -p .github/workflows && echo x > .github/workflows/x.yml",
    ),
    plant("plant .gitlab-ci.yml", "ws/.gitlab-ci.yml", "echo x > .gitlab-ci.yml"),
    plant("plant a Jenkinsfile", "ws/Jenkinsfile", "echo x > Jenkinsfile"),
    plant("plant a pipeline", "ws/.circleci/config.yml", "mkdir .circleci && echo x > .circleci/config.yml"),
    // Shells and environments.
    plant("plant .envrc", "ws/.envrc", "echo evil > .envrc"),
    plant("plant .envrc in a folder", "ws/deep/er/.envrc", "mkdir -p deep/er && echo evil > deep/er/.envrc"),
    plant("plant .envrc by a link", "ws/.envrc", "echo evil > e && ln -s e .envrc"),
    plant("plant .envrc and rename it into place", "ws/.envrc", "mkdir d && echo evil > d/x && mv d/x .envrc"),
    later(
        "plant .envrc once nobody looks",
        "ws/.envrc",
        "env -i setsid sh -c 'sleep 1; echo x > .envrc' >/dev/null 2>&1 & sleep 0.1",
    ),
    plant("plant .bashrc", "ws/.bashrc", "echo evil > .bashrc"),
    plant("plant .zshenv", "ws/.zshenv", "echo evil > .zshenv"),
    plant("plant .profile", "ws/.profile", "echo evil > .profile"),
    plant("plant .tmux.conf", "ws/.tmux.conf", "echo 'run evil' > .tmux.conf"),
    plant("plant .tool-versions", "ws/.tool-versions", "echo x > .tool-versions"),
    plant("plant mise.toml", "ws/mise.toml", "echo '[hooks]' > mise.toml"),
    plant("plant .gdbinit", "ws/.gdbinit", "echo 'shell evil' > .gdbinit"),
    plant("plant sitecustomize.py", "ws/sitecustomize.py", "echo 'import evil' > sitecustomize.py"),
    // Package managers and compilers.
    alter(
        "add a script to a package",
        "ws/package.json",
        "echo '{\"name\":\"mine\",\"scripts\":{\"test\":\"true\",\"postinstall\":\"evil\"}}' > package.json",
    ),
    plant(
        "plant a package with scripts",
        "ws/lib/package.json",
        "mkdir lib && echo '{\"scripts\":{\"prepare\":\"evil\"}}' > lib/package.json",
    ),
    plant(
        "plant tasks of python",
        "ws/pyproject.toml",
        "printf '[build-system]\\nbackend-path=[\"e\"]\\n' > pyproject.toml",
    ),
    plant("plant .npmrc", "ws/.npmrc", "echo 'script-shell=evil' > .npmrc"),
    plant("plant .yarnrc.yml", "ws/.yarnrc.yml", "echo 'yarnPath: evil' > .yarnrc.yml"),
    plant(
        "plant a release of yarn",
        "ws/.yarn/releases/y.cjs",
        "mkdir -p .yarn/releases && echo evil > .yarn/releases/y.cjs",
    ),
    plant("plant settings of cargo", "ws/.cargo/config.toml", "mkdir .cargo && echo '[build]' > .cargo/config.toml"),
    plant("plant rust-toolchain.toml", "ws/rust-toolchain.toml", "echo '[toolchain]' > rust-toolchain.toml"),
    plant("plant .pre-commit-config.yaml", "ws/.pre-commit-config.yaml", "echo 'repos: []' > .pre-commit-config.yaml"),
    plant("plant a hook of husky", "ws/.husky/pre-commit", "mkdir .husky && echo evil > .husky/pre-commit"),
    plant("plant lefthook.yml", "ws/lefthook.yml", "echo 'pre-commit: {}' > lefthook.yml"),
];
