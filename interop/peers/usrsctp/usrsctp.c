/* usrsctp as a peer: over UDP encapsulation (RFC 6951) by sockets of usrsctp, or over plain UDP datagrams by AF_CONN. */
#include "../common/workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usrsctp.h>

static struct arguments arguments;
static int plain = -1; /* the UDP socket under AF_CONN */

static int send_plain(void *address, void *buffer, size_t length, uint8_t tos, uint8_t df)
{
    (void)address, (void)tos, (void)df;
    return send(plain, buffer, length, 0) < 0 && errno != ECONNREFUSED ? errno : 0;
}

static void *receive_plain(void *unused)
{
    static uint8_t packet[65536];
    for (;;) {
        ssize_t n = recv(plain, packet, sizeof packet, 0);
        if (n > 0)
            usrsctp_conninput(&plain, packet, (size_t)n, 0);
        else if (n < 0 && errno != ECONNREFUSED && errno != EINTR)
            fail("recv: %s", strerror(errno));
    }
    return unused;
}

/* An IP address with a port; returns its length. */
static socklen_t ip(struct sockaddr_storage *out, const char *text, int port)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    bool is_v6 = strchr(text, ':');
    memset(out, 0, sizeof *out);
    out->ss_family = is_v6 ? AF_INET6 : AF_INET;
    *(is_v6 ? &v6->sin6_port : &v4->sin_port) = htons((uint16_t)port);
    if (inet_pton(out->ss_family, text, is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr) != 1)
        fail("not an IP address: %s", text);
    return is_v6 ? sizeof *v6 : sizeof *v4;
}

static void open_plain(void)
{
    struct sockaddr_storage local, remote;
    socklen_t length = ip(&local, arguments.local, arguments.local_udp);
    int room = 4 << 20;
    ip(&remote, arguments.remote, arguments.remote_udp);
    plain = socket(local.ss_family, SOCK_DGRAM, 0);
    setsockopt(plain, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(plain, (struct sockaddr *)&local, length) || connect(plain, (struct sockaddr *)&remote, length))
        fail("UDP socket: %s", strerror(errno));
    usrsctp_register_address(&plain);
    pthread_t thread;
    pthread_create(&thread, NULL, receive_plain, NULL);
}

static void option(struct socket *s, int name, const void *value, socklen_t length)
{
    if (usrsctp_setsockopt(s, IPPROTO_SCTP, name, value, length))
        fail("option %d: %s", name, strerror(errno));
}

#ifndef SCTP_INTERLEAVING_SUPPORTED /* the library has it, its header has not */
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

static void notify_of(struct socket *s, uint16_t type)
{
    struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = type, .se_on = 1 };
    option(s, SCTP_EVENT, &event, sizeof event);
}

/* Offers only the extension of the case. */
static void extend(struct socket *s)
{
    struct sctp_assoc_value value = { .assoc_id = SCTP_FUTURE_ASSOC };
    int level = 2;
    if (speaks(&arguments, "interleaving")) {
        option(s, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level);
        value.assoc_value = 1;
        option(s, SCTP_INTERLEAVING_SUPPORTED, &value, sizeof value);
    }
    if (speaks(&arguments, "resets")) {
        value.assoc_value = SCTP_ENABLE_RESET_STREAM_REQ;
        option(s, SCTP_ENABLE_STREAM_RESET, &value, sizeof value);
        notify_of(s, SCTP_STREAM_RESET_EVENT);
    }
    if (speaks(&arguments, "partial")) {
        /* If a message is abandoned while it is delivered in parts, usrsctp delivers the last part with MSG_EOR, like that of a complete message. Therefore this peer disables delivery in parts. */
        uint32_t point = LARGEST;
        option(s, SCTP_PARTIAL_DELIVERY_POINT, &point, sizeof point);
        notify_of(s, SCTP_PARTIAL_DELIVERY_EVENT);
    }
    if (speaks(&arguments, "addresses"))
        notify_of(s, SCTP_PEER_ADDR_CHANGE);
    if (speaks(&arguments, "authentication")) {
        struct sctp_authchunk data = { .sauth_chunk = DATA };
        option(s, SCTP_AUTH_CHUNK, &data, sizeof data);
    }
}

