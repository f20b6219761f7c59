#!/usr/bin/env bash
# Draws docs/gallery/: every kind of figure from results of this program, as SVG, PNG and PDF with its numbers as CSV,
# and docs/gallery/README.md with the command for each.
#
# usage: scripts/gallery.sh [FOLDER]
# CYCLONEST names the program; otherwise it is built. Takes a few minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${1:-docs/gallery}")
if [ -z "${CYCLONEST:-}" ]; then
    cargo build --release --quiet
    CYCLONEST=target/release/cyclonest
fi
program=$(realpath "$CYCLONEST")
mkdir -p "$target"
plans=$PWD/tests/inputs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

page=$target/README.md
{
    echo "# Gallery"
    echo
    echo "Every kind of figure, from results of this program. Written by \`scripts/gallery.sh\`, not by hand. Every figure is"
    echo "there as SVG, PNG and PDF, with its numbers as CSV, at the width of one IEEE column (3.487 in) unless its command"
    echo "says otherwise. [figures.md](../figures.md) explains the kinds and their columns."
} >"$page"

# data COMMAND: runs a command of the program for data, and keeps it for the page.
commands=()
data() {
    commands+=("$1")
    # 1 says that a layer has no result; the others are drawn.
    bash -c "${1//cyclonest /$program }" || [ $? = 1 ]
}

# figure NAME "SENTENCE" ARGUMENTS: draws in every format.
figure() {
    local name=$1 sentence=$2
    shift 2
    for format in svg png pdf; do
        "$program" plot "$@" -o "$target/$name.$format" 2>"$work/notes" || { cat "$work/notes" >&2; exit 1; }
    done
    local shown=()
    for argument in "$@"; do
        case $argument in *[[:space:]\[]*) shown+=("'$argument'") ;; *) shown+=("$argument") ;; esac
    done
    {
        printf '\n## %s\n\n%s\n\n![%s](%s.png)\n\n[SVG](%s.svg), [PDF](%s.pdf), [numbers](%s.csv)\n\n```\n' \
            "$name" "$sentence" "$name" "$name" "$name" "$name" "$name"
        printf '%s\n' "${commands[@]}"
        printf 'cyclonest plot %s -o %s.pdf\n```\n' "${shown[*]}" "$name"
    } >>"$page"
    echo "$name: $(tr '\n' ';' <"$work/notes")"
}

data 'cyclonest bench schedulers --arch simba --network alexnet --schedulers random:naive,random,greedy,anneal --budget 400 --format json -o bench.json'
figure speedup "Speed-up over naive random search, AlexNet on simba, 400 evaluations per layer." speedup bench.json --scale log

commands=()
data 'cyclonest bench schedulers --arch simba --network resnet50 --schedulers random,greedy --budget 200 --format json -o layers.json'
figure layers "The same question layer by layer, sorted: greedy over random search, ResNet-50." layers layers.json

commands=()
data 'for a in simba eyeriss nvdla_like; do cyclonest simulate --arch $a --network alexnet --format csv -o $a.csv; done'
data '(cat simba.csv; tail -qn +2 eyeriss.csv nvdla_like.csv) | cut -d, -f1,3,7 | sed "1s/.*/series,group,value/" >utilization.csv'
figure bars "Grouped bars of any quantity: utilization of the lanes, AlexNet on three machines." \
    bars utilization.csv --y-label "utilization of the lanes [1]"

commands=()
data 'cyclonest simulate --arch simba --network alexnet --format csv -o simba.csv'
data 'awk -F, '"'"'NR==1 {split($0,c); print "bar,part,detail,value"; next} {for (i=1;i<=NF;i++) if (split(c[i],w," ")==3 && w[3]~/^(reads|fills|updates|drains)_/ && $i>0) print $3","w[1]","w[2]","$i}'"'"' simba.csv >accesses.csv'
figure stacked "Stacked bars of any quantity: accesses by level (colour) and tensor (hatch)." \
    stacked accesses.csv --y-label "accesses [elements]"

