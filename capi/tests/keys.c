/* The calls by which a DTLS library changes the keys of AUTH (RFC 6083, section 4.8), on sockets
 * whose host has AUTH enabled. The options of the listening socket are set after `listen`.
 * `keys PORT` runs both ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { DATA = 0, FORWARD_TSN = 0xC0, KEY = 64 };

static void requires_auth(int s)
{
    for (int i = 0; i < 2; i++) {
        struct sctp_authchunk chunk = { .sauth_chunk = i ? FORWARD_TSN : DATA };
        CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &chunk, sizeof chunk) == 0);
    }
}

/* Whether the option lists both chunk types. */
static bool lists_both(int s, int option)
{
    uint8_t all[sizeof(struct sctp_authchunks) + 256] = { 0 };
    struct sctp_authchunks *chunks = (void *)all;
    socklen_t length = sizeof all;
    CHECK(getsockopt(s, IPPROTO_SCTP, option, chunks, &length) == 0);
    CHECK(length == sizeof *chunks + chunks->gauth_number_of_chunks);
    const uint8_t *listed = all + sizeof *chunks;
    size_t count = chunks->gauth_number_of_chunks;
    return memchr(listed, DATA, count) && memchr(listed, FORWARD_TSN, count);
}

static uint16_t active(int s)
{
    struct sctp_authkeyid id = { 0 };
    socklen_t length = sizeof id;
    CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &id, &length) == 0 && length == sizeof id);
    return id.scact_keynumber;
}

static void of_key(int s, int option, uint16_t number)
{
    struct sctp_authkeyid id = { .scact_keynumber = number };
    CHECK(setsockopt(s, IPPROTO_SCTP, option, &id, sizeof id) == 0);
}

/* Adds the key that follows the active one, which stays active. */
static void adds_key(int s)
{
    uint8_t all[sizeof(struct sctp_authkey) + KEY];
    struct sctp_authkey *key = (void *)all;
    uint16_t before = active(s);
    memset(all, 'a' + before, sizeof all);
    *key = (struct sctp_authkey){ .sca_keynumber = before + 1, .sca_keylength = KEY };
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_AUTH_KEY, key, sizeof all) == 0);
    of_key(s, SCTP_AUTH_ACTIVE_KEY, before);
    CHECK(active(s) == before);
}

static void passes(int from, int to, const char *text)
{
    char data[256];
    ssize_t length = (ssize_t)strlen(text);
    CHECK(send(from, text, (size_t)length, 0) == length);
    for (;;) {
        struct iovec part = { data, sizeof data };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t read = recvmsg(to, &message, 0);
        CHECK(read > 0);
        if (message.msg_flags & MSG_NOTIFICATION)
            continue;
        CHECK(read == length && !memcmp(data, text, (size_t)length));
        return;
    }
}

/* Waits until no packet needs the key any more. */
static void waits_until_free(int s, uint16_t number)
{
    union sctp_notification it;
    do {
        ssize_t read = recv(s, &it, sizeof it, 0);
        CHECK(read > 0 && it.sn_header.sn_type == SCTP_AUTHENTICATION_EVENT);
    } while (it.sn_authkey_event.auth_indication != SCTP_AUTH_FREE_KEY);
    CHECK(it.sn_authkey_event.auth_keynumber == number);
}

int main(int count, char **given)
{
    int port = count > 1 ? atoi(given[1]) : 5001;
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), s[2];
    CHECK(bind(l, (struct sockaddr *)&own, sizeof own) == 0 && listen(l, 5) == 0);
    requires_auth(l);
    struct sctp_initmsg streams = { .sinit_num_ostreams = 3 };
    CHECK(setsockopt(l, IPPROTO_SCTP, SCTP_INITMSG, &streams, sizeof streams) == 0);
    s[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    requires_auth(s[0]);
    CHECK(connect(s[0], (struct sockaddr *)&own, sizeof own) == 0);
    s[1] = accept(l, NULL, NULL);
    CHECK(s[1] >= 0);
    struct sctp_status status;
    socklen_t length = sizeof status;
    CHECK(getsockopt(s[1], IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0 && status.sstat_outstrms == 3);

    for (int i = 0; i < 2; i++) {
        CHECK(lists_both(s[i], SCTP_LOCAL_AUTH_CHUNKS) && lists_both(s[i], SCTP_PEER_AUTH_CHUNKS));
        struct sctp_event event = { .se_type = SCTP_AUTHENTICATION_EVENT, .se_on = 1 };
        CHECK(setsockopt(s[i], IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    }
    for (uint16_t number = 0; number < 2; number++) {
        for (int i = 0; i < 2; i++)
            adds_key(s[i]);
        passes(s[0], s[1], "by the former key");
        passes(s[1], s[0], "back");
        for (int i = 0; i < 2; i++) {
            of_key(s[i], SCTP_AUTH_ACTIVE_KEY, number + 1);
            CHECK(active(s[i]) == number + 1);
        }
        passes(s[0], s[1], "by the new key");
        passes(s[1], s[0], "back by the new key");
        for (int i = 0; i < 2; i++) {
            of_key(s[i], SCTP_AUTH_DEACTIVATE_KEY, number);
            waits_until_free(s[i], number);
            of_key(s[i], SCTP_AUTH_DELETE_KEY, number);
        }
        passes(s[0], s[1], "without the former key");
        passes(s[1], s[0], "back");
    }
    puts("keys");
    return 0;
}
