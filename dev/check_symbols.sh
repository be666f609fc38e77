#!/bin/bash
# BUILD/libhone.so exports hone_* and nothing else, and everything that the public headers promise.
set -euo pipefail
build=${1:-build}
cd "$(dirname "$0")/.."
have=$(mktemp)
want=$(mktemp)
trap 'rm -f "$have" "$want"' EXIT
LC_ALL=C nm -D --defined-only "$build/libhone.so" | awk '{ print $NF }' | sort -u >"$have"
for h in include/hone/*.h; do echo "#include \"hone/$(basename "$h")\""; done |
    "${CC:-gcc}" -E -P -std=c17 -Iinclude -xc - | tr '\n' ' ' | tr ';' '\n' |
    sed -nE 's/.*visibility *\( *"default" *\) *\) *\)//; t found; d; :found; s/__attribute__.*//; s/^[^(]*[^(A-Za-z0-9_]([A-Za-z0-9_]+) *\(.*/\1/p' |
    sort -u >"$want"
bad=0
if grep -v '^hone_' "$have"; then
    echo "^ exported, but not hone_*"
    bad=1
fi
if comm -13 "$have" "$want" | grep .; then
    echo "^ declared in include/hone, but not in the library"
    bad=1
fi
if comm -23 "$have" "$want" | grep '^hone_'; then
    echo "^ exported, but not declared in include/hone"
    bad=1
fi
[ -s "$want" ] || { echo "no public function found"; bad=1; }
exit $bad
