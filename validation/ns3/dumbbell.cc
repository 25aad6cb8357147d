// The dumbbell of spec.toml in ns-3.37: what its congestion controls and queue disciplines do there.
//
//   ./run                prints ns3.csv: means of runs with their 95 % intervals
//   dumbbell alone       its first part; `others`: the rest
//   dumbbell once ...    one run, for looking at it
//   dumbbell means ...   all runs of one case, with recoveries and timeouts from 10 to 60 s; control, rival or -, queue, loss, and
//                        attributes of ns-3 that are to differ, as CoDelQueueDisc::Target=6200us
//
// Two senders and two receivers, 100 Mbit/s and 2.5 ms to each; between the routers 10 Mbit/s and 20 ms: a round trip takes 50 ms,
// and the pipe holds 42 packets.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

using namespace ns3;

// What one run is made of.
struct Case
{
    std::string control = "TcpLinuxReno"; // of the first flow
    std::string rival;                    // of the second flow; empty: there is none
    std::string queue = "fifo";
    double loss = 0.0; // of a packet behind the queue
};

// What one run gave.
struct Outcome
{
    double goodput = 0;  // of the first flow, bit/s
    double rival = 0;    // of the second flow, bit/s
    double together = 0; // of both, bit/s
    double delay = 0;    // mean time of a packet in the queue, s
    double recoveries = 0; // of all flows, from BEGIN on
    double timeouts = 0;
};

static const double BEGIN = 10, END = 60;

static double sojourn_sum;
static uint64_t sojourn_count;

static void
Waited(Time time)
{
    if (Simulator::Now().GetSeconds() >= BEGIN)
    {
        sojourn_sum += time.GetSeconds();
        sojourn_count += 1;
    }
}

// TcpLinuxReno, but the acknowledgement that ends a recovery does not let the window grow: it is set to ssthresh (RFC 5681 §3.2).
class TcpStrictReno : public TcpLinuxReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId type =
            TypeId("ns3::TcpStrictReno").SetParent<TcpLinuxReno>().AddConstructor<TcpStrictReno>();
        return type;
    }

    TcpStrictReno() = default;

    TcpStrictReno(const TcpStrictReno& other)
        : TcpLinuxReno(other)
    {
    }

    std::string GetName() const override
    {
        return "TcpStrictReno";
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpStrictReno>(this);
    }

    // Every second segment is acknowledged, so that only that acknowledgement is of more than two.
    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acknowledged) override
    {
        if (acknowledged <= 2 || state->m_cWnd < state->m_ssThresh)
        {
            TcpLinuxReno::IncreaseWindow(state, acknowledged);
        }
    }
};

NS_OBJECT_ENSURE_REGISTERED(TcpStrictReno);

// TcpWestwood, whose window grows as that of TcpLinuxReno: by what is acknowledged, not by acknowledgements, of which there are half as many.
class TcpCountingWestwood : public TcpWestwood
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId type = TypeId("ns3::TcpCountingWestwood")
                                 .SetParent<TcpWestwood>()
                                 .AddConstructor<TcpCountingWestwood>();
        return type;
    }

    TcpCountingWestwood() = default;

    TcpCountingWestwood(const TcpCountingWestwood& other)
        : TcpWestwood(other)
    {
    }

    std::string GetName() const override
    {
        return "TcpCountingWestwood";
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpCountingWestwood>(this);
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acknowledged) override
    {
        reno->IncreaseWindow(state, acknowledged);
    }

  private:
    Ptr<TcpLinuxReno> reno = CreateObject<TcpLinuxReno>();
};

NS_OBJECT_ENSURE_REGISTERED(TcpCountingWestwood);

