# The GEO dumbbell of papers/alamgir2002 for ns-2.35, untraced, compared with bench/geo.
#
#   ns geo.tcl PAIRS RATE_MBIT BUFFER_PACKETS SECONDS SEED [TRACE]
#
# Prints: how far TCP's flows came. With TRACE, a file, it is traced: a line that begins with "r" for each packet that crossed a link, so
# that both programs can be seen to do the same work.
lassign $argv pairs rate buffer seconds seed trace
if {$seed eq ""} { puts stderr "usage: ns geo.tcl PAIRS RATE_MBIT BUFFER_PACKETS SECONDS SEED \[TRACE\]"; exit 2 }

set ns [new Simulator]
$ns use-scheduler Heap
if {$trace ne ""} { $ns trace-all [open $trace w] }
set random [new RNG]
$random seed $seed
set starts [new RandomVariable/Uniform]
$starts use-rng $random
$starts set min_ 0.0
$starts set max_ 1.0

Agent/TCP set packetSize_ 1448
Agent/TCP set window_ 45
Agent/TCP set windowInit_ 2
Agent/TCP set tcpTick_ 0.1
Agent/TCP set minrto_ 1.0
Agent/TCP set singledup_ 0
Agent/TCP set precisionReduce_ false
Agent/SCTP set mtu_ 1480
Agent/SCTP set dataChunkSize_ 1448
Agent/SCTP set initialRwnd_ 65536
Agent/SCTP set initialSsthresh_ 65536
Agent/SCTP set fastRtxTrigger_ 4
Agent/SCTP set useDelayedSacks_ 0

set router [$ns node]
set destination [$ns node]
$ns duplex-link $router $destination [expr {$rate}]Mb 250ms DropTail
$ns queue-limit $router $destination $buffer
$ns queue-limit $destination $router $buffer

set errors [new ErrorModel]
$errors set rate_ 0.015
$errors unit pkt
set losses [new RNG]
$losses seed [expr {$seed + 1000}]
set draw [new RandomVariable/Uniform]
$draw use-rng $losses
$errors ranvar $draw
$errors drop-target [new Agent/Null]
$ns lossmodel $errors $router $destination

set sinks {}
foreach protocol {tcp sctp} {
    for {set i 0} {$i < $pairs} {incr i} {
        set node [$ns node]
        $ns duplex-link $node $router 10Mb 2ms DropTail
        if {$protocol eq "tcp"} {
            set source [new Agent/TCP/Sack1]
            set sink [new Agent/TCPSink/Sack1]
        } else {
            set source [new Agent/SCTP]
            set sink [new Agent/SCTP]
        }
        $ns attach-agent $node $source
        $ns attach-agent $destination $sink
        $ns connect $source $sink
        set ftp [new Application/FTP]
        $ftp attach-agent $source
        $ns at [$starts value] "$ftp start"
        lappend sinks $protocol $source
    }
}

proc report {} {
    global sinks
    foreach {protocol source} $sinks {
        if {$protocol eq "tcp"} {
            puts "tcp [$source set ack_]"
        } else {
            puts "sctp cwnd [$source set cwnd_]"
        }
    }
}
$ns at $seconds "report; $ns flush-trace; exit 0"
$ns run
