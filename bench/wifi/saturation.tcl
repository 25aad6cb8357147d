# What ns-2.35's Mac/802_11 carries with the values of Rafiq's listing: n senders that always have a packet of 1500 bytes for
# one receiver, no routing. Prints n and the goodput of 1472 bytes a packet, in Mb/s, over 60 s after 5 s of warm-up.
#
#   ns saturation.tcl N SEED RTS_THRESHOLD DISTANCE
#
# DISTANCE 0 puts up to ten senders on a circle of 10 m around the receiver; any other puts two, that many metres either side.
# crates/sim/tests/wifi_models.rs holds what it printed.
lassign $argv n seed rts_threshold distance

$defaultRNG seed $seed
foreach {name value} [list dataRate_ 11Mb basicRate_ 1Mb RTSThreshold_ $rts_threshold] {
    Mac/802_11 set $name $value
}
foreach {name value} {freq_ 2.4e+9 Pt_ 3.3962527e-2 RXThresh_ 6.309573e-12 CSThresh_ 6.309573e-12} {
    Phy/WirelessPhy set $name $value
}

set places {{10 0} {-10 0} {0 10} {0 -10} {6 8} {-6 8} {6 -8} {-6 -8} {8 6} {-8 6}}
if {$distance != 0} {
    set places [list [list -$distance 0] [list $distance 0]]
}

set ns [new Simulator]
$ns trace-all [open /dev/null w]
set ground [new Topography]
$ground load_flatgrid 2000 2000
create-god [expr {$n + 1}]
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $ground -agentTrace OFF -routerTrace OFF -macTrace OFF

proc station {x y} {
    global ns
    set station [$ns node]
    $station random-motion 0
    $station set X_ [expr {1000 + $x}]
    $station set Y_ [expr {1000 + $y}]
    $station set Z_ 0
    return $station
}

set receiver [station 0 0]
for {set i 0} {$i < $n} {incr i} {
    set sender [station {*}[lindex $places $i]]
    set udp [new Agent/UDP]
    set sink($i) [new Agent/LossMonitor]
    set cbr [new Application/Traffic/CBR]
    # Neither UDP nor DumbAgent adds a header: these are the bytes of the packet.
    $udp set packetSize_ 1500
    $cbr set packetSize_ 1500
    $cbr set interval_ 0.0016
    $ns attach-agent $sender $udp
    $ns attach-agent $receiver $sink($i)
    $ns connect $udp $sink($i)
    $cbr attach-agent $udp
    $ns at [expr {0.1 * ($i + 1)}] "$cbr start"
}

proc packets {} {
    global sink n
    set sum 0
    for {set i 0} {$i < $n} {incr i} {
        incr sum [$sink($i) set npkts_]
    }
    return $sum
}

proc report {} {
    global n before
    puts "$n [format %.4f [expr {([packets] - $before) * 1472 * 8 / 60e6}]]"
    exit 0
}

$ns at 5.0 {set before [packets]}
$ns at 65.0 report
$ns run