// TcpStrictReno, which counts anew towards the next segment after a loss.
class TcpFreshReno : public TcpStrictReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId type =
            TypeId("ns3::TcpFreshReno").SetParent<TcpStrictReno>().AddConstructor<TcpFreshReno>();
        return type;
    }

    TcpFreshReno() = default;

    TcpFreshReno(const TcpFreshReno& other)
        : TcpStrictReno(other)
    {
    }

    std::string GetName() const override
    {
        return "TcpFreshReno";
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpFreshReno>(this);
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acknowledged) override
    {
        if (state->m_cWnd < state->m_ssThresh)
        {
            TcpLinuxReno::IncreaseWindow(state, acknowledged);
            return;
        }
        if (acknowledged > 2)
        {
            return;
        }
        const uint32_t window = std::max<uint32_t>(state->m_cWnd / state->m_segmentSize, 1);
        count += acknowledged;
        if (count >= window)
        {
            count -= window;
            state->m_cWnd += state->m_segmentSize;
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t flight) override
    {
        count = 0;
        return TcpStrictReno::GetSsThresh(state, flight);
    }

  private:
    uint32_t count = 0;
};

NS_OBJECT_ENSURE_REGISTERED(TcpFreshReno);

// TcpIllinois, whose loss reduces the window and not what is in flight.
class TcpWindowIllinois : public TcpIllinois
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId type =
            TypeId("ns3::TcpWindowIllinois").SetParent<TcpIllinois>().AddConstructor<TcpWindowIllinois>();
        return type;
    }

    TcpWindowIllinois() = default;

    TcpWindowIllinois(const TcpWindowIllinois& other)
        : TcpIllinois(other)
    {
    }

    std::string GetName() const override
    {
        return "TcpWindowIllinois";
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<TcpWindowIllinois>(this);
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        return TcpIllinois::GetSsThresh(state, state->m_cWnd);
    }
};

NS_OBJECT_ENSURE_REGISTERED(TcpWindowIllinois);

// Attributes of ns-3 that the command line changes, and what they are to be.
static std::vector<std::pair<std::string, std::string>> changed;

// Of all flows of a run, from BEGIN on.
static uint64_t recoveries, timeouts;

static void
Changed(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state)
{
    if (Simulator::Now().GetSeconds() >= BEGIN)
    {
        recoveries += state == TcpSocketState::CA_RECOVERY;
        timeouts += state == TcpSocketState::CA_LOSS;
    }
}

static void
WatchState(Ptr<BulkSendApplication> application)
{
    application->GetSocket()->TraceConnectWithoutContext("CongState", MakeCallback(&Changed));
}

static TypeId
ControlType(const std::string& name)
{
    return TypeId::LookupByName("ns3::" + name);
}

static void
InstallQueue(const std::string& kind, Ptr<NetDevice> device)
{
    TrafficControlHelper traffic;
    if (kind == "fifo")
    {
        traffic.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("60p"));
    }
    else if (kind == "red")
    {
        traffic.SetRootQueueDisc("ns3::RedQueueDisc",
                                 "MaxSize", StringValue("200p"),
                                 "MinTh", DoubleValue(5),
                                 "MaxTh", DoubleValue(15),
                                 "QW", DoubleValue(0.002),
                                 "LInterm", DoubleValue(10),
                                 "Gentle", BooleanValue(true),
                                 "LinkBandwidth", StringValue("10Mbps"),
                                 "LinkDelay", StringValue("20ms"),
                                 "MeanPktSize", UintegerValue(1500));
    }
    else if (kind == "codel")
    {
        traffic.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("200p"));
    }
    else if (kind == "fq-codel")
    {
        traffic.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", StringValue("200p"));
    }
    else if (kind == "pie")
    {
        traffic.SetRootQueueDisc("ns3::PieQueueDisc",
                                 "MaxSize", StringValue("200p"),
                                 "QueueDelayReference", StringValue("15ms"),
                                 "Tupdate", StringValue("15ms"),
                                 "MaxBurstAllowance", StringValue("150ms"),
                                 "MeanPktSize", UintegerValue(1500),
                                 "UseDequeueRateEstimator", BooleanValue(true));
    }
    QueueDiscContainer discs = traffic.Install(device);
    discs.Get(0)->TraceConnectWithoutContext("SojournTime", MakeCallback(&Waited));
}

