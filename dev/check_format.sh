#!/bin/bash
# Layout as clang-format 14 writes it; other versions differ in details, so they are not asked.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in clang-format-14 clang-format ''; do
    [ -n "$tool" ] || { echo "SKIP no clang-format 14 here"; exit 0; }
    "$tool" --version 2>/dev/null | grep -q ' version 14\.' && break
done
{ find src include test examples bench -name '*.[ch]' -print0 2>/dev/null || true; } | xargs -0r "$tool" --dry-run -Werror
