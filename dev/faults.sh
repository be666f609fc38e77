#!/bin/bash
# Faults planted in the sources, one at a time: the tests named beside each have to turn red. A fault that they miss is
# a missing test. The table is dev/faults/*.faults, described in dev/faults/README.md.
# dev/faults.sh                  all of them       --list         names, files, tests
# dev/faults.sh --sample [N]     N of them (4), others with every commit and day
# dev/faults.sh --only PATTERN   those whose name matches      --check   only that all of them still apply
# Ends in one line `N passed, N failed`; passed is caught.
# BUILD= build folder   JOBS= of the first build   LIMIT= seconds of one run of tests (120)   ROOT= another tree
set -uo pipefail
cd "${ROOT:-$(dirname "$0")/..}" || exit 2
[ "${BASH_VERSINFO[0]}" -ge 4 ] || { echo "dev/faults.sh wants bash 4"; exit 2; }
at=${BUILD:-build}/faults
case $at in /*) ;; *) at=$PWD/$at ;; esac
limit=${LIMIT:-120}
names=() abouts=() tests=() limits=() needs=() first=() # a fault; its hunks are [first, first of the next)
hunk_file=() hunk_old=() hunk_new=() n_hunks=0
errors=0

error() {
    printf 'ERROR   %s\n' "$1"
    errors=$((errors + 1))
}

# --- the table

load() {
    local table line n=-1 h=-1 file='' side=''
    for table in dev/faults/*.faults; do
        [ -f "$table" ] || continue
        while IFS= read -r line || [ -n "$line" ]; do
            case $line in
            '' | '#'*) ;;
            'fault '*)
                n=${#names[@]} file='' side=''
                names[n]=${line#fault } abouts[n]='' tests[n]='' limits[n]=$limit needs[n]='' first[n]=$n_hunks
                ;;
            'about '*) abouts[n]=${line#about } ;;
            'file '*) file=${line#file } side='' ;;
            'tests '*) tests[n]=${line#tests } ;;
            'limit '*) limits[n]=${line#limit } ;;
            'needs dnnl') needs[n]=dnnl ;;
            '- '* | -)
                if [ "$side" != old ]; then
                    h=$n_hunks n_hunks=$((n_hunks + 1)) side=old
                    hunk_file[h]=$file hunk_old[h]=${line:2} hunk_new[h]=
                else
                    hunk_old[h]+=$'\n'${line:2}
                fi
                ;;
            '+ '* | +)
                if [ "$side" != new ]; then
                    side=new hunk_new[h]=${line:2}
                else
                    hunk_new[h]+=$'\n'${line:2}
                fi
                ;;
            *) error "$table: \"$line\" begins with none of fault, about, tests, limit, needs dnnl, file, -, +, #" ;;
            esac
        done <"$table"
    done
    first[n + 1]=$n_hunks
}

# The text of file $1, whole, into variable $2.
content() {
    local all
    all=$(cat "$1" && echo x) || return 1
    printf -v "$2" '%s' "${all%x}"
}

declare -A known=() read=() # names of faults; contents of files
# Whether fault $1 can be planted: nothing is missing, and each text to replace is found, once.
applies() {
    local k=$1 text h file name=${names[$1]}
    [ -z "${known[$name]:-}" ] || { error "fault $name stands twice in the table"; return 1; }
    known[$name]=1
    if [ -z "${abouts[k]}" ] || [ -z "${tests[k]}" ] || [ "${first[k]}" = "${first[k + 1]}" ]; then
        error "fault $name needs a line of each: about, tests, file, -"
        return 1
    fi
    for ((h = first[k]; h < first[k + 1]; h++)); do
        file=${hunk_file[h]}
        [ -f "$file" ] || { error "fault $name no longer applies: there is no file $file"; return 1; }
        [ -n "${read[$file]:-}" ] || content "$file" "read[$file]"
        text=${read[$file]}
        [[ $text == *"${hunk_old[h]}"* ]] ||
            { error "fault $name no longer applies: its text is not in $file"; return 1; }
        [[ ${text#*"${hunk_old[h]}"} != *"${hunk_old[h]}"* ]] ||
            { error "fault $name no longer applies: its text stands more than once in $file"; return 1; }
    done
}

# --- which of them

pick=()
all() {
    local k
    for ((k = 0; k < ${#names[@]}; k++)); do pick+=("$k"); done
}
# Evenly over the table, so over the rooms; the start moves by one with each commit and each day, so all get a turn.
sample() {
    local n=$1 count=${#names[@]} step turn i
    [ "$n" -lt "$count" ] || { all; return; }
    step=$(((count + n - 1) / n))
    turn=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) + $(date +%s) / 86400))
    for ((i = 0; i < n; i++)); do pick+=($(((turn + i * step) % count))); done
}
only() {
    local k
    for ((k = 0; k < ${#names[@]}; k++)); do
        # shellcheck disable=SC2053
        [[ ${names[k]} != $1 ]] || pick+=("$k")
    done
    [ ${#pick[@]} != 0 ] || error "no fault is called $1"
}

# --- building and running

# The portable parts alone, so that every machine shows the same; or, in a folder of its own, with what $1 names.
build() {
    local obj=$at/obj$1 dnnl=0
    [ "$1" != dnnl ] || dnnl=1
    shift
    make --no-print-directory "$@" -C "$at/tree" BUILD="$obj" CFLAGS=-O1 DNNL=$dnnl PNG=0 OPENMP= "$obj/hone_test" \
        >"$at/build.log" 2>&1
}

# Whether the Makefile finds it here.
have_dnnl() {
    [ "$(make --no-print-directory -s -C "$at/tree" BUILD="$at/objdnnl" print-DNNL 2>/dev/null | tail -1)" = 1 ]
}

# The tree as it stands, changes not committed among it. Times are kept, so objects of the last run serve again; what
# was ever planted since a good build is made anew.
copy_tree() {
    rm -rf "$at/tree" "$at/whole" && mkdir -p "$at/tree" || return 1
    { git ls-files -z -co --exclude-standard 2>/dev/null ||
        find . -type d -name 'build*' -prune -o -type f -print0; } |
        while IFS= read -r -d '' f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done |
        tar -c --null -T - | tar -x -C "$at/tree" || return 1
    { cat "$at/planted" "$at/planteddnnl" 2>/dev/null || true; } | (cd "$at/tree" && xargs -r touch -c)
}

# Runs the filter $1, at most $2 seconds, in the build for $3; says how it ended in $how.
run_tests() {
    local code last
    { (
        ulimit -c 0
        ulimit -v 8388608 2>/dev/null
        cd "$at/tree" && exec timeout -k 5 "$2" "$at/obj$3/hone_test" "$1" 2>&1
    ) | tail -c 100000 >"$at/test.log"; code=${PIPESTATUS[0]}; } 2>/dev/null # the shell would tell of a crash
    last=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$at/test.log" | tail -1)
    case $code:$last in
    0:*) how=passed ;;
    124:* | 137:*) how="no end within $2 s" ;;
    1:?*) last=${last#*, } how="${last%% *} failed" ;;
    *) how="ended with code $code" ;;
    esac
    return "$code"
}

# Those faults alone stay picked whose need is met here.
drop_unmet() {
    local k met='' left=()
    for k in "${pick[@]}"; do
        [ -z "${needs[k]}" ] || [ -n "$met" ] || { have_dnnl && met=yes || met=no; }
        if [ -z "${needs[k]}" ] || [ $met = yes ]; then
            left+=("$k")
        else
            printf 'SKIP    %-32s no oneDNN here\n' "${names[k]}"
        fi
    done
    pick=("${left[@]}")
}

# Builds what fault $1 needs, once, and without a fault.
good() {
    local need=${needs[$1]}
    [ -z "${whole[$need.]:-}" ] || return 0
    build "$need" -j"${JOBS:-$(nproc)}" ||
        { tail -n 30 "$at/build.log"; error "the tree does not build without a fault"; return 1; }
    rm -f "$at/planted$need"
    cp "$at/obj$need/hone_test" "$at/hone_test$need.good"
    whole[$need.]=1
}

declare -A whole=()
baseline() {
    local k h t seen=' '
    copy_tree || { error "the tree cannot be copied to $at/tree"; return 1; }
    drop_unmet
    for k in "${pick[@]}"; do
        good "$k" || return 1
        for ((h = first[k]; h < first[k + 1]; h++)); do
            mkdir -p "$at/whole/$(dirname "${hunk_file[h]}")"
            cp "$at/tree/${hunk_file[h]}" "$at/whole/${hunk_file[h]}"
        done
        for t in ${tests[k]}; do
            case $seen in *" $t${needs[k]} "*) continue ;; esac
            seen+="$t${needs[k]} "
            run_tests "$t" "$limit" "${needs[k]}" || { tail -n 20 "$at/test.log"; error "tests $t are red without a fault ($how)"; return 1; }
        done
    done
}

caught=0 missed=0
plant() {
    local k=$1 h text t red='' from=$SECONDS need=${needs[$1]}
    for ((h = first[k]; h < first[k + 1]; h++)); do
        printf '%s\n' "${hunk_file[h]}" | tee -a "$at/planted" >>"$at/planteddnnl"
        content "$at/tree/${hunk_file[h]}" text
        printf '%s%s%s' "${text%%"${hunk_old[h]}"*}" "${hunk_new[h]}" "${text#*"${hunk_old[h]}"}" \
            >"$at/tree/${hunk_file[h]}"
    done
    if ! build "$need"; then
        tail -n 15 "$at/build.log"
        error "fault ${names[k]} does not compile"
    elif cmp -s "$at/obj$need/hone_test" "$at/hone_test$need.good"; then
        error "fault ${names[k]} makes the same program: the changed code is not compiled, or means the same"
    else
        for t in ${tests[k]}; do
            run_tests "$t" "${limits[k]}" "$need" || { red="$t $how"; break; }
        done
        if [ -n "$red" ]; then
            caught=$((caught + 1))
            printf 'caught  %-32s %s, %s s\n' "${names[k]}" "$red" $((SECONDS - from))
        else
            missed=$((missed + 1))
            printf 'MISSED  %-32s %s stays green: %s\n' "${names[k]}" "${tests[k]}" "${abouts[k]}"
        fi
    fi
    for ((h = first[k]; h < first[k + 1]; h++)); do
        cat "$at/whole/${hunk_file[h]}" >"$at/tree/${hunk_file[h]}" # with a new time, so it is compiled again
    done
}

finish() {
    printf '%s passed, %s failed\n' "$caught" $((missed + errors))
    [ $((missed + errors)) = 0 ]
    exit
}

load
mode=${1:-all}
case $mode in
--list)
    for ((k = 0; k < ${#names[@]}; k++)); do
        printf '%-32s %-34s %-24s %s\n' "${names[k]}" "${hunk_file[first[k]]}" "${tests[k]}" "${abouts[k]}"
    done
    exit
    ;;
all | --check) all ;;
--sample) sample "${2:-4}" ;;
--only) only "${2:?a name or pattern}" ;;
*) sed -n '4,10s/^# //p' "$0"; [ "$mode" = --help ]; exit $(($? * 2)) ;;
esac
[ ${#names[@]} != 0 ] || error "dev/faults/ holds no fault"
# all are looked at, whichever run; but who works on a few must not wait for the others
if [ "$mode" = --only ]; then
    for k in "${pick[@]}"; do applies "$k"; done
else
    for ((k = 0; k < ${#names[@]}; k++)); do applies "$k"; done
fi
if [ "$mode" = --check ]; then
    echo "${#names[@]} faults, $errors errors"
    [ $errors = 0 ]
    exit
fi
{ [ $errors = 0 ] && baseline; } || finish
for k in "${pick[@]}"; do plant "$k"; done
finish
