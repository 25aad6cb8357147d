/* Threads that wait in calls on SCTP sockets and other descriptors are cancelled, as POSIX
 * specifies for these calls. Their cleanup handlers should run. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static int port, handled;

static struct sockaddr_in loopback(int number)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int listening(int style, int number)
{
    struct sockaddr_in address = loopback(number);
    int s = socket(AF_INET, style, IPPROTO_SCTP);
    CHECK(bind(s, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(s, 5) == 0);
    return s;
}

/* Opens a UDP port that never answers, so that an association to it is never established. */
static int silent(struct sockaddr_in *to)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(udp, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(udp, (struct sockaddr *)&address, &length) == 0);
    *to = loopback(9);
    return ntohs(address.sin_port);
}

static int towards_silence(int style, struct sockaddr_in *to)
{
    struct { sctp_assoc_t association; struct sockaddr_storage address; uint16_t port; } encapsulation = { 0 };
    int s = socket(AF_INET, style, IPPROTO_SCTP);
    memcpy(&encapsulation.address, to, sizeof *to);
    encapsulation.port = htons((uint16_t)silent(to));
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation) == 0);
    return s;
}

static void count(void *unused)
{
    (void)unused;
    handled++;
}

enum { PIPE, ACCEPT, RECEIVE, READ, CONNECT, CONNECTX, SEND, SEND_TO, KINDS };

struct one {
    int kind;
    pthread_barrier_t begun;
};

/* Whether the socket becomes writable within 200 polls of 1 ms. On a busy machine each poll
 * takes longer, so that the host has also had time to run. */
static int has_room(struct pollfd *wanted)
{
    for (int turn = 0; turn < 200; turn++)
        if (poll(wanted, 1, 1) == 1)
            return 1;
    return 0;
}

/* Creates a socket whose buffers are full and whose peer does not read. */
static int full(int number)
{
    static char data[10000];
    struct sockaddr_in to = loopback(number);
    struct pollfd wanted = { .events = POLLOUT };
    int l = listening(SOCK_STREAM, number), s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(connect(s, (struct sockaddr *)&to, sizeof to) == 0 && accept(l, NULL, NULL) >= 0);
    wanted.fd = s;
    do
        while (send(s, data, sizeof data, MSG_DONTWAIT) > 0)
            ;
    while (has_room(&wanted));
    return s;
}

static void *waits(void *given)
{
    struct one *one = given;
    char byte;
    int ends[2];
    struct sockaddr_in to = loopback(0);
    pthread_cleanup_push(count, NULL);
    switch (one->kind) {
    case PIPE:
        CHECK(pipe(ends) == 0);
        pthread_barrier_wait(&one->begun);
        CHECK(read(ends[0], &byte, 1) < 0);
        break;
    case ACCEPT: {
        int s = listening(SOCK_STREAM, port);
        pthread_barrier_wait(&one->begun);
        CHECK(accept(s, NULL, NULL) < 0);
        break;
    }
    case RECEIVE:
    case READ: {
        int s = listening(SOCK_SEQPACKET, port + one->kind);
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        pthread_barrier_wait(&one->begun);
        CHECK((one->kind == READ ? read(s, &byte, 1) : recvmsg(s, &message, 0)) < 0);
        break;
    }
    case SEND: {
        /* The messages are short, because the wait for the rest of a message of several pieces
         * is not a cancellation point. */
        static char data[1000];
        int s = full(port + one->kind);
        pthread_barrier_wait(&one->begun);
        while (send(s, data, sizeof data, 0) > 0)
            ;
        break;
    }
    case SEND_TO: {
        int s = towards_silence(SOCK_SEQPACKET, &to);
        pthread_barrier_wait(&one->begun);
        CHECK(sendto(s, &byte, 1, 0, (struct sockaddr *)&to, sizeof to) < 0);
        break;
    }
    default: {
        int s = towards_silence(SOCK_STREAM, &to);
        pthread_barrier_wait(&one->begun);
        if (one->kind == CONNECTX) {
            CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
            CHECK(sctp_connectx(s, (struct sockaddr *)&to, 1, NULL) < 0);
        } else {
            CHECK(connect(s, (struct sockaddr *)&to, sizeof to) < 0);
        }
    }
    }
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int arguments, char **argument)
{
    CHECK(arguments == 2);
    port = atoi(argument[1]);
    for (int kind = 0; kind < KINDS; kind++) {
        struct one one = { .kind = kind };
        pthread_t thread;
        void *result;
        pthread_barrier_init(&one.begun, NULL, 2);
        CHECK(pthread_create(&thread, NULL, waits, &one) == 0);
        pthread_barrier_wait(&one.begun);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK(handled == kind + 1);
        pthread_barrier_destroy(&one.begun);
    }
    puts("cancelled");
    return 0;
}
