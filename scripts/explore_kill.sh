#!/usr/bin/env bash
# Kills an exploration of 10^7 designs at random times and resumes it, until it has been killed KILLS times; then
# compares its files with those of an exploration that nobody interrupted.
#
#   scripts/explore_kill.sh [PLAN [KILLS]]      defaults: scheduler/plans/ten_million.ron 20
#
# CYCLONEST names the program (default target/release/cyclonest), SEED seeds the times (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
program=${CYCLONEST:-target/release/cyclonest}
plan=${1:-scheduler/plans/ten_million.ron}
kills=${2:-20}
RANDOM=${SEED:-1}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

start=$(date +%s%N)
"$program" explore "$plan" --no-prune -o "$folder/whole" > "$folder/whole.txt"
whole_ms=$((($(date +%s%N) - start) / 1000000))
echo "uninterrupted: $whole_ms ms"

killed=0 runs=0
while [ "$killed" -lt "$kills" ]; do
    runs=$((runs + 1))
    if [ -e "$folder/killed/plan.ron" ]; then
        "$program" explore --resume "$folder/killed" > /dev/null &
    else
        "$program" explore "$plan" --no-prune -o "$folder/killed" > /dev/null &
    fi
    pid=$!
    # Every run may do about 1/KILLS of the work, and the first moments of a run are hit as well.
    sleep "0.$(printf '%03d' $((RANDOM % (2 * whole_ms / kills + 1) % 1000)))"
    if kill -9 "$pid" 2> /dev/null; then
        killed=$((killed + 1))
    else
        echo "run $runs ended by itself after $killed kills: begun again from a third of its log"
        head -c $(($(stat -c %s "$folder/killed/log") / 3)) "$folder/killed/log" > "$folder/third"
        cp "$folder/third" "$folder/killed/log"
        rm -f "$folder/killed/results.csv" "$folder/killed/summary.json"
    fi
    wait "$pid" 2> /dev/null || true
    [ ! -s "$folder/killed/log" ] || "$program" explore status "$folder/killed" | head -1
done
"$program" explore --resume "$folder/killed" > /dev/null
# Chunks in the log: none lost, none twice.
chunks=$(grep -ao '"chunk":[0-9]*' "$folder/killed/log" | sort | uniq -c | awk '$1 != 1 { twice++ } END { print NR, twice + 0 }')
echo "chunks in the log, and of them written twice: $chunks"
cmp "$folder/whole/results.csv" "$folder/killed/results.csv"
cmp "$folder/whole/summary.json" "$folder/killed/summary.json"
[ "${chunks#* }" = 0 ]
echo "equal after $killed kills"
