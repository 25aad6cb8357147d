# New segments of each sender in its 60 s, mean of the senders; segments sent again, lost on the uplinks, dropped by the first satellite.
$5 != "sctp" || $6 != 1500 { next }
{ split($9, from, "."); split($10, to, "."); tsn = $12; source = from[1] }
$1 == "+" && $3 == source { if (sent[source, tsn]++) again++; else if (!(source in begin)) begin[source] = $2 }
$1 == "d" { if ($3 == source) lost++; else if ($3 == 0) dropped++ }
$1 == "r" && $4 == to[1] && !((source, tsn) in got) { got[source, tsn] = 1; if ($2 <= begin[source] + 60) new[source]++ }
END {
    for (source in new) { total += new[source]; senders++ }
    printf "goodput %.1f again %d lost %d dropped %d\n", total / senders, again, lost, dropped
}
