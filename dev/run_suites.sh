#!/bin/bash
# run_suites.sh 'COMMAND of hone_test' SUITE...: each suite in turn; ends in one line `N passed, N failed`.
set -uo pipefail
command=$1
shift
passed=0 failed=0
for s in "$@"; do
    out=$($command "$s/" 2>&1) && code=0 || code=$?
    printf '%s\n' "$out" | grep -vE '^[0-9]+ passed, [0-9]+ failed'
    last=$(printf '%s\n' "$out" | grep -E '^[0-9]+ passed, [0-9]+ failed' | tail -1)
    p=${last%% passed*} f=${last#*, }
    f=${f%% failed*}
    [ "$code" = 0 ] || [ "${f:-0}" != 0 ] || { echo "$s: ended with code $code"; f=1; }
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0}))
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed != 0 ]