static void configure(struct socket *s, sa_family_t family)
{
    int on = 1, room = 2 << 20;
    struct sctp_initmsg init = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS };
    option(s, SCTP_INITMSG, &init, sizeof init);
    option(s, SCTP_RECVRCVINFO, &on, sizeof on);
    option(s, SCTP_NODELAY, &on, sizeof on);
    struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
    option(s, SCTP_EVENT, &event, sizeof event);
    if (arguments.rto_min) {
        struct sctp_rtoinfo rto = { .srto_initial = 1000, .srto_max = 10000, .srto_min = (uint32_t)arguments.rto_min };
        option(s, SCTP_RTOINFO, &rto, sizeof rto);
    }
    usrsctp_setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    usrsctp_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    extend(s);
    if (plain < 0) {
        struct sctp_udpencaps encaps = { .sue_port = htons((uint16_t)arguments.remote_udp) };
        encaps.sue_address.ss_family = family;
        option(s, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof encaps);
    }
}

/* The SCTP address of one end. */
static socklen_t address(struct sockaddr_storage *out, const char *text)
{
    struct sockaddr_conn *conn = (struct sockaddr_conn *)out;
    if (plain < 0)
        return ip(out, text, arguments.port);
    memset(out, 0, sizeof *out);
    conn->sconn_family = AF_CONN;
    conn->sconn_port = htons((uint16_t)arguments.port);
    conn->sconn_addr = &plain;
    return sizeof *conn;
}

