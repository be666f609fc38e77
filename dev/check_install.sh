#!/bin/bash
# `make install` gives another program all that it needs, by pkg-config, shared and static; nothing points to the tree.
set -euo pipefail
build=${1:-build}
cd "$(dirname "$0")/.."
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
"${MAKE:-make}" --no-print-directory -s install BUILD="$build" PREFIX="$at/usr" DESTDIR=
cat >"$at/try.c" <<'END'
#include <hone/base.h>
int main(void)
{
    hone_err err = {0};
    hone_ctx *ctx = hone_ctx_create(NULL, &err);
    hone_ctx_destroy(ctx);
    return !ctx;
}
END
for f in lib/libhone.a lib/libhone.so lib/pkgconfig/hone.pc include/hone/base.h; do
    [ -e "$at/usr/$f" ] || { echo "not installed: $f"; exit 1; }
done
! grep -n '@' "$at/usr/lib/pkgconfig/hone.pc" || { echo "hone.pc: not filled in"; exit 1; }
if ! command -v pkg-config >/dev/null; then
    echo "SKIP the part with pkg-config, which is not here"
    exit 0
fi
export PKG_CONFIG_PATH=$at/usr/lib/pkgconfig
${CC:-gcc} -std=c17 "$at/try.c" -o "$at/shared" $(pkg-config --cflags --libs hone)
LD_LIBRARY_PATH=$at/usr/lib "$at/shared" || { echo "a program with the installed libhone.so fails"; exit 1; }
libs=$(pkg-config --static --libs hone)
${CC:-gcc} -std=c17 "$at/try.c" -o "$at/static" $(pkg-config --cflags hone) ${libs/-lhone/-l:libhone.a}
"$at/static" || { echo "a program with the installed libhone.a fails"; exit 1; }
[ ! -e "$at/usr/bin/hone" ] || env -i "$at/usr/bin/hone" --version >/dev/null 2>&1 || echo "note: hone --version does not say 0"
