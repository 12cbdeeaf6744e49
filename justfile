# What people who change gander type. Plain cargo does the same; see CONTRIBUTING.md.

# Everything that is quick: formatting, lints, tests.
default: check test

# Before every commit.
check:
    cargo fmt --all --check
    cargo clippy --locked --workspace --all-targets -- -D warnings

# Every test of every crate. Needs nothing but Rust and a C compiler.
test:
    cargo test --locked --workspace

# Rewrites expected files; look at the diff before you commit it.
update:
    UPDATE=1 UPDATE_EXPECT=1 cargo test --locked --workspace

# Figures of the release binary, each beside the raw upstream.
bench *arguments:
    cargo run --locked --release -p gander-bench -- {{arguments}}

# A PostgreSQL server for tests and trials, until ctrl-c; prints its URL. Tests start their own if PostgreSQL is installed.
postgres:
    cargo run --locked -p gander-testkit --bin gander-test-postgres

# Kills the real binary at random moments while clients stream.
kill times="100":
    GANDER_KILLS={{times}} cargo test --locked -p gander-cli --test kill -- --nocapture

# Seeded bugs: each must turn a named test red.
mutation-check:
    scripts/mutation-check

# Every test, then docs/conformance.md from what they have shown.
conformance:
    scripts/conformance

# Clients that nobody here wrote. Needs Node and Python.
interop:
    for client in interop/*/run; do "$client" || exit 1; done

# What the build machine runs.
ci:
    .ci/run
