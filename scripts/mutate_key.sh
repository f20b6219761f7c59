#!/usr/bin/env bash
# Leaves every part of the exact fast-forward out in turn; the random cases must notice each, or it must be told by others.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --release -p cyclonest-sim --features mutate --test mutations -- --nocapture
