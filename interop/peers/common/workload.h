/* Workload that every peer sends and checks, as in interop/src/workload.rs: message `index` of a seed has the same bytes
 * in every language. A message contains its index, stream and length, and a hash of its body, for the check.
 *
 *   0  u32 index      place in the order of sending; the payload protocol identifier is PPID + index
 *   4  u16 stream
 *   6  u16 flags      bit 0: sent unordered
 *   8  u32 ordinal    place among the ordered messages of its stream
 *  12  u32 length     of the whole message
 *  16  u64 hash       FNV-1a of the bytes after this field
 */
#ifndef ANABRANCH_WORKLOAD_H
#define ANABRANCH_WORKLOAD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The payload protocol identifiers begin above those of WebRTC, because pion sends messages of DCEP in order. */
enum { STREAMS = 10, HEADER = 24, LARGEST = 262144, PPID = 0x10000 };

/* Chunk type of the user messages. */
enum { DATA = 0 };

struct message {
    uint32_t index, ordinal, length;
    uint16_t stream;
    bool unordered;
    uint64_t state; /* of the generator, where the body begins */
};

static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint32_t drawn_length(uint32_t index, uint64_t kind, uint64_t r)
{
    if (index == 0)
        return LARGEST;
    if (index == 1)
        return HEADER;
    if (index < 402) /* each length about the size of a packet */
        return 1100 + index;
    kind %= 100;
    if (kind < 60)
        return HEADER + r % 177;
    if (kind < 90)
        return 200 + r % 1801;
    if (kind < 99)
        return 2000 + r % 18001;
    return 20000 + r % 242145;
}

/* Message `index` of `seed`; `ordinals` counts the ordered messages of each stream and must be the same array in all calls. */
static inline struct message plan(uint64_t seed, uint32_t index, uint32_t ordinals[STREAMS])
{
    struct message m = { .index = index };
    m.state = seed ^ (index + 1u) * 0xd1b54a32d192ed03u;
    uint64_t kind = draw(&m.state), r = draw(&m.state), where = draw(&m.state);
    m.length = drawn_length(index, kind, r);
    m.stream = where % STREAMS;
    m.unordered = (where >> 32) % 4 == 0;
    m.ordinal = m.unordered ? 0 : ordinals[m.stream]++;
    return m;
}

static inline void put(uint8_t *at, uint64_t value, int bytes)
{
    while (bytes--) {
        at[bytes] = (uint8_t)value;
        value >>= 8;
    }
}

static inline uint64_t take(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | *at++;
    return value;
}

static inline uint64_t fnv1a(const uint8_t *at, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    while (length--)
        hash = (hash ^ *at++) * 0x100000001b3u;
    return hash;
}

/* Writes the message into `out`, which has room for LARGEST bytes. */
static inline void compose(struct message m, uint8_t *out)
{
    for (uint32_t at = HEADER; at < m.length; at += 8) {
        uint64_t word = draw(&m.state);
        for (uint32_t i = 0; i < 8 && at + i < m.length; i++)
            out[at + i] = (uint8_t)(word >> 8 * i);
    }
    put(out, m.index, 4);
    put(out + 4, m.stream, 2);
    put(out + 6, m.unordered, 2);
    put(out + 8, m.ordinal, 4);
    put(out + 12, m.length, 4);
    put(out + 16, fnv1a(out + HEADER, m.length - HEADER), 8);
}

/* Arguments of the command line, as key=value. */
struct arguments {
    bool connects;
    const char *local, *remote, *transport, *speaks, *moves_to;
    int local_udp, remote_udp, port, messages, rto_min, max_retrans, size, seconds, expects;
    uint64_t seed;
};

static inline void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("error: ");
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    va_end(list);
    exit(1);
}

static inline void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    va_end(list);
}

static inline bool argument(const char *given, const char *key, const char **value)
{
    size_t length = strlen(key);
    if (strncmp(given, key, length) || given[length] != '=')
        return false;
    *value = given + length + 1;
    return true;
}

/* Reads one argument if it is one that all peers have. */
static inline bool take_argument(struct arguments *a, const char *given)
{
    const char *v;
    if (!strcmp(given, "connect"))
        a->connects = true;
    else if (!strcmp(given, "accept"))
        a->connects = false;
    else if (argument(given, "local", &v))
        a->local = v;
    else if (argument(given, "remote", &v))
        a->remote = v;
    else if (argument(given, "transport", &v))
        a->transport = v;
    else if (argument(given, "local-udp", &v))
        a->local_udp = atoi(v);
    else if (argument(given, "remote-udp", &v))
        a->remote_udp = atoi(v);
    else if (argument(given, "port", &v))
        a->port = atoi(v);
    else if (argument(given, "messages", &v))
        a->messages = atoi(v);
    else if (argument(given, "rto-min", &v))
        a->rto_min = atoi(v);
    else if (argument(given, "max-retrans", &v))
        a->max_retrans = atoi(v);
    else if (argument(given, "size", &v))
        a->size = atoi(v);
    else if (argument(given, "seconds", &v))
        a->seconds = atoi(v);
    else if (argument(given, "speaks", &v))
        a->speaks = v;
    else if (argument(given, "moves-to", &v))
        a->moves_to = v;
    else if (argument(given, "expects", &v))
        a->expects = atoi(v);
    else if (argument(given, "seed", &v))
        a->seed = strtoull(v, NULL, 10);
    else
        return false;
    return true;
}

