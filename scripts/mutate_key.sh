#!/usr/bin/env bash
# Leaves every component out of the key of the exact fast-forward in turn; the random cases must notice each.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --release -p cyclonest-sim --features mutate --test mutations -- --nocapture
