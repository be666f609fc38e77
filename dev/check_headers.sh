#!/bin/bash
# Each header can be included alone: public ones as C17 and as C++17 with warnings as errors, inner ones as C17, with the
# vector loops of kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
CC=${CC:-gcc}
CXX=${CXX:-$(case $CC in *clang*) echo clang++ ;; *) echo g++ ;; esac)}
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
bad=0
for h in include/hone/*.h; do
    line="#include \"${h#include/}\""
    echo "$line" | $CC -std=c17 $warn -Wstrict-prototypes -Iinclude -fsyntax-only -xc - || { echo "$h: not alone as C17"; bad=1; }
    if command -v "$CXX" >/dev/null; then
        echo "$line" | $CXX -std=c++17 $warn -Iinclude -fsyntax-only -xc++ - || { echo "$h: not alone as C++17"; bad=1; }
    fi
done
command -v "$CXX" >/dev/null || echo "SKIP the C++17 part: no $CXX here"
while IFS= read -r h; do
    echo "#include \"${h#src/}\"" | $CC -std=c17 $warn ${DEFS:-} -Wno-unused-function -fopenmp-simd -Iinclude -Isrc -fsyntax-only -xc - ||
        { echo "$h: not alone as C17"; bad=1; }
done < <(find src -name '*.h' | sort)
exit $bad
