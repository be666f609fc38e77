#!/bin/bash
# run_fuzz.sh BUILD SECONDS test/fuzz/fuzz_X.c...: each target for that long, from test/fuzz/corpus/X and from what
# earlier runs found (BUILD/corpus/X). What breaks a target is left in BUILD/crash/X-*.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=$1 seconds=$2
shift 2
passed=0 failed=0
[ $# != 0 ] || echo "SKIP no test/fuzz/fuzz_*.c"
mkdir -p "$build/crash"
for source in "$@"; do
    name=$(basename "$source" .c)
    seeds=test/fuzz/corpus/${name#fuzz_}
    mkdir -p "$build/corpus/${name#fuzz_}"
    [ -d "$seeds" ] || seeds=
    echo "$name, $seconds s"
    if ASAN_OPTIONS=detect_leaks=1 "$build/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/crash/${name#fuzz_}-" "$build/corpus/${name#fuzz_}" $seeds >"$build/$name.log" 2>&1; then
        grep -E 'number_of_executed_units|new_units_added' "$build/$name.log"
        passed=$((passed + 1))
    else
        tail -40 "$build/$name.log"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
