# A trace of paths.tcl as ../ns2_paths.rs reads it: which packets of DATA were dropped, counted from 0 on each path in the
# order of sending, and when which TSN (0 is the first) went over which path; times count from the first DATA.
($1 == "+" || $1 == "d") && $7 ~ /D$/ && ($3 == 1 || $3 == 2) {
    path = $3 - 1
    if (began == "") began = $2
    if ($1 == "d") print "drop", path, sent[path] + 0
    sent[path]++
    printf "%.6f send %d %d\n", $2 - began, path, $12 - 1
}
