# Converts a trace of paths.tcl to the format that ../ns2_paths.rs reads. A line `drop` has the path and the number of a
# dropped packet with DATA, counted from 0 on each path in the order of sending. A line `send` has the time since the
# first DATA, the path, and the TSN (0 is the first).
($1 == "+" || $1 == "d") && $7 ~ /D$/ && ($3 == 1 || $3 == 2) {
    path = $3 - 1
    if (began == "") began = $2
    if ($1 == "d") print "drop", path, sent[path] + 0
    sent[path]++
    printf "%.6f send %d %d\n", $2 - began, path, $12 - 1
}
