#!/bin/bash
# Installs what is missing to build hone, on Debian and Ubuntu: as root or through sudo, and only what is missing.
# bootstrap.sh [--all]: with --all also what the sanitizers, the fuzzers and the other CPU need. Without apt, or without
# the right to use it, whatever stands here already has to do. Says 1 if there is no compiler or no make in the end.
set -uo pipefail
all=0
[ "${1:-}" != --all ] || all=1

trial=$(mktemp)
trap 'rm -f "$trial"' EXIT

say() { printf '   %s\n' "$*"; }
have() { command -v "$1" >/dev/null 2>&1; }
# a header that the compiler finds
header() { have gcc && printf '#include <%s>\n' "$1" | gcc -E -xc - >/dev/null 2>&1; }
# a program that clang links with the given flags
clang_links() { have clang && echo 'int main(void){return 0;}' | clang -xc - "$@" -o "$trial" >/dev/null 2>&1; }

must=() may=()
have make || must+=(make)
have gcc || must+=(gcc)
header stdlib.h || must+=(libc6-dev)
have g++ || may+=(g++)
header dnnl.h || header oneapi/dnnl/dnnl.h || may+=(libdnnl-dev)
header png.h || may+=(libpng-dev)
have pkg-config || may+=(pkg-config)
have clang || may+=(clang)
clang_links -fopenmp || may+=(libomp-dev)
have clang-format-14 || { have clang-format && clang-format --version | grep -q ' version 14\.'; } || may+=(clang-format-14)
if [ $all = 1 ]; then
    clang_links -fsanitize=address,undefined || may+=(clang_rt)
    have qemu-aarch64 || may+=(qemu-user)
    have aarch64-linux-gnu-gcc || may+=(gcc-aarch64-linux-gnu)
    [ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || may+=(libc6-dev-arm64-cross)
fi

install() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$log" 2>&1; }

# the package with clang's sanitizers, which has the version in its name (older ones bring it with clang)
clang_rt() {
    local v
    v=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
    echo "libclang-rt-${v:-14}-dev"
}

add() {
    local p
    root=()
    set -- "${@/clang_rt/libclang-rt}"
    have apt-get || { say "no apt-get here; missing: $*"; return; }
    if [ "$(id -u)" != 0 ]; then
        have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; } || { say "neither root nor sudo; missing: $*"; return; }
        root=(sudo)
    fi
    say "installing $*"
    log=$(mktemp)
    "${root[@]}" apt-get update -qq >"$log" 2>&1 || say "apt-get update failed: $(tail -1 "$log")"
    if [ ${#must[@]} != 0 ] && ! install "${must[@]}"; then
        tail -5 "$log"
    fi
    # one by one if need be: a package that this release lacks must not keep the others away
    if [ ${#may[@]} != 0 ] && ! install "${may[@]/clang_rt/$(clang_rt)}"; then
        for p in "${may[@]}"; do
            [ "$p" != clang_rt ] || p=$(clang_rt)
            install "$p" || say "no $p: $(tail -1 "$log")"
        done
    fi
    rm -f "$log"
}

[ ${#must[@]}${#may[@]} = 00 ] || add "${must[@]}" "${may[@]}"

have make && { have gcc || have cc || have clang; } || { say "hone needs make and a C compiler"; exit 1; }
# the Makefile decides what it can use
cd "$(dirname "$0")/.." || exit 1
[ "$(make -s print-DNNL)" = 1 ] || say "no oneDNN 2.6 or later: building with hone's own kernels (slower)"
[ "$(make -s print-PNG)" = 1 ] || say "no libpng: building without pictures"
exit 0
