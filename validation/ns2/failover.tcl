# When does data return to a primary path that comes back? The links of examples/failover.toml: the primary is down from 20 to 140 s.
#
#   ns failover.tcl TRACE [changePrimaryThresh_]
#   awk '$1 == "-" && $3 == "2" && $7 ~ /D$/ && $2 > 140 { print $2; exit }' TRACE      # the sender's node on the primary path is 2
#
# 144.16 s with 1000; never with the default of -1, which the module compares with the count of errors as a signed number (sctp.cc,
# SctpAgent::Timeout): at the failover the other path becomes the primary.

if {[llength $argv] > 1} {Agent/SCTP set changePrimaryThresh_ [lindex $argv 1]}
Trace set show_sctphdr_ 1
set ns [new Simulator]
Agent/SCTP set dataChunkSize_ 1016
Agent/SCTP set initialRwnd_ 32768
Agent/SCTP set numOutStreams_ 4
$ns trace-all [open [lindex $argv 0] w]
set a [$ns node]
set z [$ns node]
foreach i {0 1} {
    set a$i [$ns node]
    set r$i [$ns node]
    set z$i [$ns node]
    $ns multihome-add-interface $a [set a$i]
    $ns multihome-add-interface $z [set z$i]
    $ns duplex-link [set a$i] [set r$i] 10Mb 5ms DropTail
    $ns duplex-link [set r$i] [set z$i] 2Mb 20ms DropTail
}
foreach {from to} [list $r0 $z0 $z0 $r0] {
    set errors [new ErrorModel]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $from $to
    $ns at 20 "$errors set rate_ 1.0"
    $ns at 140 "$errors set rate_ 0"
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
$ns at 300 "$ns flush-trace; exit 0"
$ns run
