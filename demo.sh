#!/bin/bash
# Installs what is missing, builds, and learns a two-dimensional density by diffusion, in a few minutes on two cores.
# ./demo.sh [FOLDER]: where its report goes (demo_out)
set -uo pipefail
cd "$(dirname "$0")" || exit 1
out=${1:-demo_out}
build=${BUILD:-build}
echo "== tools"
dev/bootstrap.sh || exit 1
echo "== build"
make --no-print-directory -j"$(nproc)" BUILD="$build" all || exit 1
case $build in /*) hone=$build/hone ;; *) hone=./$build/hone ;; esac
[ -x "$hone" ] || { echo "there is no $hone: this version has no command line yet"; exit 1; }
echo "== demo"
"$hone" demo density --out "$out" || exit 1
for report in "$out/report.html" "$out/index.html" "$out"; do [ ! -e "$report" ] || break; done
[ -e "$report" ] || { echo "the demo left nothing in $out"; exit 1; }
echo "open $(realpath "$report")"
