/* Functions for tests that make calls of the sockets API and print a line for each result
 * (calls.c). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Timeout for data that is expected to arrive, in seconds. */
#define PATIENCE 120

static const char *section = "";
static int count, port;

/* Prints the result of a call. The line number is not printed, so that an inserted line does not
 * change all later ones. */
static long said(const char *what, long result)
{
    int error = errno;
    count++;
    if (result == -1)
        printf("%s: %s = -1 %s\n", section, what, strerrorname_np(error));
    else
        printf("%s: %s = %ld\n", section, what, result);
    errno = 0;
    return result;
}
#define CALL(call) (errno = 0, said(#call, (long)(call)))
#define VALUE(value) said(#value, (long)(value))

static struct sockaddr_in at(const char *ip, int number)
{
    struct sockaddr_in out = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number) };
    inet_pton(AF_INET, ip, &out.sin_addr);
    return out;
}

static struct sockaddr *as(struct sockaddr_in *in)
{
    return (struct sockaddr *)in;
}

/* Waits until sent data has arrived, for cases in which no call reports this. The time is a
 * number of sleeps, each of at least a millisecond. On a busy machine each takes longer, so that
 * the other processes still run often enough. */
__attribute__((unused)) static void settle(int turns)
{
    while (turns-- > 0)
        usleep(1000);
}

static int open_one(void)
{
    return socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
}

static int open_many(void)
{
    return socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
}

