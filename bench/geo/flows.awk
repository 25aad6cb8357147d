# What became of ns-2's SCTP flows in a trace of geo.tcl: for each source node the packets of DATA that reached the destination, when the
# 65,536th did, and how many came in the last 500 s of 5000.
#
#   mkfifo trace; ns geo.tcl 4 11 160 5000 SEED trace > /dev/null & awk -f flows.awk trace
$1 == "r" && $3 == 0 && $4 == 1 && $5 == "sctp" && $6 == 1480 {
    split($9, source, ".")
    node = source[1]
    if (++packets[node] == 65536) wrapped[node] = $2
    if ($2 > 4500) late[node]++
}
END {
    for (node in packets) print node, packets[node], "the 65536th at", wrapped[node], "s,", late[node] + 0, "in the last 500 s"
}
