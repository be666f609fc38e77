#!/bin/bash
# The checkers themselves: each is shown a small tree with one fault a rule, and has to name every one of them and
# nothing else. A check that cannot fail is no check.
set -uo pipefail
dev=$(cd "$(dirname "$0")" && pwd)
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
mkdir -p "$at"/{docs,include/hone,dev} "$at"/src/{base,op,backend/cpu,cli,attic} "$at/build"
cd "$at" || exit 1
bad=0
# expect CHECKER LINES...: the findings, `file:line` each, sorted
expect() {
    local name=$1 got want
    shift
    got=$(grep -oE '^[a-z/_]+\.[a-z]+:[0-9]+' out | sort -u | tr '\n' ' ')
    want=$(printf '%s\n' "$@" | sort -u | tr '\n' ' ')
    [ "$got" = "$want" ] || { printf '%s:\n  wanted %s\n  got    %s\n' "$name" "$want" "$got"; cat out; bad=1; }
}

printf 'base:\nop: base\ngraph: base op\nbackend/cpu: base graph/backend.h\ncli: *\nhone/ops.h = op\n<omp.h> = backend/cpu\nio: nowhere\n' >docs/rooms.txt
for f in include/hone/base.h include/hone/strange.h src/attic/a.c; do echo >$f; done
mkdir src/graph && touch src/graph/{graph,backend}.h src/base/ctx.h
printf '#include "hone/base.h"\n#include "base/ctx.h"\n' >include/hone/ops.h
printf '#include "base/ctx.h"\n#include "op/op.h"\n#include "hone/ops.h"\n#include <omp.h>\n#include "ctx.h"\n#include "elsewhere/e.h"\n' >src/base/a.c
printf '#include "graph/backend.h"\n#include "graph/graph.h"\n#include "op/op.h"\n#include <omp.h>\n' >src/backend/cpu/a.c
printf '#include "backend/cpu/cpu.h"\n#include "hone/gone.h"\n' >src/cli/a.c
ROOT=$at "$dev/check_rooms.sh" >out && { echo "check_rooms.sh: says 0"; bad=1; }
expect check_rooms.sh docs/rooms.txt:8 include/hone/strange.h:1 src/attic/a.c:1 include/hone/ops.h:2 src/base/a.c:{2,3,4,5,6} \
    src/backend/cpu/a.c:{2,3} src/cli/a.c:2

printf 'calls src/base/fine.c # a reason\n' >dev/lint.allow
echo 'void f(void) { free(0); }' >src/base/fine.c
cat >src/base/a.c <<'END'
/* printf("x"); malloc(1) free(
 * abort() */
static const char *s = "exit(1) /* // malloc(1)"; // rand()
void f(void) { printf("x"); }
void g(void) { x->free(1), y.abort(), snprintf(a), my_free(a), strtol(a); }
void h(void) { free(p); }
void i(void) { p = '"' + malloc(3) + '"'; }
extern int other;
void j(void) { return atoi(s) + strtok(a, b); }
#pragma omp parallel
END
{ echo 'int long_one(void)'; echo '{'; for i in {1..81}; do echo '    ;'; done; echo '}'; } >src/op/a.c
{ echo 'int fits(void)'; echo '{'; for i in {1..80}; do echo '    ;'; done; echo '}'; } >src/op/b.c
for i in {1..601}; do echo; done >src/op/c.c
for i in {1..401}; do echo; done >include/hone/ops.h
printf '#pragma omp parallel\n' >src/backend/cpu/a.c
printf 'void f(void) { printf("x"); exit(1); }\nint i = rand();\n' >src/cli/a.c
printf 'see /wor%s/x\nas in issu%s #12\nhttp:%s/mirror/debian\n' k e / >docs/a.md
ROOT=$at "$dev/lint.sh" >out && { echo "lint.sh: says 0"; bad=1; }
expect lint.sh src/base/a.c:{4,6,7,8,9,10} src/op/a.c:2 src/op/c.c:601 include/hone/ops.h:401 src/cli/a.c:2 docs/a.md:{1,2,3}

cat >o.c <<'END'
int seen;
static int hidden = 3;
_Thread_local int mine;
static const int fine = 4;
static const char *const names[] = {"a", "b"};
const char *loose[] = {"a"};
int f(int i) { static int counter; return names[i][0] + fine + counter++ + hidden++; }
END
"${CC:-gcc}" -std=c17 -fPIC -c o.c -o o.o && ar rc build/libhone.a o.o
"$dev/check_objects.sh" build >out && { echo "check_objects.sh: says 0"; bad=1; }
got=$(sed -E 's/.*object ([a-z]+).*/\1/' out | sort | tr '\n' ' ')
[ "$got" = "counter hidden loose mine seen " ] || { echo "check_objects.sh: got $got"; bad=1; }
exit $bad
