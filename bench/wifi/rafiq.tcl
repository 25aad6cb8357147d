# The scenarios of Rafiq's thesis (2007) for ns-2.35, after the listing of its Appendix 8.1.
#
#   ns rafiq.tcl SCENARIO PROTOCOL LOSS SEED SECONDS [TRACE]
#
# SCENARIO: e2w (wired to wireless), w2e (wireless to wired). PROTOCOL: tcp, sctp, or both (the competing case). Transfers run
# from 2 s to 10 s before the end. Prints the acknowledged segments of TCP; TRACE is a file for the packet trace, none if left out.
lassign $argv scenario protocol loss seed seconds trace
if {$seconds eq ""} { puts stderr "usage: ns rafiq.tcl SCENARIO PROTOCOL LOSS SEED SECONDS \[TRACE\]"; exit 2 }

$defaultRNG seed $seed
foreach {name value} {dataRate_ 11Mb basicRate_ 1Mb SlotTime_ 0.000020 SIFS_ 0.000010 PreambleLength_ 144 PLCPHeaderLength_ 48 PLCPDataRate_ 1.0e6} {
    Mac/802_11 set $name $value
}
foreach {name value} {freq_ 2.4e+9 Pt_ 3.3962527e-2 RXThresh_ 6.309573e-12 CSThresh_ 6.309573e-12} {
    Phy/WirelessPhy set $name $value
}
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 45
Agent/SCTP set mtu_ 1500
Agent/SCTP set dataChunkSize_ 1468
Trace set show_sctphdr_ 1

set ns [new Simulator]
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {1 1}
AddrParams set nodes_num_ {3 3}
# A wireless node must have a trace file, though nothing is written to it with its traces off; a wire need not.
$ns trace-all [open [expr {$trace eq "" ? "/dev/null" : $trace}] w]
set ground [new Topography]
$ground load_flatgrid 270 270
create-god 3
foreach i {0 1 2} { set wired($i) [$ns node 0.0.$i] }
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propInstance [new Propagation/TwoRayGround] -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $ground -wiredRouting ON \
    -agentTrace [expr {$trace eq "" ? "OFF" : "ON"}] -routerTrace OFF -macTrace OFF
set access [$ns node 1.0.0]
$access random-motion 0
$ns node-config -wiredRouting OFF
foreach i {0 1} {
    set station($i) [$ns node 1.0.[expr {$i + 1}]]
    $station($i) base-station [AddrParams addr2id [$access node-addr]]
}
foreach {node x y} [list $access 1.0 2.0 $station(0) 80.0 30.0 $station(1) 190.0 30.0] {
    $node set X_ $x
    $node set Y_ $y
    $node set Z_ 0.0
}
if {$trace eq ""} { $ns unset traceAllFile_ }
$ns duplex-link $wired(1) $wired(0) 5Mb 2ms DropTail
$ns duplex-link $wired(2) $wired(0) 5Mb 2ms DropTail
$ns duplex-link $wired(0) $access 2Mb 2ms DropTail

set errors [new ErrorModel]
$errors unit pkt
$errors set rate_ $loss
$errors ranvar [new RandomVariable/Uniform]
$errors drop-target [new Agent/Null]
if {$scenario eq "e2w"} {
    $ns lossmodel $errors $wired(0) $access
} else {
    $ns lossmodel $errors $access $wired(0)
}

proc transfer {protocol wired_node station_node} {
    global ns scenario seconds source
    if {$protocol eq "tcp"} {
        set source(tcp) [new Agent/TCP/Sack1]
        set sink [new Agent/TCPSink/Sack1]
    } else {
        set source(sctp) [new Agent/SCTP]
        set sink [new Agent/SCTP]
    }
    lassign [expr {$scenario eq "e2w" ? [list $wired_node $station_node] : [list $station_node $wired_node]}] from to
    $ns attach-agent $from $source($protocol)
    $ns attach-agent $to $sink
    $ns connect $source($protocol) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $source($protocol)
    $ns at 2.0 "$ftp start"
    $ns at [expr {$seconds - 10}] "$ftp stop"
}
if {$protocol eq "both"} {
    transfer tcp $wired(1) $station(0)
    transfer sctp $wired(2) $station(1)
} else {
    transfer $protocol $wired(1) $station(0)
}
proc finish {} {
    global ns source
    global trace
    if {$trace ne ""} { $ns flush-trace }
    foreach name [array names source] {
        puts "$name [expr {$name eq "tcp" ? [$source(tcp) set ack_] : [$source(sctp) set cwnd_]}]"
    }
    exit 0
}
$ns at $seconds finish
$ns run
