#!/bin/bash
# Reads every #include of the project against docs/rooms.txt. ROOT= checks another tree.
set -euo pipefail
cd "${ROOT:-$(dirname "$0")/..}"
dirs=()
for d in src include test bench examples; do [ -d $d ] && dirs+=($d); done
mapfile -t files < <(find "${dirs[@]}" -type f \( -name '*.[ch]' -o -name '*.def' \) | sort)
awk '
function fail(msg) { print where ": " msg; bad++ }
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
# the longest room that the path begins with; "" if none
function room_of(path,    r, best) {
    best = ""
    for (r in law)
        if (index(path, r "/") == 1 && length(r) > length(best))
            best = r
    return best
}
function may(room, target,    r, list, n, i) { # target: a room or a header
    if (room == target || law[room] ~ /(^| )\*( |$)/)
        return 1
    n = split(law[room], list, " ")
    for (i = 1; i <= n; i++)
        if (list[i] == target)
            return 1
    return 0
}
function public_room(h,    name) {
    if (h in owner)
        return owner[h]
    name = h
    sub(/^hone\//, "", name)
    sub(/\.[a-z]+$/, "", name)
    return name in law ? name : ""
}
function exists(path,    line, r) {
    r = (getline line < path)
    close(path)
    return r >= 0
}
FILENAME == "docs/rooms.txt" {
    where = FILENAME ":" FNR
    line = $0
    sub(/#.*/, "", line)
    if (trim(line) == "")
        next
    if (split(line, side, /=/) == 2) {
        name = trim(side[1])
        n = split(trim(side[2]), list, " ")
        for (i = 1; i <= n; i++)
            if (!(list[i] in law))
                fail("unknown room \"" list[i] "\"")
        if (name ~ /^</)
            only[name] = " " trim(side[2]) " "
        else
            owner[name] = trim(side[2])
        next
    }
    if (split(line, side, /:/) != 2) {
        fail("neither `room: rooms` nor `header = room`")
        next
    }
    name = trim(side[1])
    n = split(trim(side[2]), list, " ")
    for (i = 1; i <= n; i++) {
        r = list[i]
        if (r ~ /\.h$/)
            sub(/\/[^\/]*$/, "", r)
        if (r != "*" && r != "public" && !(r in law))
            fail("room \"" name "\" names \"" r "\", which does not stand above it")
    }
    law[name] = trim(side[2])
    next
}
FNR == 1 {
    path = FILENAME
    sub(/^src\//, "", path)
    public = path ~ /^include\//
    sub(/^include\//, "", path)
    where = FILENAME ":1"
    room = public ? public_room(path) : room_of(path)
    if (room == "")
        fail(public ? "docs/rooms.txt does not say which room this header belongs to" : "no room of docs/rooms.txt")
}
room != "" && /^[ \t]*#[ \t]*include/ {
    where = FILENAME ":" FNR
    h = $0
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", h)
    if (h ~ /^</) {
        sub(/>.*/, ">", h)
        if (h in only && room != "cli" && index(only[h], " " room " ") == 0)
            fail("only" only[h] "may include " h)
        next
    }
    if (h !~ /^"[^"]*"/) { # a name from a macro cannot be read here
        fail("an include must be written out")
        next
    }
    sub(/^"/, "", h)
    sub(/".*/, "", h)
    if (h !~ /\//) {
        if (room == "test" || room == "bench")
            next
        fail("write \"room/" h "\"")
    } else if (h ~ /^hone\//) {
        to = public_room(h)
        if (!exists("include/" h))
            fail("there is no include/" h)
        else if (to == "")
            fail("docs/rooms.txt does not say which room " h " belongs to")
        else if (!public && law[room] ~ /(^| )public( |$)/)
            next
        else if (!may(room, to))
            fail("room " room " may not include " h " (room " to ")")
    } else if (public) {
        fail("a public header includes public headers only, not " h)
    } else {
        to = room_of(h)
        if (to == "" && room_of("test/" h) == "test" && exists("test/" h))
            to = "test"
        if (to == "")
            fail("no room of docs/rooms.txt holds " h)
        else if (!may(room, to) && !may(room, h))
            fail("room " room " may not include " h)
    }
}
END {
    if (bad) {
        print bad " breach(es) of docs/rooms.txt"
        exit 1
    }
}' docs/rooms.txt "${files[@]}"
