#!/usr/bin/env python3
"""A scheduler in another language: everything at the outermost level, output channels over the first mesh axis.

cyclonest schedule --arch small3 --network alexnet --scheduler "external:python3 docs/external_scheduler.py"
"""
import json, sys

question = json.load(sys.stdin)
bounds, levels = question["problem"]["bounds"], question["arch"]["levels"]
answer = []
for position, level in enumerate(levels):
    held = {tensor for bank in level["banks"] for tensor in bank["holds"]}
    # The outermost level keeps everything; here the others keep nothing that could be too large for them.
    keeps = sorted(held) if position == 0 else []
    answer.append({"level": level["name"], "temporal": [], "spatial": [], "keeps": keeps})
answer[0]["temporal"] = [[dim, trips] for dim, trips in bounds.items() if trips > 1]
json.dump({"mapping": {"bounds": bounds, "levels": answer}}, sys.stdout)
