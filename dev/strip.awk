# C without comments and without what strings hold, line for line: dev/lint.sh looks for words in code only.
BEGIN { inside = 0 }
{
    s = $0
    out = ""
    while (s != "") {
        if (inside) {
            at = index(s, "*/")
            if (!at)
                break
            s = substr(s, at + 2)
            inside = 0
            continue
        }
        if (!match(s, /\/\*|\/\/|"|'/)) {
            out = out s
            break
        }
        what = substr(s, RSTART, RLENGTH)
        out = out substr(s, 1, RSTART - 1)
        s = substr(s, RSTART + RLENGTH)
        if (what == "//")
            break
        if (what == "/*") {
            out = out " "
            inside = 1
        } else if (match(s, what == "'" ? "^([^'\\\\]|\\\\.)*'" : "^([^\"\\\\]|\\\\.)*\"")) {
            out = out what what
            s = substr(s, RLENGTH + 1)
        } else {
            out = out what what # a string that goes on in the next line
            break
        }
    }
    print out
}
