/* Linux's own SCTP as a peer. As process 1 of a User Mode Linux it first sets the guest up and at last switches it off. */
#include "../common/workload.h"
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static struct arguments arguments;

static void option(int s, int level, int name, const void *value, socklen_t length)
{
    if (setsockopt(s, level, name, value, length))
        fail("option %d: %s", name, strerror(errno));
}

static void configure(int s)
{
    int on = 1, room = 2 << 20;
    struct sctp_initmsg init = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS };
    struct sctp_event_subscribe events = { .sctp_association_event = 1 };
    option(s, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init);
    option(s, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);
    option(s, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
    option(s, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
    option(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    option(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
}

/* Addresses one after the other, as SCTP's socket options take them. */
struct addresses {
    char bytes[4 * sizeof(struct sockaddr_in6)];
    socklen_t length;
    int family;
};

/* Reads addresses of one family, separated by commas. */
static struct addresses addresses(const char *text)
{
    struct addresses all = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
    uint16_t port = htons((uint16_t)arguments.port);
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = port };
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = port };
        bool is_v6 = all.family == AF_INET6;
        if (inet_pton(all.family, one, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
            fail("not an IP address, or of another version than the first: %s", one);
        socklen_t length = is_v6 ? sizeof v6 : sizeof v4;
        if (all.length + length > sizeof all.bytes)
            fail("too many addresses: %s", text);
        memcpy(all.bytes + all.length, is_v6 ? (void *)&v6 : (void *)&v4, length);
        all.length += length;
    }
    return all;
}

static int open_association(void)
{
    struct addresses local = addresses(arguments.local), remote = addresses(arguments.remote);
    int s = socket(local.family, SOCK_STREAM, IPPROTO_SCTP);
    if (s < 0)
        fail("socket: %s", strerror(errno));
    configure(s);
    option(s, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, local.bytes, local.length);
    if (arguments.connects) {
        say("ready");
        if (setsockopt(s, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, remote.bytes, remote.length) < 0)
            fail("connect: %s", strerror(errno));
        return s;
    }
    if (listen(s, 1))
        fail("listen: %s", strerror(errno));
    say("ready");
    int accepted = accept(s, NULL, NULL);
    if (accepted < 0)
        fail("accept: %s", strerror(errno));
    close(s);
    return accepted;
}

static void *send_all(void *association)
{
    static uint8_t data[LARGEST];
    uint32_t ordinals[STREAMS] = { 0 };
    for (int i = 0; i < arguments.messages; i++) {
        struct message m = plan(arguments.seed, (uint32_t)i, ordinals);
        char control[CMSG_SPACE(sizeof(struct sctp_sndinfo))] = { 0 };
        struct iovec part = { data, m.length };
        struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        *c = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO, .cmsg_len = CMSG_LEN(sizeof(struct sctp_sndinfo)) };
        struct sctp_sndinfo info = { .snd_sid = m.stream, .snd_ppid = htonl(m.index + PPID), .snd_flags = m.unordered ? SCTP_UNORDERED : 0 };
        memcpy(CMSG_DATA(c), &info, sizeof info);
        compose(m, data);
        ssize_t n = sendmsg(*(int *)association, &header, 0);
        if (n != (ssize_t)m.length)
            fail("send of message %d: %s", i, n < 0 ? strerror(errno) : "in part");
    }
    say("sent messages=%d", arguments.messages);
    return NULL;
}

/* One piece of a message or one notification. False when the association is over. */
static bool receive_one(int s, struct checker *checker)
{
    static uint8_t data[LARGEST];
    static struct pieces pieces;
    char control[512];
    struct iovec part = { data, sizeof data };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    ssize_t n = recvmsg(s, &header, 0);
    if (n < 0)
        fail("receive after %u messages: %s", checker->count, strerror(errno));
    if (n == 0)
        return false;
    if (header.msg_flags & MSG_NOTIFICATION) {
        struct sctp_assoc_change *change = (struct sctp_assoc_change *)data;
        if (change->sac_type != SCTP_ASSOC_CHANGE || change->sac_state == SCTP_COMM_UP)
            return true;
        if (change->sac_state != SCTP_SHUTDOWN_COMP)
            fail("association change %u, error %u, after %u messages", change->sac_state, change->sac_error, checker->count);
        return false;
    }
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    if (!c || c->cmsg_type != SCTP_RCVINFO)
        fail("a message without its stream");
    struct sctp_rcvinfo info;
    memcpy(&info, CMSG_DATA(c), sizeof info);
    gather(&pieces, checker, info.rcv_sid, ntohl(info.rcv_ppid), info.rcv_flags & SCTP_UNORDERED, data, (size_t)n, header.msg_flags & MSG_EOR);
    return true;
}

static void run(void)
{
    int s = open_association();
    say("established");
    struct checker checker = { .expected = (uint32_t)arguments.messages };
    pthread_t sender;
    pthread_create(&sender, NULL, send_all, &s);
    bool open = true;
    while (open && (!arguments.connects || checker.count < checker.expected))
        open = receive_one(s, &checker);
    if (checker.count < checker.expected)
        fail("over after %u messages of %u", checker.count, checker.expected);
    pthread_join(sender, NULL);
    if (open && shutdown(s, SHUT_WR))
        fail("shutdown: %s", strerror(errno));
    while (open)
        open = receive_one(s, &checker);
    say("closed");
    for (;;) /* until it is ended: the kernel may have to answer for what is closed */
        pause();
}

int main(int count, char **given)
{
    const char *modules = "";
    bool guest = getpid() == 1, impair = false;
    if (guest)
        atexit(guest_end);
    arguments = defaults;
    for (int i = 1; i < count; i++)
        if (!strcmp(given[i], "impair"))
            impair = true;
        else if (guest && !strncmp(given[i], "console=", 8)) /* User Mode Linux adds it at the end */
            continue;
        else if (!argument(given[i], "modules", &modules) && !take_argument(&arguments, given[i]))
            fail("unknown argument: %s", given[i]);
    bool encap = !strcmp(arguments.transport, "encap");
    if (!encap && strcmp(arguments.transport, "raw"))
        fail("transport %s: this peer has encap and raw", arguments.transport);
    if (guest)
        guest_setup(modules, arguments.local, encap ? arguments.local_udp : 0, arguments.remote_udp, arguments.rto_min,
                    arguments.max_retrans, impair);
    run();
    return 0;
}
