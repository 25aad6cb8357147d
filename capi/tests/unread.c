/* A one-to-many socket has a peer that does not read. Messages to this peer wait or are refused
 * with EAGAIN, but messages to the other peers should not be affected (RFC 6458 §3.2). */
#include <arpa/inet.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

enum { SIZE = 8000, MOST = 100000, FEW = 200 };

static int many;
static struct sockaddr_in quiet, busy;

static struct sockaddr_in at(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int listening(const struct sockaddr_in *address)
{
    int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(s >= 0 && bind(s, (const struct sockaddr *)address, sizeof *address) == 0 && listen(s, 1) == 0);
    return s;
}

/* Sends a message that contains `number`. */
static ssize_t put(const struct sockaddr_in *to, uint32_t number, int flags)
{
    char text[SIZE] = { 0 };
    memcpy(text, &number, sizeof number);
    return sendto(many, text, sizeof text, flags, (const struct sockaddr *)to, sizeof *to);
}

/* Waits until the descriptor is writable, which it is as soon as the host reads again. Then
 * sends a message; returns false if the buffer of the association is full. */
static int has_room(const struct sockaddr_in *to, uint32_t number)
{
    struct pollfd watched = { .fd = many, .events = POLLOUT };
    CHECK(poll(&watched, 1, -1) == 1);
    ssize_t sent = put(to, number, MSG_DONTWAIT);
    CHECK(sent == SIZE || (sent == -1 && errno == EAGAIN));
    return sent == SIZE;
}

/* Sends until the association's buffer is full; returns the number of the next message. */
static uint32_t fill(uint32_t number)
{
    while (has_room(&quiet, number))
        CHECK(number++ < MOST);
    return number;
}

static void came(int s, uint32_t number)
{
    char text[SIZE + 1];
    uint32_t found;
    CHECK(recv(s, text, sizeof text, 0) == SIZE);
    memcpy(&found, text, sizeof found);
    CHECK(found == number);
}

/* Sends a message with these flags of struct sctp_sndinfo. */
static ssize_t send_so(uint16_t flags, const struct sockaddr_in *to, int how)
{
    char text[4] = "all";
    struct iovec part = { text, sizeof text };
    union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(struct sctp_sndinfo))]; } control = { 0 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct sctp_sndinfo info = { .snd_flags = flags };
    if (to) {
        message.msg_name = (void *)to;
        message.msg_namelen = sizeof *to;
    }
    control.header.cmsg_level = IPPROTO_SCTP;
    control.header.cmsg_type = SCTP_SNDINFO;
    control.header.cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(&control.header), &info, sizeof info);
    return sendmsg(many, &message, how);
}

static void *sends_and_waits(void *number)
{
    CHECK(put(&quiet, *(uint32_t *)number, 0) == SIZE);
    return NULL;
}

int main(int count, char **words)
{
    int port = count > 1 ? atoi(words[1]) : 5001;
    quiet = at(port);
    busy = at(port + 1);
    int l[2] = { listening(&quiet), listening(&busy) };
    many = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    CHECK(many >= 0);
    /* The alarm would end the test if the host stopped reading. */
    alarm(280);
    CHECK(put(&quiet, 0, 0) == SIZE && put(&busy, 0, 0) == SIZE);
    int reads_nothing = accept(l[0], NULL, NULL), reads = accept(l[1], NULL, NULL);
    CHECK(reads_nothing >= 0 && reads >= 0);
    came(reads, 0);

    uint32_t next = fill(1), sent = 1;
    CHECK(next > 1);
    for (uint32_t end = sent + FEW; sent < end; sent++) {
        /* The peer `busy` reads, so buffer space becomes available again. */
        while (!has_room(&busy, sent))
            continue;
        came(reads, sent);
    }

    /* A message to all includes the full association, so it should be sent to none. */
    CHECK(send_so(SCTP_SENDALL, NULL, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    struct timeval limit = { .tv_usec = 1000 }, none = { 0 };
    CHECK(setsockopt(many, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    CHECK(put(&quiet, next, 0) == -1 && errno == EAGAIN);
    CHECK(setsockopt(many, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none) == 0);

    /* A thread that waits for this association should not block others. */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sends_and_waits, &next) == 0);
    for (uint32_t end = sent + FEW; sent < end; sent++) {
        CHECK(put(&busy, sent, 0) == SIZE);
        came(reads, sent);
    }
    /* All messages should arrive in order when the peer reads them. */
    for (uint32_t number = 0; number <= next; number++)
        came(reads_nothing, number);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(send_so(SCTP_SENDALL, NULL, 0) == 4);
    char text[8];
    CHECK(recv(reads, text, sizeof text, 0) == 4 && recv(reads_nothing, text, sizeof text, 0) == 4);

    /* An abort should not wait for buffer space. */
    fill(0);
    CHECK(send_so(SCTP_ABORT, &quiet, MSG_DONTWAIT) == 0);
    char rest[SIZE];
    ssize_t length;
    while ((length = recv(reads_nothing, rest, sizeof rest, 0)) > 0)
        continue;
    CHECK(length == -1 && errno == ECONNRESET);
    CHECK(put(&busy, sent, 0) == SIZE);
    came(reads, sent);
    puts("unread");
    return 0;
}