commands=()
data 'cyclonest simulate --arch simba --network alexnet --format json -o alexnet.json'
figure energy "Energy by level (colour) and tensor (hatch)." energy alexnet.json
figure cycles "What the PEs do: computing, or waiting by reason." cycles alexnet.json
figure reuse "How often an element is used per fetch, by level and tensor." reuse alexnet.json

commands=()
data 'cyclonest simulate --arch simba --network resnet18 --format json -o simba.json'
data 'cyclonest simulate --arch eyeriss --network resnet18 --format json -o eyeriss.json'
figure roofline "Layers below the roofs of two machines." roofline simba.json eyeriss.json

commands=()
data 'for a in simba simba_4x eyeriss nvdla_like; do for n in 0 1 2 3 4 5 6 7; do cyclonest simulate --arch $a --network lenet --scheduler random:naive --seed $n --format json -o $a-$n.json; done; done'
figure pareto "Latency and energy of LeNet on four machines, eight mappings of each by naive random search, and the front of all." \
    pareto simba-?.json simba_4x-?.json eyeriss-?.json nvdla_like-?.json --scale log

commands=()
cp "$plans/explore_small.ron" .
data 'sed "s/keep: 20,/keep: 400,/" explore_small.ron >plan.ron && cyclonest explore plan.ron -o designs >/dev/null'
figure cloud "Area and throughput of the designs that an exploration kept (plan: tests/inputs/explore_small.ron), and their front." \
    pareto designs/results.csv --x area_mm2 --y macs_per_cycle --y-better higher --series mapping \
    --y-label "throughput [MACs per cycle]"

commands=()
data 'cyclonest compare --arch simba --network resnet18 --models exact,timeloop --format json -o compare.json'
figure scatter "Cost models against the simulator." scatter compare.json

commands=()
data 'for seed in 0 1 2 3 4; do for s in anneal random; do cyclonest schedule --arch simba --network resnet18 --layer layer2.0.conv2 --scheduler $s --seed $seed --budget 2000 --format json >search-$s-$seed.json; done; done'
figure convergence "Best found over the evaluations: median and middle half of five seeds." \
    convergence search-*.json --y-label "best estimate [cycles]" --scale log

commands=()
data 'cyclonest simulate --arch simba --network lenet --layer conv2 --no-fast-forward --trace trace.json >/dev/null'
figure gantt "A timeline of LeNet's second layer on simba: two of its PEs, and one of each port and network before them." \
    gantt trace.json --window 0:750 --width ieee2 --only DRAM --only "GB 0" --only "WBuf 0 " --only "PE 0 " --only "PE 1 "
figure occupancy "Slots that tiles take in the first weight buffer of the same run." \
    occupancy trace.json --window 0:1500 --only "WBuf 0 "
figure links "Traffic of the mesh's links in the same run." links trace.json

commands=()
data 'cyclonest simulate --arch eyeriss --network lenet --layer conv2 --no-fast-forward --trace trace.json >/dev/null'
figure pes "Share of the cycles in which every PE of the same run computes; one column has no work." pes trace.json

commands=()
data 'cyclonest reproduce samo-table4 -o reproduction >/dev/null'
figure space "Sizes of streaming design spaces, and what the matching constraints leave of them." \
    space reproduction/samo-table4.csv --width ieee2

commands=()
data '(echo machine,divisor,time_ms; for a in simba eyeriss; do for n in 1 2 4 8; do cyclonest simulate --arch $a --network alexnet --channels-divide $n --format json | grep -m1 "\"milliseconds\"" | sed "s/.*: /$a,$n,/; s/,\$//"; done; done) >scaling.csv'
figure lines "Time of AlexNet with its channels divided by 1 to 8." lines scaling.csv --series machine --x divisor --y time_ms --x-label "channels divided by" --scale log