static const struct arguments defaults = {
    .local = "127.0.0.1", .remote = "127.0.0.1", .transport = "encap", .speaks = "none", .moves_to = "", .local_udp = 9899, .remote_udp = 9899,
    .port = 5000, .messages = 10000, .rto_min = 0, .max_retrans = 0, .seconds = 3, .seed = 1,
};

/* Whether the arguments require that the peers offer this extension: interleaving, partial, resets,
 * authentication or addresses. */
static inline bool speaks(const struct arguments *a, const char *extension)
{
    return !strcmp(a->speaks, extension);
}

/* Whether a message is never retransmitted in cases with partial reliability: messages of streams with odd numbers. */
static inline bool expendable(uint16_t stream)
{
    return stream % 2 == 1;
}

/* With `size` the connecting peer sends messages of this size for `seconds`, and the accepting peer counts them. */
static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Counts one message of a flood; `bytes` is 0 at the end, where the counts are printed. */
static inline void tally(size_t bytes, bool whole)
{
    static double first, last;
    static unsigned long long messages, sum;
    if (bytes == 0) {
        say("rate messages=%llu bytes=%llu seconds=%.6f", messages, sum, last - first);
        return;
    }
    last = seconds_now();
    if (sum == 0)
        first = last;
    messages += whole;
    sum += bytes;
}

/* Received messages, and whether they are right. */
struct checker {
    uint32_t expected, count, next[STREAMS];
    uint64_t bytes;
    uint8_t *seen;
    /* With partial reliability: number of messages that must arrive, and how many of them have arrived. */
    bool partial;
    uint32_t reliable, reliable_count;
};

static inline struct checker checker_of(const struct arguments *a)
{
    struct checker c = { .expected = (uint32_t)a->messages, .partial = speaks(a, "partial"), .reliable = (uint32_t)a->expects };
    return c;
}

/* Whether all required messages have arrived. */
static inline bool complete(const struct checker *c)
{
    return c->partial ? c->reliable_count == c->reliable : c->count == c->expected;
}

/* At the end, with partial reliability: prints which messages have arrived. */
static inline void conclude(const struct checker *c)
{
    if (c->partial)
        say("received messages=%u bytes=%llu reliable=%u", c->count, (unsigned long long)c->bytes, c->reliable_count);
}

/* Checks one whole message; ends the peer with the reason if it differs from the sent one. */
static inline void check(struct checker *c, uint16_t stream, uint32_t ppid, bool unordered, const uint8_t *data, size_t length)
{
    if (!c->seen)
        c->seen = calloc(c->expected, 1);
    if (length < HEADER)
        fail("message of %zu bytes, shorter than its header", length);
    uint32_t index = (uint32_t)take(data, 4), flags = (uint32_t)take(data + 6, 2), ordinal = (uint32_t)take(data + 8, 4);
    if (index >= c->expected)
        fail("message %u of %u", index, c->expected);
    if (take(data + 12, 4) != length)
        fail("message %u: %zu bytes, sent %u", index, length, (unsigned)take(data + 12, 4));
    if (take(data + 4, 2) != stream)
        fail("message %u: on stream %u, sent on %u", index, stream, (unsigned)take(data + 4, 2));
    if (ppid != index + PPID)
        fail("message %u: payload protocol identifier %u", index, ppid);
    if ((flags & 1) != unordered)
        fail("message %u: unordered %d, sent with %u", index, unordered, flags & 1);
    if (take(data + 16, 8) != fnv1a(data + HEADER, length - HEADER))
        fail("message %u: another hash", index);
    if (c->seen[index]++)
        fail("message %u: twice", index);
    bool passes_over = c->partial && expendable(stream) && ordinal > c->next[stream];
    if (!unordered && ordinal != c->next[stream] && !passes_over)
        fail("message %u: ordinal %u on stream %u, expected %u", index, ordinal, stream, c->next[stream]);
    if (!unordered)
        c->next[stream] = ordinal + 1;
    c->reliable_count += !expendable(stream);
    c->count++;
    c->bytes += length;
    if (c->count == c->expected / 4)
        say("quarter");
    if (!c->partial && c->count == c->expected)
        say("received messages=%u bytes=%llu", c->count, (unsigned long long)c->bytes);
}

/* Messages arrive in pieces, so there is one buffer for each stream. */
struct pieces {
    uint8_t *data[STREAMS];
    size_t length[STREAMS];
};

static inline void gather(struct pieces *p, struct checker *c, uint16_t stream, uint32_t ppid, bool unordered,
                          const uint8_t *data, size_t length, bool last)
{
    if (stream >= STREAMS)
        fail("stream %u", stream);
    if (last && p->length[stream] == 0) {
        check(c, stream, ppid, unordered, data, length);
        return;
    }
    if (p->length[stream] + length > LARGEST)
        fail("message of more than %d bytes on stream %u", LARGEST, stream);
    if (!p->data[stream])
        p->data[stream] = malloc(LARGEST);
    memcpy(p->data[stream] + p->length[stream], data, length);
    p->length[stream] += length;
    if (last) {
        check(c, stream, ppid, unordered, p->data[stream], p->length[stream]);
        p->length[stream] = 0;
    }
}

#endif
