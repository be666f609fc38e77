#!/bin/bash
# ./test.sh          installs what is missing, builds, tests, checks the rules of the house
# ./test.sh --all    also sanitizers, fuzzing, another CPU, planted faults; CI=true means --all
# Ends in one line `N passed, N failed`: cases of the tests, and one for every other stage.
# BUILD= another build folder   FUZZ_SECONDS= a fuzz target (60)   V=1 shows everything that a stage prints
set -uo pipefail
cd "$(dirname "$0")" || exit 1
all=0
[ "${CI:-}" != true ] || all=1
for a in "$@"; do
    case $a in
    --all) all=1 ;;
    *) sed -n '2,5s/^# //p' "$0"; [ "$a" = --help ]; exit $(($? * 2)) ;;
    esac
done
export BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
logs=$BUILD/log
mkdir -p "$logs"
make="make --no-print-directory -j$(nproc) BUILD=$BUILD"
passed=0 failed=0 skipped=()

# stage NAME COMMAND...: runs it, counts the cases that its closing lines tell, or itself as one
stage() {
    local name=$1 from=$SECONDS code=0 p=0 f=0 line mark=ok
    shift
    printf '== %s\n' "$name"
    if [ -n "${V:-}" ]; then
        "$@" 2>&1 | tee "$logs/$name.log" || code=$?
    else
        "$@" >"$logs/$name.log" 2>&1 || code=$?
    fi
    while IFS= read -r line; do skipped+=("$name: ${line#SKIP }"); done < <(grep '^SKIP ' "$logs/$name.log")
    line=$(awk '/^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3; n++ } END { if (n) print p + 0, f + 0 }' "$logs/$name.log")
    if [ -n "$line" ]; then
        p=${line% *} f=${line#* }
        [ $code = 0 ] || [ "$f" != 0 ] || f=1
    elif [ $code = 0 ]; then
        p=1
    else
        f=1
    fi
    [ "$f" = 0 ] || { [ -n "${V:-}" ] || grep -v "^  CC " "$logs/$name.log" | tail -n 60; mark=FAILED; }
    passed=$((passed + p)) failed=$((failed + f))
    printf '   %s: %s passed, %s failed, %s s\n' "$mark" "$p" "$f" $((SECONDS - from))
    [ "$f" = 0 ]
}
skip() { skipped+=("$1: $2"); }
have() { command -v "$1" >/dev/null 2>&1; }
finish() {
    local s
    for s in "${skipped[@]}"; do printf 'skipped  %s\n' "$s"; done
    echo "$passed passed, $failed failed"
    [ $failed = 0 ]
    exit
}

echo "== tools"
dev/bootstrap.sh $([ $all = 0 ] || echo --all) || { failed=1; finish; }
stage build $make all || finish
stage test $make test
for c in $($make -s print-CHECKS); do stage "check-$c" $make "check-$c"; done
if [ $all = 1 ]; then
    stage san $make san
    stage tsan $make tsan
    stage plain $make BUILD="$BUILD/plain" DNNL=0 PNG=0 OPENMP= test
    if ! have clang; then
        skip fuzz "no clang here"
    elif [ -n "$($make -s print-FUZZSRC)" ]; then
        stage fuzz $make fuzz
    fi
    if have aarch64-linux-gnu-gcc && have qemu-aarch64; then
        stage aarch64 $make aarch64
    else
        skip aarch64 "no cross-compiler or no qemu here"
    fi
    [ ! -x dev/faults.sh ] || stage faults dev/faults.sh --sample
fi
finish
