# Makes a trace for ../ns2.rs: one association over 10 Mb/s 2 ms, then MEGABIT and 250 ms with a queue of QUEUE packets.
#
#   ns trace.tcl OUT SECONDS LOSS_RATE SEED DELAYED_SACK MISSING_REPORTS MEGABIT QUEUE RWND [STREAMS]
#
# OUT.tr contains the packets, OUT.var the windows. The heartbeat interval is longer than the simulation, because
# HEARTBEATs would delay other packets by 0.2 ms.
lassign $argv out seconds rate seed delayed trigger mbit queue rwnd streams
Trace set show_sctphdr_ 1
set ns [new Simulator]
Agent/SCTP set mtu_ 1480
Agent/SCTP set heartbeatInterval_ 100000
Agent/SCTP set dataChunkSize_ 1448
Agent/SCTP set initialRwnd_ $rwnd
Agent/SCTP set initialSsthresh_ 65536
Agent/SCTP set fastRtxTrigger_ $trigger
Agent/SCTP set useDelayedSacks_ $delayed
if {$streams ne ""} {Agent/SCTP set numOutStreams_ $streams}
set trace [open $out.tr w]
$ns trace-all $trace
set n0 [$ns node]; set n1 [$ns node]; set n2 [$ns node]
$ns duplex-link $n0 $n1 10Mb 2ms DropTail
$ns duplex-link $n1 $n2 ${mbit}Mb 250ms DropTail
$ns queue-limit $n1 $n2 $queue
$ns queue-limit $n2 $n1 1000
set errors [new ErrorModel]
$errors set rate_ $rate
$errors unit pkt
set losses [new RNG]; $losses seed $seed
set draw [new RandomVariable/Uniform]; $draw use-rng $losses
$errors ranvar $draw
$errors drop-target [new Agent/Null]
$ns lossmodel $errors $n1 $n2
set source [new Agent/SCTP]; set sink [new Agent/SCTP]
$ns attach-agent $n0 $source; $ns attach-agent $n2 $sink
$ns connect $source $sink
set vars [open $out.var w]
$source set trace_all_ 0
$source trace cwnd_
$source trace rto_
$source attach $vars
set ftp [new Application/FTP]; $ftp attach-agent $source
$ns at 0.0 "$ftp start"
$ns at $seconds "$ns flush-trace; close $trace; close $vars; exit 0"
$ns run
