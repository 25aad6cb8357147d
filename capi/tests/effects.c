/* Tests of options and notifications that have an effect: adaptation layer indication,
 * SENDER_DRY, values per stream, two listeners at one port, and release of a port when its last
 * descriptor is closed. */
#include <arpa/inet.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_in own;

static int opened(int style, int port)
{
    struct sockaddr_in address = own;
    int s = socket(AF_INET, style, IPPROTO_SCTP);
    address.sin_port = htons((uint16_t)port);
    CHECK(s >= 0 && bind(s, (struct sockaddr *)&address, sizeof address) == 0);
    return s;
}

static void set(int s, int option, const void *value, socklen_t length)
{
    CHECK(setsockopt(s, IPPROTO_SCTP, option, value, length) == 0);
}

static void want(int s, uint16_t kind)
{
    struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = kind, .se_on = 1 };
    set(s, SCTP_EVENT, &event, sizeof event);
}

/* Receives the next notification, and checks that it has this type. */
static union sctp_notification told(int s, uint16_t kind)
{
    union sctp_notification all;
    struct iovec part = { &all, sizeof all };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    memset(&all, 0, sizeof all);
    CHECK(recvmsg(s, &message, 0) > 0 && message.msg_flags & MSG_NOTIFICATION);
    CHECK(all.sn_header.sn_type == kind);
    return all;
}

/* Each end should be notified of the peer's adaptation layer, and when all data that it has sent
 * is acknowledged. */
static void notifications(int port)
{
    int l = opened(SOCK_STREAM, port), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    unsigned here = 7, there = 9;
    struct sockaddr_in to = own;
    char text[8];
    to.sin_port = htons((uint16_t)port);
    set(l, SCTP_ADAPTATION_LAYER, &there, sizeof there);
    set(c, SCTP_ADAPTATION_LAYER, &here, sizeof here);
    want(l, SCTP_ADAPTATION_INDICATION);
    want(c, SCTP_ADAPTATION_INDICATION);
    CHECK(listen(l, 1) == 0 && connect(c, (struct sockaddr *)&to, sizeof to) == 0);
    int a = accept(l, NULL, NULL);
    CHECK(a >= 0);
    CHECK(told(c, SCTP_ADAPTATION_INDICATION).sn_adaptation_event.sai_adaptation_ind == there);
    CHECK(told(a, SCTP_ADAPTATION_INDICATION).sn_adaptation_event.sai_adaptation_ind == here);
    /* The notification should be immediate, because no data is in flight. It should come again
     * after data is sent. */
    want(c, SCTP_SENDER_DRY_EVENT);
    union sctp_notification dry = told(c, SCTP_SENDER_DRY_EVENT);
    CHECK(dry.sn_header.sn_length == sizeof dry.sn_sender_dry_event);
    CHECK(send(c, "all", 3, 0) == 3);
    told(c, SCTP_SENDER_DRY_EVENT);
    CHECK(recv(a, text, sizeof text, 0) == 3);
    CHECK(close(a) == 0 && close(c) == 0 && close(l) == 0);
}

static void values_of_streams(int port)
{
    int l = opened(SOCK_STREAM, port), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    struct sctp_stream_value value = { .stream_id = 3, .stream_value = 5 };
    struct sockaddr_in to = own;
    socklen_t length = sizeof value;
    to.sin_port = htons((uint16_t)port);
    CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value) == -1 && errno == EINVAL);
    CHECK(listen(l, 1) == 0 && connect(c, (struct sockaddr *)&to, sizeof to) == 0);
    set(c, SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value);
    value.stream_value = 0;
    CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_STREAM_SCHEDULER_VALUE, &value, &length) == 0 && value.stream_value == 5);
    CHECK(close(c) == 0 && close(l) == 0);
}

/* With SCTP_REUSE_PORT, each of two listeners should get some of the connections. */
static void two_listeners(int port)
{
    int l[2], on = 1, got[2] = { 0, 0 };
    struct sockaddr_in to = own;
    to.sin_port = htons((uint16_t)port);
    for (int i = 0; i < 2; i++) {
        l[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
        set(l[i], SCTP_REUSE_PORT, &on, sizeof on);
        CHECK(bind(l[i], (struct sockaddr *)&to, sizeof to) == 0 && listen(l[i], 9) == 0);
    }
    int alone = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(bind(alone, (struct sockaddr *)&to, sizeof to) == -1 && errno == EADDRINUSE);
    for (int i = 0; i < 8; i++) {
        int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), a = -1;
        CHECK(connect(c, (struct sockaddr *)&to, sizeof to) == 0);
        for (int turn = 0; a < 0; turn = !turn) {
            a = accept(l[turn], NULL, NULL);
            CHECK(a >= 0 || errno == EAGAIN);
            got[turn] += a >= 0;
        }
        CHECK(close(a) == 0 && close(c) == 0);
    }
    CHECK(got[0] > 0 && got[1] > 0 && got[0] + got[1] == 8);
    CHECK(close(l[0]) == 0 && close(l[1]) == 0 && close(alone) == 0);
}