static Outcome
Run(const Case& what, uint32_t seed)
{
    RngSeedManager::SetSeed(7);
    RngSeedManager::SetRun(seed);
    sojourn_sum = 0;
    sojourn_count = 0;
    recoveries = 0;
    timeouts = 0;

    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", StringValue("1s"));
    Config::SetDefault("ns3::TcpWestwood::ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));

    for (const auto& [attribute, value] : changed)
    {
        Config::SetDefault("ns3::" + attribute, StringValue(value));
    }

    const size_t flows = what.rival.empty() ? 1 : 2;
    NodeContainer routers;
    routers.Create(2);
    NodeContainer senders;
    senders.Create(flows);
    NodeContainer receivers;
    receivers.Create(flows);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    access.SetChannelAttribute("Delay", StringValue("2.5ms"));
    PointToPointHelper middle;
    middle.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    middle.SetChannelAttribute("Delay", StringValue("20ms"));
    middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));

    NetDeviceContainer bottleneck = middle.Install(routers);
    InstallQueue(what.queue, bottleneck.Get(0));
    if (what.loss > 0)
    {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(what.loss);
        bottleneck.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(bottleneck);

    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    for (size_t flow = 0; flow < flows; ++flow)
    {
        NetDeviceContainer up = access.Install(senders.Get(flow), routers.Get(0));
        NetDeviceContainer down = access.Install(routers.Get(1), receivers.Get(flow));
        addresses.NewNetwork();
        addresses.Assign(up);
        addresses.NewNetwork();
        Ipv4InterfaceContainer at = addresses.Assign(down);

        const std::string& control = flow == 0 ? what.control : what.rival;
        senders.Get(flow)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType",
                                                                    TypeIdValue(ControlType(control)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        ApplicationContainer there = sink.Install(receivers.Get(flow));
        there.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(there.Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(at.GetAddress(1), 9));
        bulk.SetAttribute("SendSize", UintegerValue(1448));
        ApplicationContainer here = bulk.Install(senders.Get(flow));
        here.Start(Seconds(uniform->GetValue(0, 1)));
        // It has its socket once it has started.
        Simulator::Schedule(Seconds(1.5), &WatchState, DynamicCast<BulkSendApplication>(here.Get(0)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<uint64_t> before(flows);
    Simulator::Schedule(Seconds(BEGIN), [&] {
        for (size_t flow = 0; flow < flows; ++flow)
        {
            before[flow] = sinks[flow]->GetTotalRx();
        }
    });
    Simulator::Stop(Seconds(END));
    Simulator::Run();

    std::vector<double> goodput(2);
    for (size_t flow = 0; flow < flows; ++flow)
    {
        goodput[flow] = (sinks[flow]->GetTotalRx() - before[flow]) * 8.0 / (END - BEGIN);
    }
    Outcome outcome;
    outcome.goodput = goodput[0];
    outcome.together = goodput[0] + goodput[1];
    outcome.rival = goodput[1];
    outcome.delay = sojourn_sum / sojourn_count;
    outcome.recoveries = recoveries;
    outcome.timeouts = timeouts;
    Simulator::Destroy();
    return outcome;
}

// Runs of one flow alone, and of two; with Student's t, 0.975, of 19 and 7 degrees of freedom.
static const int RUNS_ALONE = 20, RUNS_OTHERS = 8;
static const double T_ALONE = 2.093, T_OTHERS = 2.365;

static void
Print(const char* where, const std::string& condition, const char* metric, const std::vector<double>& values)
{
    double sum = 0;
    for (double value : values)
    {
        sum += value;
    }
    const double mean = sum / values.size();
    double squares = 0;
    for (double value : values)
    {
        squares += (value - mean) * (value - mean);
    }
    const double t = values.size() == RUNS_ALONE ? T_ALONE : T_OTHERS;
    const double half = t * std::sqrt(squares / (values.size() - 1) / values.size());
    std::printf("%s,%s,%s,%.6g,%.3g,%zu\n", where, condition.c_str(), metric, mean, half, values.size());
    std::fflush(stdout);
}

static void
Measure(const char* where, const std::string& condition, const Case& what, bool events = false)
{
    std::vector<double> goodput, rival, together, delay, recovered, expired;
    const int runs = what.rival.empty() ? RUNS_ALONE : RUNS_OTHERS;
    for (int seed = 1; seed <= runs; ++seed)
    {
        const Outcome outcome = Run(what, seed);
        goodput.push_back(outcome.goodput);
        rival.push_back(outcome.rival);
        together.push_back(outcome.together);
        delay.push_back(outcome.delay);
        recovered.push_back(outcome.recoveries);
        expired.push_back(outcome.timeouts);
    }
    Print(where, condition, "goodput", goodput);
    if (!what.rival.empty())
    {
        Print(where, condition, "rival", rival);
        Print(where, condition, "together", together);
    }
    Print(where, condition, "queue delay", delay);
    if (events)
    {
        Print(where, condition, "recoveries", recovered);
        Print(where, condition, "timeouts", expired);
    }
}

// The case that the command line names behind its first word.
static Case
Named(char** argv)
{
    Case what;
    what.control = argv[2];
    what.rival = std::strcmp(argv[3], "-") ? argv[3] : "";
    what.queue = argv[4];
    what.loss = std::atof(argv[5]);
    return what;
}

int
main(int argc, char** argv)
{
    if (argc == 6 && !std::strcmp(argv[1], "once"))
    {
        const Outcome outcome = Run(Named(argv), 1);
        std::printf("%.0f %.0f %.0f %.5f\n", outcome.goodput, outcome.rival, outcome.together, outcome.delay);
        return 0;
    }
    if (argc >= 6 && !std::strcmp(argv[1], "means"))
    {
        for (int argument = 6; argument < argc; ++argument)
        {
            const std::string text = argv[argument];
            const size_t equals = text.find('=');
            if (equals == std::string::npos)
            {
                std::fprintf(stderr, "%s: not ATTRIBUTE=VALUE\n", argv[argument]);
                return 2;
            }
            changed.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        }
        Measure(argv[2], argv[4], Named(argv), true);
        return 0;
    }
    const std::vector<std::pair<std::string, std::string>> controls = {
        {"newreno", "TcpLinuxReno"},
        {"cubic", "TcpCubic"},
        {"vegas", "TcpVegas"},
        {"veno", "TcpVeno"},
        {"hybla", "TcpHybla"},
        {"illinois", "TcpIllinois"},
        {"westwood", "TcpWestwood"},
        {"bbr", "TcpBbr"},
    };
    const bool alone = argc < 2 || !std::strcmp(argv[1], "alone");
    const bool others = argc < 2 || !std::strcmp(argv[1], "others");
    std::printf("where,condition,metric,mean,ci95,replications\n");
    for (const auto& [name, type] : controls)
    {
        for (const char* loss : {"0", "0.001", "0.01"})
        {
            if (!alone)
            {
                continue;
            }
            Case what;
            what.control = type;
            what.loss = std::atof(loss);
            Measure("alone", name + " loss " + loss, what);
        }
    }
    if (!others)
    {
        return 0;
    }
    for (const auto& [name, type] : controls)
    {
        Case what;
        what.control = type;
        what.rival = "TcpLinuxReno";
        Measure("shared", name, what);
    }
    for (const char* queue : {"fifo", "red", "codel", "fq-codel", "pie"})
    {
        Case what;
        what.rival = "TcpLinuxReno";
        what.queue = queue;
        Measure("disciplines", queue, what);
    }
    return 0;
}
