// One flow over 1 Gbit/s in ns-3.37: what bench/src/bin/gigabit.rs times beside ours, by bench/gigabit/gigabit.toml.
//
//   gigabit CONTROL SECONDS FILE     for example: gigabit TcpCubic 10 /dev/stdout
//
// A sender, a router and a receiver: 10 Gbit/s and 1 ms, then 1 Gbit/s and 9 ms with a queue of 1667 packets, the product of rate and
// round trip. The goodput goes to the file, in bit/s.

#include <cstdio>
#include <cstdlib>
#include <string>

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

using namespace ns3;

int
main(int argc, char** argv)
{
    if (argc != 4)
    {
        std::fprintf(stderr, "gigabit CONTROL SECONDS FILE\n");
        return 2;
    }
    const double seconds = std::atof(argv[2]);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    const TypeId control = TypeId::LookupByName(std::string("ns3::") + argv[1]);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(control));

    NodeContainer nodes;
    nodes.Create(3);
    InternetStackHelper stack;
    stack.Install(nodes);
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    PointToPointHelper middle;
    middle.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    middle.SetChannelAttribute("Delay", StringValue("9ms"));
    middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer first = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer second = middle.Install(nodes.Get(1), nodes.Get(2));
    TrafficControlHelper traffic;
    traffic.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1667p"));
    traffic.Install(second.Get(0));
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(first);
    addresses.NewNetwork();
    const Ipv4InterfaceContainer at = addresses.Assign(second);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    ApplicationContainer there = sink.Install(nodes.Get(2));
    there.Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(at.GetAddress(1), 9));
    bulk.SetAttribute("SendSize", UintegerValue(1448));
    ApplicationContainer here = bulk.Install(nodes.Get(0));
    here.Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double bytes = DynamicCast<PacketSink>(there.Get(0))->GetTotalRx();
    std::FILE* file = std::fopen(argv[3], "w");
    if (!file)
    {
        std::perror(argv[3]);
        return 1;
    }
    std::fprintf(file, "%.0f\n", bytes * 8 / seconds);
    std::fclose(file);
    Simulator::Destroy();
    return 0;
}
