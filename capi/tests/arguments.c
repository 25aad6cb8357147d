/* Tests of invalid pointers and other invalid arguments; of handshakes that are complete when
 * `connect` returns; of addresses and SACK delays; and of the end of data after a local
 * shutdown. Linux 6.1 passes this test too. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

#define FAILS(call, error)                       \
    do {                                         \
        errno = 0;                               \
        CHECK((call) == -1 && errno == (error)); \
    } while (0)

extern int sctp_bindx(int, struct sockaddr *, int, int);
extern int sctp_connectx(int, struct sockaddr *, int, sctp_assoc_t *);
extern int sctp_getpaddrs(int, sctp_assoc_t, struct sockaddr **);
extern int sctp_freepaddrs(struct sockaddr *);
extern int sctp_peeloff(int, sctp_assoc_t);

static int port;

static struct sockaddr_in at(const char *name, int number)
{
    struct sockaddr_in out = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number) };
    inet_pton(AF_INET, name, &out.sin_addr);
    return out;
}

static const struct sockaddr *as(const void *address)
{
    return address;
}

static int opened(int style, const char *name)
{
    struct sockaddr_in own = at(name, ++port);
    int s = socket(AF_INET, style, IPPROTO_SCTP);
    CHECK(s >= 0 && bind(s, as(&own), sizeof own) == 0);
    return s;
}

/* Creates a listening socket and two connected sockets. */
static void connected(int *l, int *c, int *a)
{
    *l = opened(SOCK_STREAM, "127.0.0.1"), *c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sockaddr_in to = at("127.0.0.1", port);
    CHECK(listen(*l, 5) == 0 && connect(*c, as(&to), sizeof to) == 0);
    CHECK((*a = accept(*l, NULL, NULL)) >= 0);
}

/* Invalid pointers: the largest one, a small one, an unmapped page, and a kernel address. */
static void *invalid[4];

static void pointers(void)
{
    int l, c, a;
    connected(&l, &c, &a);
    struct sockaddr_in to = at("127.0.0.1", port);
    struct sctp_rtoinfo rto = { .srto_initial = 3000 };
    socklen_t length = sizeof rto;
    char byte = 'x';
    void *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED && munmap(gone, 4096) == 0);
    invalid[0] = (void *)-1, invalid[1] = (void *)8, invalid[2] = gone, invalid[3] = (void *)(1ul << 63);
    for (int n = 0; n < 4; n++) {
        void *bad = invalid[n];
        int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        FAILS(bind(s, bad, sizeof to), EFAULT);
        FAILS(connect(s, bad, sizeof to), EFAULT);
        FAILS(setsockopt(s, IPPROTO_SCTP, SCTP_RTOINFO, bad, sizeof rto), EFAULT);
        FAILS(getsockopt(s, IPPROTO_SCTP, SCTP_RTOINFO, bad, &length), EFAULT);
        FAILS(getsockopt(s, IPPROTO_SCTP, SCTP_RTOINFO, &rto, bad), EFAULT);
        FAILS(setsockopt(s, SOL_SOCKET, SO_RCVBUF, bad, sizeof(int)), EFAULT);
        FAILS(getsockopt(s, SOL_SOCKET, SO_RCVBUF, bad, &(socklen_t){ sizeof(int) }), EFAULT);
        FAILS(getsockopt(s, SOL_SOCKET, SO_ERROR, bad, &(socklen_t){ sizeof(int) }), EFAULT);
        FAILS(getsockname(c, bad, &(socklen_t){ sizeof to }), EFAULT);
        FAILS(getsockname(c, (struct sockaddr *)&to, bad), EFAULT);
        FAILS(getpeername(c, bad, &(socklen_t){ sizeof to }), EFAULT);
        FAILS(send(c, bad, 1, MSG_NOSIGNAL), EFAULT);
        /* The struct msghdr is checked less strictly than other arguments: an unmapped page
         * would end the program. */
        if (bad != gone) {
            struct iovec part = { &byte, 1 };
            struct msghdr message = { .msg_iov = bad, .msg_iovlen = 1 };
            FAILS(sendmsg(c, bad, MSG_NOSIGNAL), EFAULT);
            FAILS(recvmsg(c, bad, MSG_DONTWAIT), EFAULT);
            FAILS(sendmsg(c, &message, MSG_NOSIGNAL), EFAULT);
            FAILS(recvmsg(c, &message, MSG_DONTWAIT), EFAULT);
            FAILS(writev(c, bad, 1), EFAULT);
            FAILS(readv(c, bad, 1), EFAULT);
            FAILS(sendto(c, &byte, 1, MSG_NOSIGNAL, bad, sizeof to), EFAULT);
            message = (struct msghdr){ .msg_iov = &part, .msg_iovlen = 1, .msg_control = bad, .msg_controllen = 64 };
            FAILS(sendmsg(c, &message, MSG_NOSIGNAL), EFAULT);
        }
        /* If accept fails because of its address argument, the association is lost. */
        int other = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        CHECK(connect(other, as(&to), sizeof to) == 0);
        FAILS(accept(l, bad, &(socklen_t){ sizeof to }), EFAULT);
        CHECK(close(other) == 0 && close(s) == 0);
    }
    /* All connections should still work. */
    CHECK(send(c, "!", 1, 0) == 1 && recv(a, &byte, 1, 0) == 1 && byte == '!');
    CHECK(close(l) == 0 && close(c) == 0 && close(a) == 0);
}

