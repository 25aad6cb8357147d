# A chain of H inter-satellite links with ten associations on the real ns-2.35: the world of papers/tsunoda2007.
#
#   ns leo.tcl OUT SEED HOPS ERROR_RATE STREAMS ISL_QUEUE GROUND_QUEUE [SPREAD]
#   awk -f leo.awk OUT
#
# Each uplink's delay is SPREAD ms more than the one's before, so that packets of different senders do not tie.
lassign $argv out seed hops rate streams isl_queue ground_queue spread
if {$spread eq ""} {set spread 0}
set pairs 10
set ns [new Simulator]
ns-random $seed
Trace set show_sctphdr_ 1
set trace [open $out w]
$ns trace-all $trace
Agent/SCTP set mtu_ 1500
Agent/SCTP set dataChunkSize_ 1468
Agent/SCTP set initialRwnd_ 10240
Agent/SCTP set fastRtxTrigger_ 4
Agent/SCTP set useDelayedSacks_ 1
Agent/SCTP set numOutStreams_ $streams
Agent/SCTP set trace_all_ 0

proc connect {from to delay queue} {
    global ns
    $ns duplex-link $from $to 10Mb $delay DropTail
    $ns queue-limit $from $to $queue
    $ns queue-limit $to $from $queue
}

for {set i 0} {$i <= $hops} {incr i} {set satellite($i) [$ns node]}
for {set i 0} {$i < $hops} {incr i} {connect $satellite($i) $satellite([expr $i + 1]) 13ms $isl_queue}
for {set i 0} {$i < $pairs} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    connect $sender $satellite(0) [expr 5 + $spread * $i]ms $ground_queue
    connect $satellite($hops) $receiver 5ms $ground_queue
    set errors [new ErrorModel]
    $errors set rate_ $rate
    $errors unit pkt
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $sender $satellite(0)
    set source [new Agent/SCTP]
    set sink [new Agent/SCTP]
    $ns attach-agent $sender $source
    $ns attach-agent $receiver $sink
    $ns connect $source $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $source
    set start [new RandomVariable/Uniform]
    $start set min_ 0
    $start set max_ 5
    set begin [$start value]
    $ns at $begin "$ftp start"
    $ns at [expr $begin + 60] "$ns detach-agent $sender $source"
}
$ns at 70 "$ns flush-trace; close $trace; exit 0"
$ns run
