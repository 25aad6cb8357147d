/* Socket options of the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04, section 8). The program is
 * the key management: both ends exchange a message in clear, install keys and require protection.
 * `dtls PORT` runs both ends over one-to-one and one-to-many sockets; `dtls PORT managed` expects a
 * host that manages the keys. */
#define _GNU_SOURCE
#include "../libsctp/sctp.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { METHOD = 200, KEY = 16, IV = 12, SECOND = 99 };

static struct sockaddr_in at(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A socket that reports events, and delivers struct sctp_rcvinfo. */
static int opens(int type)
{
    int s = socket(AF_INET, type, IPPROTO_SCTP);
    CHECK(s >= 0);
    struct sctp_event event = { .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
    int on = 1;
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);
    return s;
}

static int sets(int s, int option, const void *value, socklen_t length)
{
    return setsockopt(s, IPPROTO_SCTP, option, value, length);
}

/* Whether a call failed with this error. */
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))

union config {
    struct sctp_dtls_config head;
    uint8_t bytes[sizeof(struct sctp_dtls_config) + 16];
};

static socklen_t configuration(union config *to, uint16_t flags, const char *methods)
{
    memset(to, 0, sizeof *to);
    to->head.sdc_flags = flags;
    to->head.sdc_nr_kmids = strlen(methods);
    memcpy(to->head.sdc_kmids, methods, strlen(methods));
    return offsetof(struct sctp_dtls_config, sdc_kmids) + strlen(methods);
}

static int configures(int s, uint16_t flags, const char *methods)
{
    union config config;
    socklen_t length = configuration(&config, flags, methods);
    return sets(s, SCTP_DTLS_LOCAL_CONFIG, &config, length);
}

#define BOTH_ROLES (SCTP_DTLS_CLIENT | SCTP_DTLS_SERVER)
/* Methods 200 and 99. */
static const char methods[] = { (char)METHOD, SECOND, 0 };

static void reads_config(int s, int option, sctp_assoc_t id, uint16_t flags, const char *expected)
{
    union config config;
    socklen_t length = sizeof config;
    CHECK(sctp_opt_info(s, id, option, &config, &length) == 0);
    CHECK(length == offsetof(struct sctp_dtls_config, sdc_kmids) + strlen(expected));
    CHECK(config.head.sdc_assoc_id == id && config.head.sdc_flags == flags);
    CHECK(config.head.sdc_nr_kmids == strlen(expected));
    CHECK(memcmp(config.head.sdc_kmids, expected, strlen(expected)) == 0);
    length = 4;
    FAILS(sctp_opt_info(s, id, option, &config, &length), EINVAL);
}

union keys {
    struct sctp_dtls_keys head;
    uint8_t bytes[sizeof(struct sctp_dtls_keys) + 2 * KEY + IV];
};

/* Keys of TLS_AES_128_GCM_SHA256 that follow from `secret`. */
static union keys keys_of(sctp_assoc_t id, uint8_t secret, bool restart, uint64_t epoch)
{
    union keys keys = { .head = { .sdk_assoc_id = id, .sdk_cipher_suite = { 0x13, 0x01 }, .sdk_restart = restart,
                                  .sdk_epoch = epoch, .sdk_key_len = KEY, .sdk_iv_len = IV, .sdk_sn_key_len = KEY } };
    memset(keys.bytes + sizeof keys.head, secret, 2 * KEY + IV);
    return keys;
}

static int installs(int s, int option, union keys keys)
{
    return sets(s, option, &keys, sizeof keys);
}

static uint32_t value_of(int s, int option, sctp_assoc_t id)
{
    struct sctp_assoc_value value = { 0 };
    socklen_t length = sizeof value;
    CHECK(sctp_opt_info(s, id, option, &value, &length) == 0 && length == sizeof value);
    return value.assoc_value;
}

static int sets_value(int s, int option, sctp_assoc_t id, uint32_t value)
{
    struct sctp_assoc_value set = { .assoc_id = id, .assoc_value = value };
    return sets(s, option, &set, sizeof set);
}

