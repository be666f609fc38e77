#!/bin/bash
# No mutable object of file scope, nor a static one in a function: hone has no global state. Looks at the sections of
# BUILD/libhone.a; tables of constant pointers (.data.rel.ro) are fine. Exceptions: `object SYMBOL` in dev/lint.allow.
set -euo pipefail
build=${1:-build}
allow=$(dirname "$0")/lint.allow
LC_ALL=C objdump -t "$build/libhone.a" | awk -v allow="$allow" '
BEGIN {
    while ((getline line < allow) > 0)
        if (split(line, w, " ") > 1 && w[1] == "object")
            fine[w[2]] = 1
}
/:[ \t]+file format/ { file = $1; sub(/:$/, "", file); next }
{
    # value, seven flags, section, tab, size, name
    if (split($0, half, "\t") != 2)
        next
    n = split(half[1], left, " ")
    section = left[n]
    split(half[2], right, " ")
    name = right[2]
    if (section !~ /^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ || section ~ /^\.data\.rel\.ro/ || name ~ /^\./ || name == "")
        next
    if (left[2] ~ /d/ && n == 3 && name == section) # the section itself
        next
    if (name in fine)
        next
    print file ": mutable object " name " in " section
    bad++
}
END { exit bad > 0 }'