/* Sets a receive timeout that is longer than any expected wait, even on a busy machine. */
static void patience(int s)
{
    struct timeval limit = { .tv_sec = PATIENCE };
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static int set(int s, int option, const void *value, socklen_t length)
{
    return setsockopt(s, IPPROTO_SCTP, option, value, length);
}

static int get(int s, int option, void *value, socklen_t length)
{
    return getsockopt(s, IPPROTO_SCTP, option, value, &length);
}

__attribute__((unused)) static int set_int(int s, int option, int value)
{
    return set(s, option, &value, sizeof value);
}

__attribute__((unused)) static long get_int(int s, int option)
{
    int value = -2;
    return get(s, option, &value, sizeof value) ? -1 : value;
}

static int set_value(int s, int option, sctp_assoc_t association, unsigned number)
{
    struct sctp_assoc_value value = { association, number };
    return set(s, option, &value, sizeof value);
}

__attribute__((unused)) static long get_value(int s, int option, sctp_assoc_t association)
{
    struct sctp_assoc_value value = { association, 77777 };
    return get(s, option, &value, sizeof value) ? -1 : (long)value.assoc_value;
}

/* Size in bytes of an option's value, read with a large buffer. */
__attribute__((unused)) static long size_of(int s, int option)
{
    char value[4096] = { 0 };
    socklen_t length = sizeof value;
    return getsockopt(s, IPPROTO_SCTP, option, value, &length) ? -1 : (long)length;
}

/* Enables authentication of DATA chunks, with keys 3 and 4. */
__attribute__((unused)) static void authenticating(int s)
{
    char bytes[sizeof(struct sctp_authkey) + 5] = { 0 };
    struct sctp_authkey *key = (void *)bytes;
    struct sctp_authchunk chunk = { .sauth_chunk = 0 };
    CALL(set_value(s, SCTP_AUTH_SUPPORTED, 0, 1));
    CALL(set(s, SCTP_AUTH_CHUNK, &chunk, sizeof chunk));
    for (uint16_t number = 3; number < 5; number++) {
        key->sca_keynumber = number;
        key->sca_keylength = 5;
        memcpy(key->sca_key, "five!", 5);
        CALL(set(s, SCTP_AUTH_KEY, key, sizeof bytes));
    }
}

static const char *name_of(const void *data)
{
    const union sctp_notification *it = data;
    static char text[128];
    switch (it->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE:
        snprintf(text, sizeof text, "ASSOC_CHANGE state %u error %u length %u", it->sn_assoc_change.sac_state,
                 it->sn_assoc_change.sac_error, it->sn_header.sn_length);
        return text;
    case SCTP_SHUTDOWN_EVENT:
        return "SHUTDOWN_EVENT";
    case SCTP_PEER_ADDR_CHANGE:
        snprintf(text, sizeof text, "PEER_ADDR_CHANGE state %d", it->sn_paddr_change.spc_state);
        return text;
    case SCTP_SEND_FAILED:
        return "SEND_FAILED";
    case SCTP_SEND_FAILED_EVENT:
        return "SEND_FAILED_EVENT";
    case SCTP_STREAM_RESET_EVENT:
        snprintf(text, sizeof text, "STREAM_RESET_EVENT flags %u", it->sn_header.sn_flags);
        return text;
    case SCTP_STREAM_CHANGE_EVENT:
        snprintf(text, sizeof text, "STREAM_CHANGE_EVENT flags %u in %u out %u", it->sn_header.sn_flags,
                 it->sn_strchange_event.strchange_instrms, it->sn_strchange_event.strchange_outstrms);
        return text;
    case SCTP_SENDER_DRY_EVENT:
        return "SENDER_DRY_EVENT";
    case SCTP_ADAPTATION_INDICATION:
        return "ADAPTATION_INDICATION";
    case SCTP_AUTHENTICATION_EVENT:
        return "AUTHENTICATION_EVENT";
    }
    snprintf(text, sizeof text, "type %x", it->sn_header.sn_type);
    return text;
}

/* Receives a message or notification and prints it; returns its association number. */
__attribute__((unused)) static sctp_assoc_t take(int s, int flags)
{
    static char data[1 << 17];
    char control[512];
    struct sockaddr_in6 from = { 0 };
    struct iovec part = { data, sizeof data - 1 };
    struct msghdr message = { &from, sizeof from, &part, 1, control, sizeof control, 0 };
    sctp_assoc_t association = 0;
    errno = 0;
    ssize_t n = recvmsg(s, &message, flags);
    count++;
    if (n < 0) {
        printf("%s: receive = -1 %s\n", section, strerrorname_np(errno));
        return -1;
    }
    if (message.msg_flags & MSG_NOTIFICATION) {
        printf("%s: receive = notification %s%s\n", section, name_of(data), message.msg_flags & MSG_EOR ? "" : ", cut");
        return ((union sctp_notification *)data)->sn_assoc_change.sac_assoc_id;
    }
    data[n] = 0;
    printf("%s: receive = %zd \"%.20s\"%s%s name %u", section, n, data, message.msg_flags & MSG_EOR ? " EOR" : "",
           message.msg_flags & MSG_CTRUNC ? " CTRUNC" : "", message.msg_namelen);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        struct sctp_rcvinfo info;
        struct sctp_sndrcvinfo old;
        struct sctp_nxtinfo next;
        if (c->cmsg_type == SCTP_RCVINFO) {
            memcpy(&info, CMSG_DATA(c), sizeof info);
            association = info.rcv_assoc_id;
            printf(", rcvinfo stream %u ssn %u flags %u ppid %u context %u", info.rcv_sid, info.rcv_ssn, info.rcv_flags,
                   ntohl(info.rcv_ppid), info.rcv_context);
        } else if (c->cmsg_type == SCTP_SNDRCV) {
            memcpy(&old, CMSG_DATA(c), sizeof old);
            association = old.sinfo_assoc_id;
            printf(", sndrcv stream %u ssn %u flags %u ppid %u", old.sinfo_stream, old.sinfo_ssn, old.sinfo_flags, ntohl(old.sinfo_ppid));
        } else if (c->cmsg_type == SCTP_NXTINFO) {
            memcpy(&next, CMSG_DATA(c), sizeof next);
            printf(", nxtinfo stream %u flags %u ppid %u length %u", next.nxt_sid, next.nxt_flags, ntohl(next.nxt_ppid), next.nxt_length);
        }
    }
    printf("\n");
    return association;
}

__attribute__((unused)) static ssize_t send_with(int s, const char *text, struct sctp_sndinfo info, struct sockaddr_in *to, int flags)
{
    char control[CMSG_SPACE(sizeof info)] = { 0 };
    struct iovec part = { (void *)text, strlen(text) };
    struct msghdr message = { to, to ? sizeof *to : 0, &part, 1, control, sizeof control, 0 };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    *c = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO, .cmsg_len = CMSG_LEN(sizeof info) };
    memcpy(CMSG_DATA(c), &info, sizeof info);
    return sendmsg(s, &message, flags | MSG_NOSIGNAL);
}

__attribute__((unused)) static void notifications(int s)
{
    struct sctp_event_subscribe all = { .sctp_association_event = 1, .sctp_shutdown_event = 1, .sctp_send_failure_event = 1 };
    CALL(set(s, SCTP_EVENTS, &all, sizeof all));
}