static void kinds(void)
{
    struct sockaddr_in odd = at("127.0.0.1", port);
    FAILS(socket(AF_INET, -1, IPPROTO_SCTP), EINVAL);
    FAILS(socket(AF_INET, SOCK_STREAM | 0x100, IPPROTO_SCTP), EINVAL);
    FAILS(socket(AF_INET, 11, IPPROTO_SCTP), EINVAL);
    int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    odd.sin_family = 9090;
    FAILS(connect(s, as(&odd), sizeof odd), EINVAL);
    FAILS(connect(s, as(&odd), 129), EINVAL);
    CHECK(close(s) == 0);
}

/* With a peer on the same machine, the handshake should be complete when `connect` returns. */
static void at_once(void)
{
    int l = opened(SOCK_STREAM, "127.0.0.1"), many = opened(SOCK_SEQPACKET, "127.0.0.1");
    CHECK(listen(l, 5) == 0 && listen(many, 5) == 0 && fcntl(l, F_SETFL, O_NONBLOCK) == 0);
    for (int style = 0; style < 2; style++) {
        struct sockaddr_in to = at("127.0.0.1", port - 1 + style);
        int c = socket(AF_INET, style ? SOCK_SEQPACKET : SOCK_STREAM, IPPROTO_SCTP);
        CHECK(fcntl(c, F_SETFL, O_NONBLOCK) == 0);
        FAILS(connect(c, as(&to), sizeof to), EINPROGRESS);
        FAILS(connect(c, as(&to), sizeof to), EISCONN);
        CHECK(close(c) == 0);
    }
    CHECK(close(l) == 0 && close(many) == 0);
}

/* Two options contain the SACK delay, and each should return the value set by the other. */
static void delays(void)
{
    int s = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    struct sctp_paddrparams paths = { .spp_address.ss_family = AF_INET };
    struct sctp_assoc_value delay = { 0 };
    socklen_t length = sizeof paths, short_length = sizeof delay;
    CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, &length) == 0 && paths.spp_flags & SPP_SACKDELAY_ENABLE);
    paths.spp_sackdelay = 100;
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, sizeof paths) == 0);
    CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_DELAYED_ACK_TIME, &delay, &short_length) == 0 && delay.assoc_value == 100);
    /* Without the flag SPP_SACKDELAY_ENABLE, the delay is ignored. */
    paths.spp_sackdelay = 300, paths.spp_flags &= ~(uint32_t)SPP_SACKDELAY_ENABLE;
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, sizeof paths) == 0);
    CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_DELAYED_ACK_TIME, &delay, &short_length) == 0 && delay.assoc_value == 100);
    delay.assoc_value = 250;
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_DELAYED_ACK_TIME, &delay, sizeof delay) == 0);
    CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, &length) == 0 && paths.spp_sackdelay == 250);
    struct sctp_sack_info each = { .sack_freq = 1 };
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_DELAYED_SACK, &each, sizeof each) == 0);
    CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, &length) == 0 && paths.spp_flags & SPP_SACKDELAY_DISABLE);
    /* Without an association, a HEARTBEAT cannot be requested. */
    memset(&paths, 0, sizeof paths);
    paths.spp_flags = SPP_HB_DEMAND;
    FAILS(setsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, sizeof paths), EINVAL);
    CHECK(close(s) == 0);
}

