# Makes a trace for ../ns2_paths.rs: one association over two paths, 2 Mb/s 50 ms and 1 Mb/s 80 ms, with losses on both
# from 1 s on.
#
#   ns paths.tcl OUT SECONDS LOSS_RATE_0 LOSS_RATE_1 SEED DELAYED_SACK RTX_TO_ALT PATH_MAX_RETRANS
#   awk -f paths.awk OUT.tr > OUT.txt
#
# The heartbeat interval is longer than the simulation, so that only the HEARTBEATs that confirm the paths remain.
lassign $argv out seconds rate0 rate1 seed delayed alternate retrans
Trace set show_sctphdr_ 1
set ns [new Simulator]
Agent/SCTP set mtu_ 1480
Agent/SCTP set heartbeatInterval_ 100000
Agent/SCTP set dataChunkSize_ 1448
Agent/SCTP set initialRwnd_ 65536
Agent/SCTP set initialSsthresh_ 65536
Agent/SCTP set useDelayedSacks_ $delayed
Agent/SCTP set rtxToAlt_ $alternate
Agent/SCTP set pathMaxRetrans_ $retrans
set trace [open $out.tr w]
$ns trace-all $trace
foreach host {a z} {
    set ${host} [$ns node]
    foreach path {0 1} {
        set ${host}${path} [$ns node]
        $ns multihome-add-interface [set $host] [set ${host}${path}]
    }
}
foreach {path mbit delay rate} [list 0 2 50ms $rate0 1 1 80ms $rate1] {
    set from [set a$path]
    set to [set z$path]
    $ns duplex-link $from $to ${mbit}Mb $delay DropTail
    $ns queue-limit $from $to 1000
    $ns queue-limit $to $from 1000
    set errors [new ErrorModel]
    $errors set rate_ 0
    $ns at 1.0 "$errors set rate_ $rate"
    $errors unit pkt
    set losses [new RNG]
    $losses seed [expr $seed * 2 + $path]
    set draw [new RandomVariable/Uniform]
    $draw use-rng $losses
    $errors ranvar $draw
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $from $to
}
set source [new Agent/SCTP]
set sink [new Agent/SCTP]
$ns multihome-attach-agent $a $source
$ns multihome-attach-agent $z $sink
$ns connect $source $sink
$source set-primary-destination $z0
set ftp [new Application/FTP]
$ftp attach-agent $source
$ns at 0.0 "$ftp start"
$ns at $seconds "$ns flush-trace; close $trace; exit 0"
$ns run