/* Sends a message to the association, or to the peer of a one-to-one socket. */
static void sends(int s, sctp_assoc_t id, uint32_t ppid, const char *text)
{
    struct sctp_sndinfo info = { .snd_ppid = htonl(ppid), .snd_assoc_id = id };
    struct iovec part = { (void *)text, strlen(text) };
    CHECK(sctp_sendv(s, &part, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == (int)part.iov_len);
}

/* Receives a message, which must be this one, with MSG_PROTECTED or without. Returns the
 * association. */
static sctp_assoc_t receives(int s, uint32_t ppid, const char *text, bool is_protected)
{
    char bytes[100] = { 0 };
    struct iovec part = { bytes, sizeof bytes };
    struct sctp_rcvinfo info = { 0 };
    struct sockaddr_in from;
    socklen_t length = sizeof from, info_length = sizeof info;
    unsigned kind;
    int flags = 0;
    int got = sctp_recvv(s, &part, 1, (void *)&from, &length, &info, &info_length, &kind, &flags);
    CHECK(got == (int)strlen(text) && memcmp(bytes, text, got) == 0);
    CHECK(flags == (MSG_EOR | (is_protected ? MSG_PROTECTED : 0)));
    CHECK(kind == SCTP_RECVV_RCVINFO && ntohl(info.rcv_ppid) == ppid);
    return info.rcv_assoc_id;
}

/* Receives SCTP_COMM_UP or SCTP_RESTART, which must list the DTLS chunk, or nothing. */
static sctp_assoc_t begins(int s, uint16_t state, bool lists)
{
    struct {
        struct sctp_assoc_change change;
        uint8_t more[32];
    } got;
    ssize_t length = recv(s, &got, sizeof got, 0);
    CHECK(length >= (ssize_t)sizeof got.change && got.change.sac_type == SCTP_ASSOC_CHANGE);
    CHECK(got.change.sac_state == state && got.change.sac_length == length);
    size_t count = length - sizeof got.change;
    CHECK(!memchr(got.change.sac_info, SCTP_ASSOC_SUPPORTS_DTLS, count) == !lists);
    CHECK(lists || count == 0);
    return got.change.sac_assoc_id;
}

static size_t parameter(int s, int option, sctp_assoc_t id, uint8_t *to)
{
    struct {
        struct sctp_dtls_kmp head;
        uint8_t bytes[64];
    } got;
    socklen_t length = sizeof got;
    CHECK(sctp_opt_info(s, id, option, &got, &length) == 0);
    CHECK(length == sizeof got.head + got.head.sdk_nr_bytes);
    memcpy(to, got.head.sdk_bytes, got.head.sdk_nr_bytes);
    return got.head.sdk_nr_bytes;
}

static struct sctp_dtls_stats statistics(int s, sctp_assoc_t id)
{
    struct sctp_dtls_stats counts = { 0 };
    socklen_t length = sizeof counts;
    CHECK(sctp_opt_info(s, id, SCTP_DTLS_GET_STATS, &counts, &length) == 0 && length == sizeof counts);
    return counts;
}

/* Wrong arguments, and calls in the wrong state. */
static void refuses(int type)
{
    int s = opens(type);
    union config config;
    FAILS(configures(s, 0x10 | BOTH_ROLES, methods), EINVAL);
    FAILS(configures(s, SCTP_DTLS_REQUIRED, methods), EINVAL);
    FAILS(configures(s, SCTP_DTLS_REQUIRED, ""), EINVAL);
    FAILS(configures(s, BOTH_ROLES, "aa"), EINVAL);
    socklen_t length = configuration(&config, BOTH_ROLES, methods);
    FAILS(sets(s, SCTP_DTLS_LOCAL_CONFIG, &config, length - 1), EINVAL);
    if (type == SOCK_SEQPACKET) {
        config.head.sdc_assoc_id = SCTP_CURRENT_ASSOC;
        FAILS(sets(s, SCTP_DTLS_LOCAL_CONFIG, &config, length), EINVAL);
        FAILS(sets_value(s, SCTP_DTLS_REPLAY_WINDOW, SCTP_ALL_ASSOC, 64), EINVAL);
    }
    reads_config(s, SCTP_DTLS_LOCAL_CONFIG, 0, 0, "");
    CHECK(configures(s, BOTH_ROLES, methods) == 0);
    reads_config(s, SCTP_DTLS_LOCAL_CONFIG, 0, BOTH_ROLES, methods);
    /* AUTH and the DTLS chunk exclude each other. */
    FAILS(sets_value(s, SCTP_AUTH_SUPPORTED, 0, 1), EPERM);
    CHECK(configures(s, 0, "") == 0 && sets_value(s, SCTP_AUTH_SUPPORTED, 0, 1) == 0);
    FAILS(configures(s, BOTH_ROLES, methods), EPERM);
    /* The window has 64 to 32,768 packets. */
    CHECK(value_of(s, SCTP_DTLS_REPLAY_WINDOW, 0) == 1024);
    FAILS(sets_value(s, SCTP_DTLS_REPLAY_WINDOW, 0, 63), EINVAL);
    FAILS(sets_value(s, SCTP_DTLS_REPLAY_WINDOW, 0, 32769), EINVAL);
    CHECK(sets_value(s, SCTP_DTLS_REPLAY_WINDOW, 0, 128) == 0);
    CHECK(value_of(s, SCTP_DTLS_REPLAY_WINDOW, 0) == 128);
    /* Options that need an association. */
    int options[] = { SCTP_DTLS_GET_CONFIG, SCTP_DTLS_GET_LOCAL_KM_PARAM, SCTP_DTLS_GET_PEER_KM_PARAM,
                      SCTP_DTLS_ENFORCE_PROTECTION, SCTP_DTLS_GET_STATS };
    uint8_t room[100] = { 0 };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        length = sizeof room;
        FAILS(sctp_opt_info(s, 0, options[i], room, &length), EINVAL);
    }
    FAILS(sets_value(s, SCTP_DTLS_ENFORCE_PROTECTION, 0, 1), EINVAL);
    FAILS(installs(s, SCTP_DTLS_SET_SEND_KEYS, keys_of(0, 1, false, 3)), EINVAL);
    FAILS(installs(s, SCTP_DTLS_ADD_RECV_KEYS, keys_of(0, 1, false, 3)), EINVAL);
    struct sctp_dtls_keys_id id = { .sdki_epoch = 3 };
    FAILS(sets(s, SCTP_DTLS_DEL_RECV_KEYS, &id, sizeof id), EINVAL);
    /* Options that can only be read, or only be set. */
    int read_only[] = { SCTP_DTLS_GET_CONFIG, SCTP_DTLS_GET_LOCAL_KM_PARAM, SCTP_DTLS_GET_PEER_KM_PARAM, SCTP_DTLS_GET_STATS };
    for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
        FAILS(sets(s, read_only[i], room, sizeof room), ENOPROTOOPT);
    int write_only[] = { SCTP_DTLS_SET_SEND_KEYS, SCTP_DTLS_ADD_RECV_KEYS, SCTP_DTLS_DEL_RECV_KEYS };
    for (size_t i = 0; i < sizeof write_only / sizeof *write_only; i++) {
        length = sizeof room;
        FAILS(sctp_opt_info(s, 0, write_only[i], room, &length), EOPNOTSUPP);
    }
    CHECK(close(s) == 0);
}