/* Tests the addresses of an association's peer. */
static void addresses(void)
{
    int server = opened(SOCK_SEQPACKET, "127.0.0.1"), client = opened(SOCK_SEQPACKET, "127.0.0.1");
    struct sockaddr_in more = at("127.0.0.2", port - 1);
    CHECK(sctp_bindx(server, (struct sockaddr *)&more, 1, SCTP_BINDX_ADD_ADDR) == 0 && listen(server, 5) == 0);
    struct sctp_event_subscribe events = { .sctp_association_event = 1 };
    CHECK(setsockopt(server, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
    /* An address that was passed to connect, but does not belong to the peer, should not be
     * listed. */
    struct sockaddr_in called[] = { at("127.0.0.1", port - 1), at("127.0.0.9", port - 1) };
    sctp_assoc_t id = 0;
    CHECK(sctp_connectx(client, (struct sockaddr *)called, 2, &id) == 0);
    struct sockaddr *all;
    CHECK(sctp_getpaddrs(client, id, &all) == 2);
    for (int n = 0; n < 2; n++)
        CHECK(((struct sockaddr_in *)all)[n].sin_addr.s_addr != called[1].sin_addr.s_addr);
    sctp_freepaddrs(all);
    /* An address should be accepted only with the peer's port. */
    for (int right = 0; right < 2; right++) {
        struct sockaddr_in peer = at("127.0.0.1", right ? port - 1 : port);
        struct sctp_paddrinfo info = { .spinfo_assoc_id = id };
        struct sctp_paddrparams paths = { .spp_assoc_id = id, .spp_pathmaxrxt = 3 };
        struct sctp_prim primary = { .ssp_assoc_id = id };
        memcpy(&info.spinfo_address, &peer, sizeof peer);
        memcpy(&paths.spp_address, &peer, sizeof peer);
        memcpy(&primary.ssp_addr, &peer, sizeof peer);
        int expected = right ? 0 : -1;
        CHECK(getsockopt(client, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &(socklen_t){ sizeof info }) == expected);
        CHECK(right || errno == EINVAL);
        CHECK(setsockopt(client, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &paths, sizeof paths) == expected && (right || errno == EINVAL));
        CHECK(setsockopt(client, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &primary, sizeof primary) == expected && (right || errno == EINVAL));
    }
    /* A peeled-off socket ignores the destination address. The original socket cannot connect to
     * the same peer again. */
    union sctp_notification news;
    CHECK(recv(server, &news, sizeof news, 0) == sizeof(struct sctp_assoc_change));
    int peeled = sctp_peeloff(server, news.sn_assoc_change.sac_assoc_id);
    struct sockaddr_in peer = at("127.0.0.1", port), other = at("127.0.0.1", port + 1);
    CHECK(peeled >= 0 && sendto(peeled, "x", 1, 0, as(&other), sizeof other) == 1);
    FAILS(connect(server, as(&peer), sizeof peer), EADDRNOTAVAIL);
    FAILS(sendto(server, "x", 1, 0, as(&peer), sizeof peer), EADDRNOTAVAIL);
    char byte;
    CHECK(recv(client, &byte, 1, 0) == 1 && byte == 'x');
    CHECK(close(server) == 0 && close(client) == 0 && close(peeled) == 0);
}

static void ancillary_data(void)
{
    int l, c, a, on = 1;
    connected(&l, &c, &a);
    char bytes[4];
    struct iovec part = { bytes, sizeof bytes };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    CHECK(setsockopt(a, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    /* The message has no space for ancillary data, so MSG_CTRUNC should be set. */
    CHECK(send(c, "x", 1, 0) == 1 && recvmsg(a, &message, 0) == 1);
    CHECK((message.msg_flags & (MSG_EOR | MSG_CTRUNC)) == (MSG_EOR | MSG_CTRUNC));
    CHECK(close(l) == 0 && close(c) == 0 && close(a) == 0);
}

/* After a local shutdown of both directions, a program gets ENOTCONN; after a shutdown of
 * receiving only, it reads the end of data. */
static void own_end(void)
{
    for (int reading = 0; reading < 2; reading++) {
        int l, c, a;
        char byte;
        connected(&l, &c, &a);
        CHECK(send(a, "x", 1, 0) == 1 && recv(c, &byte, 1, MSG_PEEK) == 1);
        CHECK(shutdown(c, reading ? SHUT_RDWR : SHUT_WR) == 0);
        CHECK(recv(a, &byte, 1, 0) == 0);
        CHECK(recv(c, &byte, 1, 0) == 1);
        if (reading)
            CHECK(recv(c, &byte, 1, 0) == 0);
        else
            FAILS(recv(c, &byte, 1, 0), ENOTCONN);
        CHECK(close(l) == 0 && close(c) == 0 && close(a) == 0);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    port = atoi(argv[1]);
    pointers();
    kinds();
    at_once();
    delays();
    addresses();
    ancillary_data();
    own_end();
    puts("arguments");
    return 0;
}
