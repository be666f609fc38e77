#!/bin/bash
# Rules that a compiler does not check. Exceptions stand in dev/lint.allow. ROOT= checks another tree.
set -euo pipefail
strip=$(cd "$(dirname "$0")" && pwd)/strip.awk
cd "${ROOT:-$(dirname "$0")/..}"
allow=dev/lint.allow
[ -f $allow ] || allow=/dev/null
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# say RULE: reads file:line: messages, drops those of files that may break the rule
say() {
    while IFS= read -r line; do
        awk -v r="$1" -v f="${line%%:*}" '$1 == r && $2 == f { found = 1 } END { exit !found }' $allow ||
            printf '%s\n' "$line" >>"$out"
    done
}
# in_code PATTERN MESSAGE FILES...: the pattern outside comments and strings
in_code() {
    local pattern=$1 message=$2 f
    shift 2
    for f in "$@"; do
        awk -f "$strip" "$f" | grep -nE "$pattern" | sed -E "s|^([0-9]+):[[:space:]]*(.*)|$f:\1: $message: \2|" || true
    done
}

mapfile -t lib < <(find src include -type f -name '*.[ch]' -not -path 'src/cli/*' | sort)
mapfile -t libc < <(printf '%s\n' "${lib[@]}" | grep '\.c$' || true)
mapfile -t own < <(find src include -type f -name '*.[ch]' | sort)

# Nothing but the command line prints or ends the process; memory comes from mem_*; no function that cannot be told
# where to stop or that hides a state.
start='(^|[^A-Za-z0-9_.>])'
in_code "$start(printf|fprintf|vprintf|vfprintf|puts|putchar|perror|exit|_Exit|_exit|quick_exit|abort|assert)[[:space:]]*\\(" \
    'only src/cli may print or end the process' "${lib[@]}" | say calls
in_code "$start(malloc|calloc|realloc|aligned_alloc|posix_memalign|strdup|strndup|asprintf|vasprintf|free)[[:space:]]*\\(" \
    'memory comes from base/mem.h' "${lib[@]}" | say calls
in_code "$start(atoi|atol|atoll|atof|sprintf|vsprintf|gets|scanf|sscanf|fscanf)[[:space:]]*\\(" \
    'a function that cannot report or bound' "${own[@]}" | say calls
in_code "$start(strtok|rand|srand|drand48|random|srandom|setlocale|strerror|localtime|gmtime|ctime|setenv|putenv)[[:space:]]*\\(" \
    'a function with a state of its own' "${own[@]}" | say calls
in_code '^[[:space:]]*extern[[:space:]]' 'extern belongs in a header' "${libc[@]}" | say extern
mapfile -t no_omp < <(printf '%s\n' "${lib[@]}" | grep -v '^src/backend/cpu/' || true)
in_code '^[[:space:]]*#[[:space:]]*pragma[[:space:]]+omp' 'OpenMP lives only in src/backend/cpu' "${no_omp[@]}" | say omp

# Files and functions that fit a head and a screen. A function is what stands between { and } in the first column.
for f in "${own[@]}"; do
    case $f in
    include/*) limit=400 ;;
    *) limit=600 ;;
    esac
    n=$(wc -l <"$f")
    [ "$n" -le $limit ] || echo "$f:$n: $n lines, at most $limit"
done | say length
awk '/^\{/ { from = FNR }
    /^\}/ && from { if (FNR - from - 1 > 80) print FILENAME ":" from ": a function of " FNR - from - 1 " lines, at most 80"; from = 0 }' \
    "${own[@]}" | say length

# What must not stand in the project: paths of one machine, addresses of one network, numbers of a tracker.
mapfile -t text < <(find . \( -name .git -o -name 'build*' -o -name runs -o -name demo_out \) -prune -o -type f -size -512k \
    -print | sed 's|^\./||' | sort)
words() { grep -nIHiE "$1" "${@:3}" /dev/null | sed -E "s|^([^:]*:[0-9]+):|\1: $2: |" || true; }
words '/wor[k]/|/home/[a-z]|/roo[t]/|/tmp/(buil[d]|brie[f]|bas[h])' 'a path of one machine' "${text[@]}" | say words
words 'https?://(localhost|[0-9]+\.[0-9]+\.|[a-z0-9-]+[:/])' 'an address of one network' "${text[@]}" | say words
words '(^|[^a-z])(issue|ticket|pull request|merge request) *(#|no\. *)?[0-9]+' 'a number of a tracker' "${text[@]}" | say words
mapfile -t prose < <(printf '%s\n' "${text[@]}" | grep -E '^(src|include|docs|examples|configs)/|\.md$|^Makefile$' || true)
words '/tmp/' 'a path of one machine' "${prose[@]}" | say words
words '[[:space:]]$' 'space at the end of a line' "${own[@]}" | say words

if [ -s "$out" ]; then
    sort -t: -k1,1 -k2,2n "$out"
    echo "$(wc -l <"$out") finding(s)"
    exit 1
fi