/* Number of outgoing streams of a new association to the listeners at `port`, the last of which is
 * `l`; 0 if the association was aborted. */
static int streams_of(int port, int l)
{
    struct sockaddr_in to = own;
    struct sctp_status status = { 0 };
    socklen_t length = sizeof status;
    int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), a, streams = 0;
    to.sin_port = htons((uint16_t)port);
    if (connect(c, (struct sockaddr *)&to, sizeof to) == 0
        && getsockopt(c, IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0)
        streams = status.sstat_outstrms;
    /* Makes room in the backlog. */
    while ((a = accept(l, NULL, NULL)) >= 0)
        CHECK(close(a) == 0);
    CHECK(errno == EAGAIN && close(c) == 0);
    return streams;
}

/* If two sockets listen at one port, new associations have the options of the first, also after
 * options of the second were set. When the first is closed, they have those of the second. */
static void options_of_two_listeners(int port)
{
    int l[2], on = 1, streams;
    struct sockaddr_in to = own;
    struct sctp_initmsg init = { .sinit_max_instreams = 3 };
    struct sctp_rtoinfo rto = { .srto_max = 100000000 };
    to.sin_port = htons((uint16_t)port);
    for (int i = 0; i < 2; i++) {
        l[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
        set(l[i], SCTP_REUSE_PORT, &on, sizeof on);
        set(l[i], SCTP_INITMSG, &init, sizeof init);
        CHECK(bind(l[i], (struct sockaddr *)&to, sizeof to) == 0 && listen(l[i], 9) == 0);
        init.sinit_max_instreams = 5;
    }
    CHECK(streams_of(port, l[1]) == 3);
    set(l[1], SCTP_NODELAY, &on, sizeof on);
    CHECK(streams_of(port, l[1]) == 3);
    init.sinit_max_instreams = 4;
    set(l[0], SCTP_INITMSG, &init, sizeof init);
    CHECK(streams_of(port, l[1]) == 4);
    /* A refused value leaves the other options in effect. */
    CHECK(setsockopt(l[0], IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == -1 && errno == EINVAL);
    init.sinit_max_instreams = 6;
    set(l[0], SCTP_INITMSG, &init, sizeof init);
    CHECK(streams_of(port, l[1]) == 6);
    CHECK(close(l[0]) == 0);
    /* The host process detects the closed descriptor after a short delay. */
    for (int tries = 0; (streams = streams_of(port, l[1])) != 5; tries++) {
        CHECK((streams == 6 || streams == 0) && tries < 3000);
        usleep(10000);
    }
    CHECK(close(l[1]) == 0);
}

static int caller(int port)
{
    struct sockaddr_in to = own;
    int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    to.sin_port = htons((uint16_t)port);
    if (connect(c, (struct sockaddr *)&to, sizeof to) == 0)
        return c;
    CHECK(errno == ECONNREFUSED && close(c) == 0);
    return -1;
}

/* As in Linux, the backlog admits one association more than `listen` requested; further ones are
 * refused. */
static void backlog(int port)
{
    int l = opened(SOCK_STREAM, port), all[9], count = 0;
    CHECK(listen(l, 2) == 0);
    while ((all[count] = caller(port)) >= 0)
        CHECK(++count < 9);
    CHECK(count == 3);
    CHECK(listen(l, 4) == 0);
    while ((all[count] = caller(port)) >= 0)
        CHECK(++count < 9);
    CHECK(count == 5);
    int a = accept(l, NULL, NULL);
    CHECK(a >= 0);
    /* The host learns of the accepted association a moment later. */
    while ((all[count] = caller(port)) < 0)
        continue;
    CHECK(caller(port) == -1);
    for (; count >= 0; count--)
        CHECK(close(all[count]) == 0);
    CHECK(close(a) == 0 && close(l) == 0);
}

static void free_at_once(int port)
{
    for (int turn = 0; turn < 50; turn++)
        CHECK(close(opened(turn % 2 ? SOCK_SEQPACKET : SOCK_STREAM, port)) == 0);
}

int main(int count, char **given)
{
    int port = count > 1 ? atoi(given[1]) : 5001;
    own = (struct sockaddr_in){ .sin_family = AF_INET };
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    notifications(port);
    values_of_streams(port + 1);
    two_listeners(port + 2);
    free_at_once(port + 3);
    backlog(port + 4);
    options_of_two_listeners(port + 5);
    puts("effects");
    return 0;
}