static struct socket *open_association(void)
{
    struct sockaddr_storage local, remote;
    socklen_t length = address(&local, arguments.local);
    struct socket *s = usrsctp_socket(local.ss_family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (!s)
        fail("usrsctp_socket: %s", strerror(errno));
    configure(s, local.ss_family);
    if (usrsctp_bind(s, (struct sockaddr *)&local, length))
        fail("bind: %s", strerror(errno));
    if (arguments.connects) {
        say("ready");
        if (usrsctp_connect(s, (struct sockaddr *)&remote, address(&remote, arguments.remote)))
            fail("connect: %s", strerror(errno));
        return s;
    }
    if (usrsctp_listen(s, 1))
        fail("listen: %s", strerror(errno));
    say("ready");
    struct socket *accepted = usrsctp_accept(s, NULL, NULL);
    if (!accepted)
        fail("accept: %s", strerror(errno));
    usrsctp_close(s);
    return accepted;
}

static void flood(struct socket *s)
{
    static uint8_t data[LARGEST];
    struct sctp_sndinfo info = { .snd_sid = 0 };
    double end = seconds_now() + arguments.seconds;
    for (int i = 0; i % 64 || seconds_now() < end; i++)
        if (usrsctp_sendv(s, data, (size_t)arguments.size, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0)
            fail("send: %s", strerror(errno));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool reset_done;

/* Resets all outgoing streams, and waits until this is done. */
static void reset_all(struct socket *s)
{
    struct sctp_reset_streams all = { .srs_assoc_id = SCTP_ALL_ASSOC, .srs_flags = SCTP_STREAM_RESET_OUTGOING };
    option(s, SCTP_RESET_STREAMS, &all, sizeof all);
    pthread_mutex_lock(&lock);
    while (!reset_done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Whether notifications must be read: the sender waits for the notification of its stream reset. */
static bool awaits_reset(void)
{
    pthread_mutex_lock(&lock);
    bool awaits = speaks(&arguments, "resets") && !reset_done;
    pthread_mutex_unlock(&lock);
    return awaits;
}

/* Notifications of the extension of the case. */
static void take_notification(const void *data, struct pieces *pieces)
{
    const struct sctp_pdapi_event *aborted = data;
    const struct sctp_stream_reset_event *reset = data;
    if (aborted->pdapi_type == SCTP_PARTIAL_DELIVERY_EVENT && aborted->pdapi_stream < STREAMS)
        pieces->length[aborted->pdapi_stream] = 0;
    if (reset->strreset_type != SCTP_STREAM_RESET_EVENT || !(reset->strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN))
        return;
    if (reset->strreset_flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED))
        fail("the reset was refused: flags %u", reset->strreset_flags);
    pthread_mutex_lock(&lock);
    reset_done = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *send_all(void *socket)
{
    static uint8_t data[LARGEST];
    uint32_t ordinals[STREAMS] = { 0 };
    for (int i = 0; i < arguments.messages; i++) {
        struct message m = plan(arguments.seed, (uint32_t)i, ordinals);
        compose(m, data);
        struct sctp_sendv_spa how = {
            .sendv_flags = SCTP_SEND_SNDINFO_VALID,
            .sendv_sndinfo = { .snd_sid = m.stream, .snd_ppid = htonl(m.index + PPID), .snd_flags = m.unordered ? SCTP_UNORDERED : 0 },
        };
        if (speaks(&arguments, "partial") && expendable(m.stream)) {
            how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
            how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_RTX;
        }
        if (speaks(&arguments, "resets") && i == arguments.messages / 2)
            reset_all(socket);
        ssize_t n;
        while ((n = usrsctp_sendv(socket, data, m.length, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0)) < 0
               && errno == EAGAIN && speaks(&arguments, "resets"))
            usleep(1000); /* a stream that is being reset takes nothing */
        if (n != (ssize_t)m.length)
            fail("send of message %d: %s", i, n < 0 ? strerror(errno) : "in part");
    }
    say("sent messages=%d", arguments.messages);
    return NULL;
}

/* Reads until every message has arrived and the sender waits for no notification (`whole` false), or the association has ended (true). */
static void receive(struct socket *s, struct checker *checker, bool whole)
{
    static uint8_t data[LARGEST];
    static struct pieces pieces;
    while (whole || !complete(checker) || awaits_reset()) {
        struct sctp_rcvinfo info;
        struct sockaddr_storage from;
        socklen_t from_length = sizeof from, info_length = sizeof info;
        unsigned type;
        int flags = 0;
        ssize_t n = usrsctp_recvv(s, data, sizeof data, (struct sockaddr *)&from, &from_length, &info, &info_length, &type, &flags);
        if (n < 0)
            fail("receive after %u messages: %s", checker->count, strerror(errno));
        if (n == 0)
            break;
        if (flags & MSG_NOTIFICATION) {
            struct sctp_assoc_change *change = (struct sctp_assoc_change *)data;
            take_notification(data, &pieces);
            if (change->sac_type != SCTP_ASSOC_CHANGE || change->sac_state == SCTP_COMM_UP)
                continue;
            if (change->sac_state == SCTP_SHUTDOWN_COMP)
                break;
            fail("association change %u, error %u, after %u messages", change->sac_state, change->sac_error, checker->count);
        }
        if (arguments.size) {
            tally((size_t)n, flags & MSG_EOR);
            continue;
        }
        gather(&pieces, checker, info.rcv_sid, ntohl(info.rcv_ppid), info.rcv_flags & SCTP_UNORDERED, data, (size_t)n, flags & MSG_EOR);
    }
    if (!complete(checker))
        fail("over after %u messages of %u", checker->count, checker->expected);
}

int main(int count, char **given)
{
    arguments = defaults;
    for (int i = 1; i < count; i++)
        if (!take_argument(&arguments, given[i]))
            fail("unknown argument: %s", given[i]);
    bool encap = !strcmp(arguments.transport, "encap");
    if (!encap && strcmp(arguments.transport, "plain"))
        fail("transport %s: this peer has encap and plain", arguments.transport);
    usrsctp_init(encap ? (uint16_t)arguments.local_udp : 0, encap ? NULL : send_plain, NULL);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    /* With I-DATA, usrsctp refuses the first fragment of any message while 512 chunks wait for a missing TSN. If that fragment has the missing TSN, it is never accepted. */
    usrsctp_sysctl_set_sctp_max_chunks_on_queue(1 << 20);
    if (!encap)
        open_plain();
    struct socket *s = open_association();
    say("established");
    if (arguments.size) {
        struct checker nothing = { 0 };
        if (arguments.connects) {
            flood(s);
            usrsctp_shutdown(s, SHUT_WR);
        }
        receive(s, &nothing, true);
        if (!arguments.connects)
            tally(0, true);
        say("closed");
        pause();
    }
    struct checker checker = checker_of(&arguments);
    pthread_t sender;
    pthread_create(&sender, NULL, send_all, s);
    if (arguments.connects) {
        receive(s, &checker, false);
        pthread_join(sender, NULL);
        if (usrsctp_shutdown(s, SHUT_WR))
            fail("shutdown: %s", strerror(errno));
    }
    receive(s, &checker, true);
    pthread_join(sender, NULL);
    conclude(&checker);
    say("closed");
    for (;;) /* until it is ended: the stack may have to answer for what is closed */
        pause();
}
