/* Semantics of one-to-one SCTP sockets (RFC 6458 §4), tested from C. `semantics PORT` runs both
 * ends: a server in a child process, and a client. The exit status is 0 if all checks pass; the
 * first failed check prints its line. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { BIG = 200000 };

static struct sockaddr_in at(int port)
{
    struct sockaddr_in out = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return out;
}

static int listening(int port)
{
    struct sockaddr_in own = at(port), told;
    socklen_t length = sizeof told;
    int on = 1, s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(s >= 0);
    CHECK(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    struct sctp_initmsg init = { .sinit_num_ostreams = 7, .sinit_max_instreams = 9 };
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
    CHECK(bind(s, (struct sockaddr *)&own, sizeof own) == 0);
    CHECK(getsockname(s, (struct sockaddr *)&told, &length) == 0);
    CHECK(length == sizeof told && told.sin_port == own.sin_port && told.sin_family == AF_INET);
    int other = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(bind(other, (struct sockaddr *)&own, sizeof own) == -1 && errno == EADDRINUSE);
    CHECK(close(other) == 0);
    CHECK(listen(s, 5) == 0);
    length = sizeof on;
    CHECK(getsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &on, &length) == 0 && on == 1);
    return s;
}

/* Receives one message with its struct sctp_rcvinfo; returns its length, or -1 at the end of
 * data. */
static ssize_t take(int s, char *data, size_t room, struct sctp_rcvinfo *info, int *flags)
{
    char control[256];
    struct iovec part = { .iov_base = data, .iov_len = room };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    ssize_t n = recvmsg(s, &message, 0);
    CHECK(n >= 0);
    *flags = message.msg_flags;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
            memcpy(info, CMSG_DATA(c), sizeof *info);
    return n;
}

static void serve(int s)
{
    static char data[BIG];
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    int on = 1, flags, c = accept4(s, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
    CHECK(c >= 0 && length == sizeof from && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    CHECK(fcntl(c, F_GETFD) & FD_CLOEXEC);
    CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);

    /* A message should have its stream, its payload protocol identifier, and its place in the
     * order. */
    struct sctp_rcvinfo info = { 0 };
    CHECK(take(c, data, sizeof data, &info, &flags) == 5 && !memcmp(data, "first", 5));
    CHECK(flags == MSG_EOR && info.rcv_sid == 3 && ntohl(info.rcv_ppid) == 77 && !(info.rcv_flags & SCTP_UNORDERED));
    CHECK(take(c, data, sizeof data, &info, &flags) == 6 && (info.rcv_flags & SCTP_UNORDERED) && info.rcv_sid == 1);

    /* A short buffer should get a part of the message; then poll and FIONREAD should report the
     * rest. */
    struct pollfd wanted = { .fd = c, .events = POLLIN };
    CHECK(take(c, data, 4, &info, &flags) == 4 && !memcmp(data, "0123", 4) && flags == 0);
    CHECK(poll(&wanted, 1, 0) == 1 && wanted.revents == POLLIN);
    int left = 0;
    CHECK(ioctl(c, FIONREAD, &left) == 0 && left == 6);
    CHECK(recv(c, data, 3, MSG_PEEK) == 3 && !memcmp(data, "456", 3));
    pid_t child = fork(); /* another process continues at the same byte */
    if (!child) {
        CHECK(read(c, data, 3) == 3 && !memcmp(data, "456", 3));
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(take(c, data, sizeof data, &info, &flags) == 3 && !memcmp(data, "789", 3) && flags == MSG_EOR);

    /* A long message should arrive completely, possibly in parts. */
    size_t have = 0;
    do {
        ssize_t n = take(c, data + have, sizeof data - have, &info, &flags);
        CHECK(n > 0);
        have += (size_t)n;
    } while (!(flags & MSG_EOR));
    CHECK(have == BIG && data[0] == 'a' && data[BIG - 1] == 'z');

    CHECK(send(c, "thanks", 6, 0) == 6);
    CHECK(read(c, data, sizeof data) == 0); /* the client has shut down */
    CHECK(close(c) == 0);
    CHECK(close(s) == 0);
}

static void send_on(int s, const void *data, size_t length, int stream, int flags)
{
    char control[CMSG_SPACE(sizeof(struct sctp_sndinfo))] = { 0 };
    struct iovec part = { .iov_base = (void *)data, .iov_len = length };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = IPPROTO_SCTP;
    c->cmsg_type = SCTP_SNDINFO;
    c->cmsg_len = CMSG_LEN(sizeof(struct sctp_sndinfo));
    struct sctp_sndinfo info = { .snd_sid = (uint16_t)stream, .snd_ppid = htonl(77), .snd_flags = (uint16_t)flags };
    memcpy(CMSG_DATA(c), &info, sizeof info);
    CHECK(sendmsg(s, &message, 0) == (ssize_t)length);
}

/* Connects without blocking. Waits with epoll, which watches the socket and an ordinary
 * descriptor. */
static int call(int port)
{
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP), error = -1, pipes[2];
    socklen_t length = sizeof error;
    struct sockaddr_in peer = at(port), told;
    CHECK(s >= 0 && (fcntl(s, F_GETFL) & O_NONBLOCK));
    CHECK(connect(s, (struct sockaddr *)&peer, sizeof peer) == -1 && errno == EINPROGRESS);
    int set = epoll_create1(0);
    struct epoll_event want = { .events = EPOLLOUT, .data.fd = s }, got[2];
    CHECK(pipe(pipes) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, s, &want) == 0);
    want = (struct epoll_event) { .events = EPOLLIN, .data.fd = pipes[0] };
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &want) == 0);
    CHECK(epoll_wait(set, got, 2, -1) == 1 && got[0].data.fd == s);
    CHECK(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
    char none;
    CHECK(recv(s, &none, 1, 0) == -1 && errno == EAGAIN);
    CHECK(fcntl(s, F_SETFL, 0) == 0);
    length = sizeof told;
    CHECK(getpeername(s, (struct sockaddr *)&told, &length) == 0 && told.sin_port == peer.sin_port);
    CHECK(connect(s, (struct sockaddr *)&peer, sizeof peer) == -1 && errno == EISCONN);
    close(set), close(pipes[0]), close(pipes[1]);
    return s;
}