/* Listens with these flags and methods. */
static int listens(int type, uint16_t port, uint16_t flags, const char *offered)
{
    struct sockaddr_in address = at(port);
    int s = opens(type);
    CHECK(configures(s, flags, offered) == 0);
    CHECK(bind(s, (void *)&address, sizeof address) == 0 && listen(s, 5) == 0);
    return s;
}

/* Two ends of an association, with its numbers there. */
struct ends {
    int s[2];
    sctp_assoc_t id[2];
};

/* Connects from the first port to the second one. */
static struct ends connects(int type, int server, const uint16_t ports[2], uint16_t flags)
{
    struct sockaddr_in own = at(ports[0]), peer = at(ports[1]);
    struct ends ends = { .s = { opens(type), server } };
    CHECK(configures(ends.s[0], flags, methods) == 0);
    CHECK(bind(ends.s[0], (void *)&own, sizeof own) == 0);
    CHECK(connect(ends.s[0], (void *)&peer, sizeof peer) == 0);
    return ends;
}

/* Installs the first keys at an end. They are used for sending if `sending`. */
static void has_keys(int s, sctp_assoc_t id, bool sending, int which)
{
    int option = sending ? SCTP_DTLS_SET_SEND_KEYS : SCTP_DTLS_ADD_RECV_KEYS;
    uint8_t secret = sending == (which == 0) ? 1 : 2;
    CHECK(installs(s, option, keys_of(id, secret, false, 3)) == 0);
}

/* Messages with protection required at both ends. */
static void is_protected(struct ends ends)
{
    for (int i = 0; i < 2; i++) {
        sends(ends.s[i], ends.id[i], 0, "secret");
        sctp_assoc_t id = receives(ends.s[1 - i], 0, "secret", true);
        CHECK(!ends.id[1 - i] || id == ends.id[1 - i]);
    }
}

