/* Order of events and messages for a program that reads slowly. A stream reset and a shutdown by
 * the peer must be reported after the messages before them (RFC 6525 §5.2.2, RFC 9260 §9.2), and
 * before later messages. The test uses accepted, one-to-many and peeled-off sockets. */
#include <arpa/inet.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* Number of messages before the reset. It exceeds the capacity of the program's descriptor, but
 * not the receive window, so that the rest is acknowledged and stays in the association. */
enum { BEFORE = 700, STREAM = 1 };

enum how { ACCEPTED, MANY, PEELED_OFF };

static struct sockaddr_in own;

static void set(int s, int option, const void *value, socklen_t length)
{
    CHECK(setsockopt(s, IPPROTO_SCTP, option, value, length) == 0);
}

static int opened(int style, uint16_t first, uint16_t second)
{
    int s = socket(AF_INET, style, IPPROTO_SCTP);
    uint16_t kinds[3] = { first, second, SCTP_ASSOC_CHANGE };
    struct sctp_assoc_value on = { SCTP_FUTURE_ASSOC, 1 }, resets = { SCTP_FUTURE_ASSOC, SCTP_ENABLE_RESET_STREAM_REQ };
    CHECK(s >= 0);
    set(s, SCTP_RECONFIG_SUPPORTED, &on, sizeof on);
    set(s, SCTP_ENABLE_STREAM_RESET, &resets, sizeof resets);
    for (int i = 0; i < 3; i++) {
        struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = kinds[i], .se_on = 1 };
        set(s, SCTP_EVENT, &event, sizeof event);
    }
    return s;
}

/* Number of messages read so far. */
static int count;

/* Checks the next received item: a notification of this type, or a message with this text. */
static sctp_assoc_t next(int s, uint16_t kind, const char *text)
{
    char data[512];
    struct iovec part = { data, sizeof data - 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t n = recvmsg(s, &message, 0);
    const union sctp_notification *it = (const void *)data;
    CHECK(n > 0);
    count++;
    data[n] = 0;
    if (message.msg_flags & MSG_NOTIFICATION ? it->sn_header.sn_type != kind : kind != 0 || strcmp(data, text)) {
        fprintf(stderr, "%d: wanted %x %s, found %x %s\n", count, kind, text, message.msg_flags & MSG_NOTIFICATION ? it->sn_header.sn_type : 0,
                message.msg_flags & MSG_NOTIFICATION ? "" : data);
        exit(1);
    }
    return kind == SCTP_ASSOC_CHANGE ? it->sn_assoc_change.sac_assoc_id : 0;
}

static void say(int s, const char *text)
{
    CHECK(sctp_sendmsg(s, text, strlen(text), NULL, 0, 0, 0, STREAM, 0, 0) == (int)strlen(text));
}

/* Waits until this number of single-chunk messages was sent and acknowledged. The count of DATA
 * chunks is needed, because no option reports data that the host has not read yet. */
static void acknowledged(int s, unsigned messages)
{
    struct sctp_status status;
    struct sctp_assoc_stats statistics;
    socklen_t length = sizeof status, room = sizeof statistics;
    do {
        usleep(1000);
        memset(&status, 0, sizeof status), memset(&statistics, 0, sizeof statistics);
        CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &statistics, &room) == 0);
        CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0);
    } while (statistics.sas_oodchunks < messages || status.sstat_unackdata || status.sstat_penddata);
}

static void slow_reader(int port, enum how how)
{
    struct sockaddr_in to = own;
    union {
        struct sctp_reset_streams header;
        char bytes[sizeof(struct sctp_reset_streams) + sizeof(uint16_t)];
    } reset = { .header = { .srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1 } };
    uint16_t stream = STREAM;
    memcpy(reset.bytes + sizeof reset.header, &stream, sizeof stream);
    to.sin_port = htons((uint16_t)port);
    int l = opened(how == ACCEPTED ? SOCK_STREAM : SOCK_SEQPACKET, SCTP_STREAM_RESET_EVENT, SCTP_SHUTDOWN_EVENT);
    int c = opened(SOCK_STREAM, SCTP_STREAM_RESET_EVENT, SCTP_STREAM_RESET_EVENT), s = l;
    CHECK(bind(l, (struct sockaddr *)&to, sizeof to) == 0 && listen(l, 1) == 0);
    CHECK(connect(c, (struct sockaddr *)&to, sizeof to) == 0);
    if (how == ACCEPTED)
        CHECK((s = accept(l, NULL, NULL)) >= 0);
    sctp_assoc_t association = next(s, SCTP_ASSOC_CHANGE, "");
    next(c, SCTP_ASSOC_CHANGE, "");
    if (how == PEELED_OFF)
        CHECK((s = sctp_peeloff(l, association)) >= 0);
    for (int i = 0; i < BEFORE; i++)
        say(c, "before");
    acknowledged(c, BEFORE);
    set(c, SCTP_RESET_STREAMS, &reset, sizeof reset);
    /* The notification means that the peer has performed the reset. */
    next(c, SCTP_STREAM_RESET_EVENT, "");
    say(c, "after");
    acknowledged(c, BEFORE + 1);
    CHECK(shutdown(c, SHUT_WR) == 0);
    next(c, SCTP_ASSOC_CHANGE, "");
    for (int i = 0; i < BEFORE; i++)
        next(s, 0, "before");
    next(s, SCTP_STREAM_RESET_EVENT, "");
    next(s, 0, "after");
    next(s, SCTP_SHUTDOWN_EVENT, "");
    next(s, SCTP_ASSOC_CHANGE, "");
    CHECK(close(c) == 0 && close(l) == 0 && (s == l || close(s) == 0));
}

int main(int words, char **given)
{
    int port = words > 1 ? atoi(given[1]) : 5001;
    own = (struct sockaddr_in){ .sin_family = AF_INET };
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    alarm(280);
    slow_reader(port, ACCEPTED);
    slow_reader(port + 1, MANY);
    slow_reader(port + 2, PEELED_OFF);
    puts("order");
    return 0;
}