int main(int count, char **given)
{
    int port = count > 1 ? atoi(given[1]) : 5001;
    int s = listening(port);
    pid_t child = fork();
    if (!child) {
        serve(s);
        exit(0);
    }
    CHECK(close(s) == 0);

    /* At this port, no socket listens. */
    struct sockaddr_in nobody = at(port + 1);
    int refused = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(connect(refused, (struct sockaddr *)&nobody, sizeof nobody) == -1 && errno == ECONNREFUSED);
    CHECK(close(refused) == 0);

    int c = call(port), kind;
    socklen_t length = sizeof kind;
    CHECK(getsockopt(c, SOL_SOCKET, SO_TYPE, &kind, &length) == 0 && kind == SOCK_STREAM);
    CHECK(getsockopt(c, SOL_SOCKET, SO_PROTOCOL, &kind, &length) == 0 && kind == IPPROTO_SCTP);
    CHECK(setsockopt(c, IPPROTO_SCTP, 9999, &kind, sizeof kind) == -1 && errno == ENOPROTOOPT);
    struct sctp_status status = { 0 };
    length = sizeof status;
    CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0);
    /* The server accepts nine streams, of the ten that this end requests. */
    CHECK(status.sstat_outstrms == 9 && status.sstat_instrms == 7);

    send_on(c, "first", 5, 3, 0);
    send_on(c, "second", 6, 1, SCTP_UNORDERED);
    CHECK(sctp_sendmsg(c, "0123456789", 10, NULL, 0, htonl(5), 0, 2, 0, 0) == 10);
    static char big[BIG];
    memset(big, 'm', sizeof big);
    big[0] = 'a', big[BIG - 1] = 'z';
    CHECK(write(c, big, sizeof big) == sizeof big);
    CHECK(send(c, "", 0, 0) == -1 && errno == EINVAL);

    char answer[16];
    int copy = dup(c);
    CHECK(close(c) == 0); /* the copy keeps the association */
    CHECK(recv(copy, answer, sizeof answer, 0) == 6 && !memcmp(answer, "thanks", 6));
    CHECK(shutdown(copy, SHUT_WR) == 0);
    /* Linux returns no end of data after a local shutdown. */
    CHECK(read(copy, answer, sizeof answer) == -1 && errno == ENOTCONN);
    CHECK(dup2(0, copy) == copy);
    int how;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    puts("as it should be");
    return 0;
}
