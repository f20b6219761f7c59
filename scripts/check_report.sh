#!/usr/bin/env bash
# Opens a page of `cyclonest report` in headless Chromium and checks it: nothing on the console, no request leaves the
# page, nothing wider than the window and no text of a figure below 10 px at 1280 and at 400 px, tables sort, light and
# dark differ.
#
# usage: scripts/check_report.sh [PAGE.html]
# Without a page, one is written from two runs; CYCLONEST names the program, otherwise it is built.
# SHOTS=FOLDER keeps pictures. Says so and succeeds where there is no Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "skipped: no Chromium (Debian: apt-get install chromium)"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -ge 1 ]; then
    cp "$1" "$work/report.html"
else
    if [ -z "${CYCLONEST:-}" ]; then
        cargo build --release --quiet
        CYCLONEST=target/release/cyclonest
    fi
    for scheduler in greedy random; do
        "$CYCLONEST" simulate --arch simba --network alexnet --scheduler $scheduler --format json -o "$work/$scheduler.json"
    done
    "$CYCLONEST" report "$work/greedy.json" "$work/random.json" -o "$work/report.html"
fi

# A copy that measures itself and tells the page around it.
cat >"$work/probe.js" <<'PROBE'
addEventListener('load', () => {
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) found.push(`content of ${wide} px in a window of ${innerWidth} px`);
  for (const text of document.querySelectorAll('svg.figure text')) {
    const box = text.getBoundingClientRect();
    const height = Math.min(box.width, box.height);
    if (text.textContent.trim().length > 2 && height < 10) found.push(`"${text.textContent.trim()}" is ${height.toFixed(1)} px high`);
  }
  const table = document.querySelector('table.sortable');
  const order = () => Array.from(table.tBodies[0].rows, row => row.cells[0].textContent).join();
  const before = order();
  table.tHead.rows[0].cells[1].querySelector('button').click();
  const rising = order();
  table.tHead.rows[0].cells[1].querySelector('button').click();
  if (table.tBodies[0].rows.length > 1 && rising === order()) found.push('the table does not sort');
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const light = paper();
  document.getElementById('theme').click();
  if (light === paper()) found.push('light and dark are the same');
  document.getElementById('theme').click();
  parent.postMessage(found.length ? found.join('; ') : 'fine', '*');
});
PROBE
awk -v probe="$work/probe.js" '
    /<\/body>/ { print "<script>"; while ((getline line < probe) > 0) print line; print "</script>" } { print }
' "$work/report.html" >"$work/probed.html"

failed=0
for width in 1280 400; do
    cat >"$work/frame.html" <<FRAME
<!DOCTYPE html><html><head><title>silent</title><link rel="icon" href="data:,"></head><body style="margin:0">
<iframe src="probed.html" width="$width" height="900" style="border:0"></iframe>
<script>addEventListener('message', event => { document.title = event.data; });</script></body></html>
FRAME
    common=(--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update
        --disable-sync --disable-extensions --no-first-run --user-data-dir="$work/profile" --enable-logging=stderr
        --hide-scrollbars --virtual-time-budget=8000)
    # A child that updates or calls home would be a request too: names resolve to nothing.
    timeout 120 "$browser" "${common[@]}" --host-resolver-rules="MAP * ~NOTFOUND" --log-net-log="$work/net.json" \
        --window-size=1300,900 --dump-dom "file://$work/frame.html" >"$work/dom.html" 2>"$work/log" || true
    title=$(sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' "$work/dom.html" | head -1)
    if [ "$title" != fine ]; then
        echo "at $width px: $title"
        failed=1
    fi
    if grep -F CONSOLE "$work/log"; then
        echo "at $width px: messages on the console"
        failed=1
    fi
    # Requests of the page; the browser's own have no page as their origin.
    if grep -oE '"(url|initiator)":"(https?|wss?)://[^"]*"' "$work/net.json" | grep -vE 'google(apis)?\.com|gstatic\.com'; then
        echo "at $width px: requests leave the page"
        failed=1
    fi
    if [ -n "${SHOTS:-}" ]; then
        mkdir -p "$SHOTS"
        for theme in light dark; do
            sed "s/<html lang=\"en\">/<html lang=\"en\" data-theme=\"$theme\">/" "$work/report.html" >"$work/shot.html"
            sed "s/probed.html/shot.html/; s/height=\"900\"/height=\"2600\"/" "$work/frame.html" >"$work/framed.html"
            timeout 120 "$browser" "${common[@]}" --window-size="$width,2600" --screenshot="$SHOTS/report-$width-$theme.png" \
                "file://$work/framed.html" 2>/dev/null
        done
    fi
done
[ $failed = 0 ] && echo "the page is fine at 1280 and 400 px"
exit $failed
