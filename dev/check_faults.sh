#!/bin/bash
# Every planted fault still applies; and the planter itself, shown a small tree, catches, misses and refuses what it has to.
set -uo pipefail
dev=$(cd "$(dirname "$0")" && pwd)
"$dev/faults.sh" --check || exit 1
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
mkdir -p "$at"/{dev/faults,src}
cd "$at" || exit 1
bad=0
cat >src/a.c <<'END_C'
#include <stdio.h>
int twice(int x);
int twice(int x) { return 2 * x; }
int idle(int x);
int idle(int x) { return x + 1; }
int main(int argc, char **argv)
{
    volatile int i = 3;
    while (i != 3) {}
    idle(argc);
    int red = twice(4) != 8 || argv[1][0] == 'r' || (DNNL && idle(4) != 5);
    printf("%d passed, %d failed\n", !red, red);
    return red;
}
END_C
: >src/build.c # a file, not a folder that was built
printf '$(BUILD)/hone_test: src/a.c src/build.c\n\t@mkdir -p $(BUILD)\n\t$(CC) $(CFLAGS) -DDNNL=$(DNNL) -o $@ $<\n' >Makefile
printf 'print-DNNL:\n\t@cat here\n' >>Makefile
echo 1 >here
fault() { printf 'fault %s\nabout a\ntests %s/\nlimit 2\nfile src/a.c\n- %s\n+ %s\n' "$@" >>dev/faults/a.faults; }
# expect LINES...: how the lines begin that the run prints of faults, and its last one
expect() {
    local out got want
    out=$(ROOT=$at BUILD=$at/build "$dev/faults.sh" 2>&1)
    got=$(grep -E '^(caught|MISSED|ERROR) ' <<<"$out" | tr -s ' ' | cut -d' ' -f-5; tail -1 <<<"$out")
    want=$(printf '%s\n' "$@")
    [ "$got" = "$want" ] || { printf 'wanted\n%s\ngot\n%s\n\n' "$want" "$out"; bad=1; }
    rm dev/faults/a.faults
}
fault red a '2 * x' '3 * x'
fault green a 'x + 1' 'x + 2'
fault hangs a 'int i = 3' 'int i = 4'
fault crashes a 'idle(argc);' '*(volatile int *)0 = 1;'
fault broken a 'idle(argc);' 'idle(argc'
fault same a 'x + 1' '1 + x'
expect 'caught red a/ 1 failed,' 'MISSED green a/ stays green:' 'caught hangs a/ no end' 'caught crashes a/ ended with' \
    'ERROR fault broken does not' 'ERROR fault same makes the' '3 passed, 3 failed'
fault stale a 'nothing' 'x'
fault double a 'twice(int x)' 'x'
fault stale a '2 * x' 'x'
expect 'ERROR fault stale no longer' 'ERROR fault double no longer' 'ERROR fault stale stands twice' '0 passed, 3 failed'
fault any r '2 * x' '3 * x'
expect 'ERROR tests r/ are red' '0 passed, 1 failed'
fault green a 'x + 1' 'x + 2'
fault part a 'x + 1' 'x + 3'
echo 'needs dnnl' >>dev/faults/a.faults
cp dev/faults/a.faults both
expect 'MISSED green a/ stays green:' 'caught part a/ 1 failed,' '1 passed, 1 failed'
cp both dev/faults/a.faults
echo >here
expect 'MISSED green a/ stays green:' '0 passed, 1 failed'
exit $bad