static void manages_keys(int type, const uint16_t ports[2])
{
    uint16_t flags = BOTH_ROLES | SCTP_DTLS_RESTART | SCTP_DTLS_REQUIRED;
    int listener = listens(type, ports[1], flags, methods);
    FAILS(configures(listener, flags, methods), EINVAL);
    struct ends ends = connects(type, listener, ports, flags);
    if (type == SOCK_STREAM) {
        ends.s[1] = accept(listener, NULL, NULL);
        CHECK(ends.s[1] >= 0);
    }
    bool many = type == SOCK_SEQPACKET;
    for (int i = 0; i < 2; i++) {
        sctp_assoc_t id = begins(ends.s[i], SCTP_COMM_UP, true);
        ends.id[i] = many ? id : 0;
        reads_config(ends.s[i], SCTP_DTLS_LOCAL_CONFIG, ends.id[i], flags, methods);
        FAILS(configures(ends.s[i], flags, methods), EINVAL);
        CHECK(value_of(ends.s[i], SCTP_DTLS_ENFORCE_PROTECTION, ends.id[i]) == 0);
    }
    /* The agreement, and the parameters of both ends. */
    union config agreed[2];
    uint8_t parameters[2][2][64];
    size_t lengths[2][2];
    for (int i = 0; i < 2; i++) {
        socklen_t length = sizeof agreed[i];
        CHECK(sctp_opt_info(ends.s[i], ends.id[i], SCTP_DTLS_GET_CONFIG, &agreed[i], &length) == 0);
        CHECK(agreed[i].head.sdc_nr_kmids == 1 && agreed[i].head.sdc_kmids[0] == METHOD);
        lengths[i][0] = parameter(ends.s[i], SCTP_DTLS_GET_LOCAL_KM_PARAM, ends.id[i], parameters[i][0]);
        lengths[i][1] = parameter(ends.s[i], SCTP_DTLS_GET_PEER_KM_PARAM, ends.id[i], parameters[i][1]);
    }
    uint16_t roles = agreed[0].head.sdc_flags | agreed[1].head.sdc_flags;
    CHECK(roles == (BOTH_ROLES | SCTP_DTLS_RESTART) && agreed[0].head.sdc_flags != agreed[1].head.sdc_flags);
    for (int i = 0; i < 2; i++) {
        /* Header of 4 bytes, tie breaker, flags, and two methods at the end. */
        const uint8_t *own = parameters[i][0];
        CHECK(lengths[i][0] > 8 && lengths[i][0] == (size_t)(own[2] << 8 | own[3]));
        CHECK(memcmp(own + lengths[i][0] - 2, methods, 2) == 0);
        CHECK(lengths[i][0] == lengths[1 - i][1] && memcmp(own, parameters[1 - i][1], lengths[i][0]) == 0);
    }
    /* The key management sends in clear. */
    sends(ends.s[0], ends.id[0], SCTP_DTLS_KEY_MANAGEMENT_PPID, "keys?");
    CHECK(receives(ends.s[1], SCTP_DTLS_KEY_MANAGEMENT_PPID, "keys?", false) == ends.id[1] || !many);
    sends(ends.s[1], ends.id[1], SCTP_DTLS_KEY_MANAGEMENT_PPID, "keys!");
    receives(ends.s[0], SCTP_DTLS_KEY_MANAGEMENT_PPID, "keys!", false);
    for (int i = 0; i < 2; i++) {
        int s = ends.s[i];
        sctp_assoc_t id = ends.id[i];
        FAILS(sets_value(s, SCTP_DTLS_ENFORCE_PROTECTION, id, 1), EINVAL); /* no keys */
        FAILS(installs(s, SCTP_DTLS_ADD_RECV_KEYS, keys_of(id, 1, false, 4)), EINVAL); /* not the first */
        FAILS(installs(s, SCTP_DTLS_SET_SEND_KEYS, keys_of(id, 1, true, 3)), EINVAL); /* no primary keys */
        union keys keys = keys_of(id, 1, false, 3);
        FAILS(sets(s, SCTP_DTLS_ADD_RECV_KEYS, &keys, sizeof keys.head + 2 * KEY + IV - 1), EINVAL);
        keys.head.sdk_cipher_suite[1] = 9;
        FAILS(installs(s, SCTP_DTLS_ADD_RECV_KEYS, keys), EOPNOTSUPP);
        has_keys(s, id, false, i);
    }
    /* Before either end discards packets in clear, both have keys to send. */
    for (int i = 0; i < 2; i++)
        has_keys(ends.s[i], ends.id[i], true, i);
    for (int i = 0; i < 2; i++) {
        CHECK(sets_value(ends.s[i], SCTP_DTLS_ENFORCE_PROTECTION, ends.id[i], 1) == 0);
        CHECK(value_of(ends.s[i], SCTP_DTLS_ENFORCE_PROTECTION, ends.id[i]) == 1);
        FAILS(sets_value(ends.s[i], SCTP_DTLS_ENFORCE_PROTECTION, ends.id[i], 0), EINVAL);
    }
    is_protected(ends);
    /* The next epoch. */
    for (int i = 0; i < 2; i++)
        CHECK(installs(ends.s[i], SCTP_DTLS_ADD_RECV_KEYS, keys_of(ends.id[i], i ? 3 : 4, false, 4)) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(installs(ends.s[i], SCTP_DTLS_SET_SEND_KEYS, keys_of(ends.id[i], i ? 4 : 3, false, 4)) == 0);
    is_protected(ends);
    for (int i = 0; i < 2; i++) {
        struct sctp_dtls_keys_id former = { .sdki_assoc_id = ends.id[i], .sdki_epoch = 3 };
        CHECK(sets(ends.s[i], SCTP_DTLS_DEL_RECV_KEYS, &former, sizeof former) == 0);
        FAILS(sets(ends.s[i], SCTP_DTLS_DEL_RECV_KEYS, &former, sizeof former), EINVAL);
        FAILS(sets(ends.s[i], SCTP_DTLS_DEL_RECV_KEYS, &former, sizeof former - 1), EINVAL);
        CHECK(sets_value(ends.s[i], SCTP_DTLS_REPLAY_WINDOW, ends.id[i], 256) == 0);
        CHECK(value_of(ends.s[i], SCTP_DTLS_REPLAY_WINDOW, ends.id[i]) == 256);
    }
    is_protected(ends);
    for (int i = 0; i < 2; i++) {
        struct sctp_dtls_stats counts = statistics(ends.s[i], ends.id[i]);
        CHECK(counts.sds_recv_protected >= 3 && counts.sds_sent_protected >= 3);
        CHECK(counts.sds_dropped_unprotected == 0 && counts.sds_aead_failures == 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK(close(ends.s[i]) == 0);
    if (!many)
        CHECK(close(listener) == 0);
}

/* In loose mode, an association with a peer without the DTLS chunk is not protected; in strict mode
 * there is none. */
static void meets_a_peer_without(const uint16_t ports[2])
{
    int listener = listens(SOCK_STREAM, ports[1], 0, "");
    struct ends ends = connects(SOCK_STREAM, listener, ports, BOTH_ROLES);
    int accepted = accept(listener, NULL, NULL);
    CHECK(accepted >= 0);
    begins(ends.s[0], SCTP_COMM_UP, false);
    begins(accepted, SCTP_COMM_UP, false);
    reads_config(ends.s[0], SCTP_DTLS_GET_CONFIG, 0, 0, "");
    FAILS(sets_value(ends.s[0], SCTP_DTLS_ENFORCE_PROTECTION, 0, 1), EOPNOTSUPP);
    FAILS(installs(ends.s[0], SCTP_DTLS_SET_SEND_KEYS, keys_of(0, 1, false, 3)), EOPNOTSUPP);
    sends(ends.s[0], 0, 0, "clear");
    receives(accepted, 0, "clear", false);
    CHECK(close(ends.s[0]) == 0 && close(accepted) == 0);
    int s = opens(SOCK_STREAM);
    struct sockaddr_in peer = at(ports[1]);
    CHECK(configures(s, BOTH_ROLES | SCTP_DTLS_REQUIRED, methods) == 0);
    FAILS(connect(s, (void *)&peer, sizeof peer), ECONNREFUSED);
    CHECK(close(s) == 0 && close(listener) == 0);
    listener = listens(SOCK_STREAM, ports[1] + 1, BOTH_ROLES | SCTP_DTLS_REQUIRED, methods);
    peer = at(ports[1] + 1);
    s = opens(SOCK_STREAM);
    FAILS(connect(s, (void *)&peer, sizeof peer), ECONNREFUSED);
    CHECK(close(s) == 0 && close(listener) == 0);
}

/* An association is restarted only with keys for both directions, of one epoch, and with the flag. */
static void cannot_restart(uint16_t port)
{
    struct sockaddr_in peer = at(port);
    int epochs[] = { 0, 4, 3 };
    for (int i = 0; i < 3; i++) {
        int s = opens(SOCK_STREAM);
        CHECK(configures(s, BOTH_ROLES | (i < 2 ? SCTP_DTLS_RESTART : 0), methods) == 0);
        CHECK(installs(s, SCTP_DTLS_SET_SEND_KEYS, keys_of(0, 11, true, 3)) == 0);
        CHECK(!epochs[i] || installs(s, SCTP_DTLS_ADD_RECV_KEYS, keys_of(0, 12, true, epochs[i])) == 0);
        FAILS(connect(s, (void *)&peer, sizeof peer), EINVAL);
        CHECK(close(s) == 0);
    }
    int s = opens(SOCK_SEQPACKET);
    CHECK(configures(s, BOTH_ROLES | SCTP_DTLS_RESTART, methods) == 0);
    FAILS(installs(s, SCTP_DTLS_SET_SEND_KEYS, keys_of(0, 11, true, 3)), EINVAL);
    CHECK(close(s) == 0);
}

static void host_manages_keys(const uint16_t ports[2])
{
    struct sockaddr_in own = at(ports[1]);
    int listener = opens(SOCK_STREAM), s = opens(SOCK_STREAM);
    FAILS(configures(s, BOTH_ROLES, methods), EPERM);
    FAILS(installs(s, SCTP_DTLS_SET_SEND_KEYS, keys_of(0, 1, true, 3)), EPERM);
    FAILS(sets_value(s, SCTP_AUTH_SUPPORTED, 0, 1), EPERM);
    union config config;
    socklen_t length = sizeof config;
    CHECK(sctp_opt_info(s, 0, SCTP_DTLS_LOCAL_CONFIG, &config, &length) == 0);
    CHECK(config.head.sdc_nr_kmids == 1 && config.head.sdc_flags & SCTP_DTLS_REQUIRED);
    CHECK(bind(listener, (void *)&own, sizeof own) == 0 && listen(listener, 1) == 0);
    CHECK(connect(s, (void *)&own, sizeof own) == 0);
    int accepted = accept(listener, NULL, NULL);
    CHECK(accepted >= 0);
    begins(s, SCTP_COMM_UP, true);
    begins(accepted, SCTP_COMM_UP, true);
    CHECK(value_of(s, SCTP_DTLS_ENFORCE_PROTECTION, 0) == 1);
    struct sctp_dtls_keys_id id = { .sdki_epoch = 3 };
    FAILS(sets(s, SCTP_DTLS_DEL_RECV_KEYS, &id, sizeof id), EPERM);
    sends(s, 0, 0, "secret");
    receives(accepted, 0, "secret", true);
    CHECK(statistics(accepted, 0).sds_recv_protected > 0);
    CHECK(close(s) == 0 && close(accepted) == 0 && close(listener) == 0);
}

static void has_suites(void)
{
    uint8_t suites[4][2] = { { 0 } };
    unsigned count = sctp_dtls_nr_cipher_suites();
    CHECK(count == 3);
    CHECK(sctp_dtls_cipher_suites(suites, count - 1) == -1);
    CHECK(sctp_dtls_cipher_suites(suites, 4) == 3);
    const uint8_t expected[4][2] = { { 0x13, 1 }, { 0x13, 2 }, { 0x13, 3 }, { 0 } };
    CHECK(memcmp(suites, expected, sizeof expected) == 0);
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    uint16_t port = atoi(arguments[1]);
    uint16_t ports[2] = { port, port + 1 };
    has_suites();
    if (count > 2) {
        host_manages_keys(ports);
        puts("managed");
        return 0;
    }
    int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
    for (int i = 0; i < 2; i++) {
        refuses(types[i]);
        ports[0] += 10;
        ports[1] += 10;
        manages_keys(types[i], ports);
    }
    ports[0] += 10;
    ports[1] += 10;
    meets_a_peer_without(ports);
    cannot_restart(ports[1]);
    puts("dtls");
    return 0;
}
