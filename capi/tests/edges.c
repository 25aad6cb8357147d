/* More calls and their results (see calls.c): addresses of sockets, options of levels other than
 * SCTP, invalid arguments, and failed connections. */
#include "calls.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/uio.h>

/* Prints the address of this end or of the peer: the IP address, and whether there is a port. */
static void name_of_end(const char *what, int s, int (*ask)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_storage name = { 0 };
    socklen_t length = sizeof name;
    char text[INET6_ADDRSTRLEN] = "none";
    int result = ask(s, (struct sockaddr *)&name, &length), error = errno;
    const struct sockaddr_in *v4 = (const void *)&name;
    const struct sockaddr_in6 *v6 = (const void *)&name;
    count++;
    if (result)
        printf("%s: %s = -1 %s\n", section, what, strerrorname_np(error));
    else if (name.ss_family == AF_INET)
        printf("%s: %s = %s, port %d, length %u\n", section, what, inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text), v4->sin_port != 0, length);
    else
        printf("%s: %s = %s, port %d, length %u\n", section, what, inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text), v6->sin6_port != 0, length);
}
#define OWN_NAME(s) name_of_end("own name of " #s, s, getsockname)
#define PEER_NAME(s) name_of_end("peer name of " #s, s, getpeername)

/* Compares two addresses as text, because the addresses returned by libsctp are printed in
 * sorted order. */
static int order(const void *a, const void *b)
{
    return strcmp(a, b);
}
static void list(const char *what, int count_of, struct sockaddr *all)
{
    char names[16][INET6_ADDRSTRLEN] = { "" };
    const char *at_byte = (const char *)all;
    int n = 0;
    for (; n < count_of && n < 16; n++) {
        int v4 = ((const struct sockaddr *)at_byte)->sa_family == AF_INET;
        inet_ntop(v4 ? AF_INET : AF_INET6, at_byte + (v4 ? 4 : 8), names[n], sizeof names[n]);
        at_byte += v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    }
    qsort(names, (size_t)n, sizeof *names, order);
    count++;
    printf("%s: %s = %d", section, what, count_of);
    for (int i = 0; i < n; i++)
        printf(" %s", names[i]);
    printf("\n");
}
#define LOCAL(s, association)                                                      \
    do {                                                                           \
        struct sockaddr *all = NULL;                              \
        int n = sctp_getladdrs(s, association, &all);             \
        list("local addresses of " #s, n, all);                   \
        if (n > 0)                                                \
            sctp_freeladdrs(all);                                 \
    } while (0)
#define PEERS(s, association)                                                     \
    do {                                                                          \
        struct sockaddr *all = NULL;                              \
        int n = sctp_getpaddrs(s, association, &all);             \
        list("addresses of the peer of " #s, n, all);             \
        if (n > 0)                                                \
            sctp_freepaddrs(all);                                 \
    } while (0)

/* The address of a connected socket should be the source address of its packets. */
static void names(void)
{
    section = "names";
    struct sockaddr_in own = at("127.0.0.1", port), others[2] = { at("127.0.0.2", port), at("127.0.0.3", port) };
    int l = open_one(), c = open_one(), s;
    OWN_NAME(c);
    PEER_NAME(c);
    CALL(bind(l, as(&own), sizeof own));
    CALL(sctp_bindx(l, as(others), 2, SCTP_BINDX_ADD_ADDR));
    LOCAL(l, 0);
    CALL(listen(l, 3));
    CALL(connect(c, as(&own), sizeof own));
    OWN_NAME(c);
    PEER_NAME(c);
    PEERS(c, 0);
    s = accept(l, NULL, NULL);
    OWN_NAME(s);
    PEER_NAME(s);
    LOCAL(s, 0);
    OWN_NAME(l);
    CALL(close(c)), CALL(close(s));
    /* Connects to another address of the peer. */
    c = open_one();
    CALL(connect(c, as(&others[0]), sizeof *others));
    OWN_NAME(c);
    PEER_NAME(c);
    s = accept(l, NULL, NULL);
    OWN_NAME(s);
    PEER_NAME(s);
    CALL(close(c)), CALL(close(s)), CALL(close(l));
    /* Connects a client that has several addresses. */
    struct sockaddr_in two[2] = { at("127.0.0.4", 0), at("127.0.0.5", 0) };
    l = open_many(), c = open_many(), own = at("127.0.0.1", port + 1);
    struct sctp_event_subscribe events = { .sctp_association_event = 1 };
    set(l, SCTP_EVENTS, &events, sizeof events), patience(l);
    CALL(bind(l, as(&own), sizeof own));
    CALL(listen(l, 1));
    CALL(sctp_bindx(c, as(two), 2, SCTP_BINDX_ADD_ADDR));
    LOCAL(c, 0);
    sctp_assoc_t id = 0;
    CALL(sctp_connectx(c, as(&own), 1, &id));
    LOCAL(c, id);
    LOCAL(c, 0);
    OWN_NAME(c);
    sctp_assoc_t theirs = take(l, 0);
    PEERS(l, theirs);
    int peeled = sctp_peeloff(c, id);
    OWN_NAME(peeled);
    PEER_NAME(peeled);
    LOCAL(peeled, 0);
    CALL(close(peeled)), CALL(close(c)), CALL(close(l));
    /* Tests a one-to-many socket whose first association binds it. */
    l = open_many(), c = open_many(), own = at("127.0.0.1", port + 2);
    CALL(bind(l, as(&own), sizeof own));
    CALL(listen(l, 1));
    CALL(connect(c, as(&own), sizeof own));
    OWN_NAME(c);
    PEER_NAME(c);
    CALL(close(c)), CALL(close(l));
    /* Connects from an IPv6 socket to an IPv4 peer. */
    l = open_one(), c = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP), own = at("127.0.0.1", port + 3);
    struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)(port + 3)) };
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    CALL(bind(l, as(&own), sizeof own));
    CALL(listen(l, 1));
    OWN_NAME(c);
    CALL(connect(c, (struct sockaddr *)&mapped, sizeof mapped));
    OWN_NAME(c);
    PEER_NAME(c);
    PEERS(c, 0);
    s = accept(l, NULL, NULL);
    PEER_NAME(s);
    CALL(close(c)), CALL(close(s)), CALL(close(l));
}

/* Sets an option and returns the value read back. */
static long kept(int s, int level, int option, int value)
{
    socklen_t length = sizeof value;
    if (setsockopt(s, level, option, &value, sizeof value))
        return -1;
    value = -2;
    return getsockopt(s, level, option, &value, &length) ? -1 : value;
}
static long asked(int s, int level, int option)
{
    int value = -2;
    socklen_t length = sizeof value;
    return getsockopt(s, level, option, &value, &length) ? -1 : value;
}

static void below(void)
{
    section = "below SCTP";
    int v4 = open_one(), many = open_many(), v6 = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
    CALL(asked(v4, IPPROTO_IP, IP_TOS));
    CALL(kept(v4, IPPROTO_IP, IP_TOS, 0x10));
    CALL(kept(many, IPPROTO_IP, IP_TOS, 0xb8));
    CALL(asked(v4, IPPROTO_IP, IP_TTL));
    CALL(kept(v4, IPPROTO_IP, IP_TTL, 33));
    CALL(kept(v4, IPPROTO_IP, IP_TTL, 0));
    CALL(kept(v4, IPPROTO_IP, IP_TTL, 256));
    CALL(kept(v4, IPPROTO_IP, IP_FREEBIND, 1));
    CALL(kept(v4, IPPROTO_IP, IP_TRANSPARENT, 0));
    CALL(kept(v4, IPPROTO_IP, IP_PKTINFO, 1));
    CALL(asked(v4, IPPROTO_IP, 9999));
    CALL(kept(v4, IPPROTO_IP, 9999, 1));
    CALL(asked(v4, IPPROTO_IPV6, IPV6_V6ONLY));
    CALL(kept(v4, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    CALL(asked(v6, IPPROTO_IPV6, IPV6_V6ONLY));
    CALL(kept(v6, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    CALL(kept(v6, IPPROTO_IPV6, IPV6_V6ONLY, 5));
    CALL(asked(v6, IPPROTO_IPV6, IPV6_TCLASS));
    CALL(kept(v6, IPPROTO_IPV6, IPV6_TCLASS, 0x20));
    CALL(kept(v6, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9));
    CALL(kept(v6, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1));
    CALL(asked(v6, IPPROTO_IPV6, 9999));
    CALL(kept(v6, IPPROTO_IP, IP_TOS, 0x10));
    /* Options of TCP are not options of SCTP. */
    CALL(kept(v4, IPPROTO_TCP, TCP_NODELAY, 1));
    CALL(asked(v4, IPPROTO_TCP, TCP_MAXSEG));
    CALL(kept(v6, IPPROTO_TCP, TCP_NODELAY, 1));
    CALL(kept(many, 9999, 1, 1));
    CALL(kept(v4, SOL_SOCKET, SO_REUSEADDR, 1));
    CALL(kept(v4, SOL_SOCKET, SO_KEEPALIVE, 1));
    CALL(asked(v4, SOL_SOCKET, SO_DOMAIN));
    CALL(asked(many, SOL_SOCKET, SO_TYPE));
    CALL(asked(many, SOL_SOCKET, SO_PROTOCOL));
    CALL(kept(many, SOL_SOCKET, 9999, 1));
    CALL(close(v4)), CALL(close(many)), CALL(close(v6));
}

/* Tests an option with each size of its value, and prints the sizes at which the result changes. */
static void lengths(int option, int many, int sets)
{
    char bytes[512];
    int before = -1;
    count++;
    printf("%s: option %d of %s, %s:", section, option, many ? "many" : "one", sets ? "set" : "get");
    for (int length = 0; length <= 300; length++) {
        int s = many ? open_many() : open_one(), error;
        socklen_t room = (socklen_t)length;
        memset(bytes, 0, sizeof bytes);
        errno = 0;
        if ((sets ? setsockopt(s, IPPROTO_SCTP, option, bytes, room) : getsockopt(s, IPPROTO_SCTP, option, bytes, &room)) >= 0)
            errno = 0;
        error = errno;
        close(s);
        if (error != before)
            printf(" %d %s", length, error ? strerrorname_np(error) : "done");
        before = error;
    }
    printf("\n");
}

static void sizes(void)
{
    section = "sizes";
    for (int option = 0; option <= SCTP_REMOTE_UDP_ENCAPS_PORT; option++) {
        /* Skips unassigned numbers, and those of libsctp's own functions. */
        if ((option >= 37 && option < 112) || option == SCTP_SOCKOPT_PEELOFF_FLAGS || option == 126)
            continue;
        for (int which = 0; which < 4; which++)
            lengths(option, which & 1, which & 2);
    }
}

static void wrong(void)
{
    section = "wrong arguments";
    struct sockaddr_in own = at("127.0.0.1", port + 4), foreign = at("192.0.2.1", port + 4), none = at("127.0.0.1", 0);
    struct sockaddr_in any = at("0.0.0.0", port + 4), many_hosts = at("224.0.0.1", port + 4), all_hosts = at("255.255.255.255", port + 4);
    struct sockaddr_in unspecified = own;
    unspecified.sin_family = AF_UNSPEC;
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)(port + 4)), .sin6_addr = in6addr_loopback };
    CALL(socket(AF_INET, SOCK_DGRAM, IPPROTO_SCTP));
    CALL(socket(AF_INET, SOCK_RDM, IPPROTO_SCTP));
    CALL(socket(AF_UNIX, SOCK_STREAM, IPPROTO_SCTP));
    int s = open_one(), many = open_many();
    CALL(bind(s, as(&own), 4));
    CALL(bind(s, as(&own), sizeof own - 1));
    CALL(bind(s, as(&own), 0));
    CALL(bind(s, NULL, sizeof own));
    CALL(bind(s, as(&foreign), sizeof foreign));
    CALL(bind(s, as(&many_hosts), sizeof many_hosts));
    CALL(bind(s, as(&all_hosts), sizeof all_hosts));
    CALL(bind(s, as(&unspecified), sizeof unspecified));
    CALL(bind(s, (struct sockaddr *)&v6, sizeof v6));
    CALL(bind(many, as(&foreign), sizeof foreign));
    CALL(bind(9999, as(&own), sizeof own));
    CALL(sctp_bindx(s, as(&own), 0, SCTP_BINDX_ADD_ADDR));
    CALL(sctp_bindx(s, as(&own), -1, SCTP_BINDX_ADD_ADDR));
    CALL(sctp_bindx(s, as(&own), 1, 0));
    CALL(sctp_bindx(s, as(&own), 1, 77));
    CALL(sctp_bindx(s, as(&own), 1, SCTP_BINDX_REM_ADDR));
    CALL(sctp_bindx(s, as(&foreign), 1, SCTP_BINDX_ADD_ADDR));
    CALL(sctp_bindx(s, as(&unspecified), 1, SCTP_BINDX_ADD_ADDR));
    CALL(connect(s, as(&own), 4));
    CALL(connect(s, as(&own), sizeof own - 1));
    CALL(connect(s, as(&own), 0));
    CALL(connect(s, NULL, sizeof own));
    CALL(connect(s, as(&none), sizeof none));
    CALL(connect(s, as(&many_hosts), sizeof many_hosts));
    CALL(connect(s, as(&unspecified), sizeof unspecified));
    CALL(connect(s, (struct sockaddr *)&v6, sizeof v6));
    CALL(connect(many, as(&own), 4));
    CALL(connect(many, as(&none), sizeof none));
    CALL(connect(many, as(&many_hosts), sizeof many_hosts));
    CALL(connect(many, as(&unspecified), sizeof unspecified));
    CALL(sctp_connectx(s, as(&own), 0, NULL));
    CALL(sctp_connectx(s, as(&own), -1, NULL));
    CALL(sctp_connectx(s, as(&none), 1, NULL));
    CALL(sctp_connectx(s, as(&unspecified), 1, NULL));
    CALL(listen(9999, 1));
    CALL(accept(s, NULL, NULL));
    CALL(accept(many, NULL, NULL));
    CALL(sctp_peeloff(many, 0));
    CALL(sctp_peeloff(many, 12345));
    CALL(sctp_peeloff(9999, 1));
    CALL(sctp_getpaddrs(s, 0, NULL));
    CALL(sctp_getladdrs(9999, 0, &(struct sockaddr *){ NULL }));
    CALL(sctp_getpaddrs(s, 0, &(struct sockaddr *){ NULL }));
    CALL(sctp_getpaddrs(many, 0, &(struct sockaddr *){ NULL }));
    CALL(getsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, NULL, &(socklen_t){ 4 }));
    CALL(getsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, &(int){ 0 }, NULL));
    CALL(getsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, &(int){ 0 }, &(socklen_t){ (socklen_t)-1 }));
    CALL(setsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, NULL, 4));
    CALL(setsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, NULL, 0));
    CALL(getsockname(s, NULL, &(socklen_t){ 16 }));
    CALL(getsockname(s, as(&none), NULL));
    CALL(getpeername(s, as(&none), &(socklen_t){ 16 }));
    CALL(close(s)), CALL(close(many));
    s = open_one(), many = open_many();
    CALL(send(s, "x", 1, MSG_NOSIGNAL));
    CALL(send(many, "x", 1, MSG_NOSIGNAL));
    CALL(send(many, "x", 1, MSG_NOSIGNAL | MSG_OOB));
    CALL(sendto(s, "x", 1, MSG_NOSIGNAL, as(&many_hosts), sizeof many_hosts));
    CALL(sendto(many, "x", 1, MSG_NOSIGNAL, as(&many_hosts), sizeof many_hosts));
    CALL(sendto(many, "x", 1, MSG_NOSIGNAL, as(&own), 4));
    CALL(sendto(many, "x", 1, MSG_NOSIGNAL, as(&own), sizeof own - 1));
    CALL(sendto(many, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&v6, sizeof v6));
    CALL(recv(many, &(char){ 0 }, 1, MSG_DONTWAIT));
    CALL(recv(many, &(char){ 0 }, 1, MSG_DONTWAIT | MSG_OOB));
    CALL(recv(many, &(char){ 0 }, 1, MSG_DONTWAIT | MSG_ERRQUEUE));
    CALL(shutdown(s, 7));
    CALL(shutdown(s, SHUT_RD));
    CALL(shutdown(many, SHUT_RDWR));
    CALL(close(s));
    /* A listening socket gets the same calls as the sockets above. */
    s = open_one();
    CALL(bind(s, as(&any), sizeof any));
    CALL(bind(s, as(&any), sizeof any));
    CALL(listen(s, 1));
    CALL(connect(s, as(&own), sizeof own));
    CALL(send(s, "x", 1, MSG_NOSIGNAL));
    CALL(recv(s, &(char){ 0 }, 1, MSG_DONTWAIT));
    CALL(getpeername(s, as(&none), &(socklen_t){ 16 }));
    CALL(sctp_peeloff(s, 0));
    CALL(shutdown(s, SHUT_WR));
    CALL(shutdown(s, SHUT_RDWR));
    CALL(fcntl(s, F_SETFL, O_NONBLOCK));
    CALL(accept(s, NULL, NULL));
    CALL(poll(&(struct pollfd){ .fd = s, .events = POLLIN | POLLOUT }, 1, 0));
    CALL(close(s)), CALL(close(many));
    CALL(send(s, "x", 1, MSG_NOSIGNAL));
}

/* Creates two connected sockets. */
static void pair(int out[2], int number)
{
    struct sockaddr_in own = at("127.0.0.1", number);
    int l = open_one();
    out[0] = open_one();
    CALL(bind(l, as(&own), sizeof own));
    CALL(listen(l, 1));
    CALL(connect(out[0], as(&own), sizeof own));
    out[1] = accept(l, NULL, NULL);
    patience(out[0]), patience(out[1]);
    close(l);
}

static ssize_t send_raw(int s, int type, const void *data, size_t length, size_t said_length)
{
    union {
        struct cmsghdr header;
        char bytes[256];
    } control = { 0 };
    struct iovec part = { "x", 1 };
    struct msghdr message = { NULL, 0, &part, 1, control.bytes, CMSG_SPACE(length), 0 };
    control.header = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = type, .cmsg_len = said_length };
    memcpy(CMSG_DATA(&control.header), data, length);
    return sendmsg(s, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void ancillary(void)
{
    section = "ancillary data that is wrong";
    int s[2];
    pair(s, port + 5);
    char zeros[128] = { 0 };
    static const size_t right[] = { sizeof(struct sctp_initmsg), sizeof(struct sctp_sndrcvinfo), sizeof(struct sctp_sndinfo),
                                    sizeof(struct sctp_rcvinfo), sizeof(struct sctp_nxtinfo), sizeof(struct sctp_prinfo),
                                    sizeof(struct sctp_authinfo), sizeof(struct in_addr), sizeof(struct in6_addr), 4 };
    for (int type = 0; type < 10; type++) {
        VALUE(type);
        CALL(send_raw(s[0], type, zeros, right[type], CMSG_LEN(right[type])));
        CALL(send_raw(s[0], type, zeros, right[type], CMSG_LEN(right[type]) - 1));
        CALL(send_raw(s[0], type, zeros, right[type] + 8, CMSG_LEN(right[type] + 8)));
        CALL(send_raw(s[0], type, zeros, 0, CMSG_LEN(0)));
        CALL(send_raw(s[0], type, zeros, right[type], CMSG_LEN(1000)));
        CALL(send_raw(s[0], type, zeros, right[type], 3));
    }
    struct sctp_sndinfo info = { .snd_flags = 0x4000 };
    CALL(send_raw(s[0], SCTP_SNDINFO, &info, sizeof info, CMSG_LEN(sizeof info)));
    info.snd_flags = 0x80;
    CALL(send_raw(s[0], SCTP_SNDINFO, &info, sizeof info, CMSG_LEN(sizeof info)));
    struct sctp_prinfo terms = { .pr_policy = 0x40, .pr_value = 1 };
    CALL(send_raw(s[0], SCTP_PRINFO, &terms, sizeof terms, CMSG_LEN(sizeof terms)));
    terms.pr_policy = SCTP_PR_SCTP_TTL, terms.pr_value = 0;
    CALL(send_raw(s[0], SCTP_PRINFO, &terms, sizeof terms, CMSG_LEN(sizeof terms)));
    terms.pr_policy = SCTP_PR_SCTP_RTX;
    CALL(send_raw(s[0], SCTP_PRINFO, &terms, sizeof terms, CMSG_LEN(sizeof terms)));
    /* Sends several items of ancillary data, of one type and of different types. */
    struct sctp_sendv_spa spa = { .sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID,
                                  .sendv_sndinfo = { .snd_sid = 1, .snd_ppid = htonl(9) },
                                  .sendv_prinfo = { .pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 60000 } };
    struct iovec parts[3] = { { "ab", 2 }, { NULL, 0 }, { "c", 1 } };
    CALL(sctp_sendv(s[0], parts, 3, NULL, 0, &spa, sizeof spa, SCTP_SENDV_SPA, 0));
    CALL(sctp_sendv(s[0], parts, 3, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0));
    CALL(sctp_sendv(s[0], NULL, 0, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0));
    /* Receives with too little space for the ancillary data. */
    CALL(set_int(s[1], SCTP_RECVRCVINFO, 1));
    char bytes[16] = "", control[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
    for (size_t room = 0; room <= sizeof control; room += room == 0 ? 8 : 12) {
        CALL(send(s[0], "room", 4, 0));
        struct iovec part = { bytes, sizeof bytes };
        struct msghdr message = { NULL, 0, &part, 1, control, room, 0 };
        ssize_t n;
        do
            n = recvmsg(s[1], &message, 0);
        while (n > 0 && memcmp(bytes, "room", 4) && (message.msg_controllen = room, 1));
        VALUE(n);
        VALUE(message.msg_flags);
        VALUE(message.msg_controllen);
    }
    CALL(close(s[0])), CALL(close(s[1]));
}

static void parts(void)
{
    section = "parts";
    int s[2];
    pair(s, port + 6);
    char bytes[64] = "", more[64] = "";
    volatile int minus = -1, beyond = 2000;
    struct iovec out[4] = { { "a", 1 }, { "", 0 }, { "bcd", 3 }, { "efghi", 5 } };
    struct iovec in[4] = { { bytes, 2 }, { bytes + 2, 0 }, { bytes + 8, 3 }, { more, sizeof more } };
    CALL(writev(s[0], out, 4));
    CALL(readv(s[1], in, 4));
    VALUE(!memcmp(bytes, "ab", 2) && !memcmp(bytes + 8, "cde", 3) && !strcmp(more, "fghi"));
    CALL(writev(s[0], out, 0));
    CALL(writev(s[0], out + 1, 1));
    CALL(writev(s[0], out, minus));
    CALL(readv(s[1], in, minus));
    CALL(writev(s[0], out, beyond));
    CALL(writev(s[0], out, 4));
    CALL(recv(s[1], bytes, 2, MSG_TRUNC));
    CALL(recv(s[1], bytes, 2, MSG_PEEK | MSG_TRUNC));
    CALL(recv(s[1], bytes, 0, 0));
    CALL(recv(s[1], bytes, 1, MSG_WAITALL));
    take(s[1], MSG_PEEK);
    take(s[1], MSG_TRUNC);
    int left = -1;
    CALL(ioctl(s[1], FIONREAD, &left)), VALUE(left);
    CALL(send(s[0], "1234567", 7, 0));
    struct pollfd wanted = { .fd = s[1], .events = POLLIN | POLLPRI | POLLOUT };
    CALL(poll(&(struct pollfd){ .fd = s[1], .events = POLLIN }, 1, 120000));
    CALL(poll(&wanted, 1, 0)), VALUE(wanted.revents);
    CALL(ioctl(s[1], FIONREAD, &left)), VALUE(left);
    CALL(recv(s[1], bytes, 3, 0));
    CALL(ioctl(s[1], FIONREAD, &left)), VALUE(left);
    CALL(ioctl(s[1], FIONREAD, NULL));
    take(s[1], 0);
    CALL(ioctl(s[1], FIONBIO, &(int){ 1 }));
    CALL(recv(s[1], bytes, 3, 0));
    CALL(read(s[1], bytes, 3));
    CALL(read(s[1], bytes, 0));
    CALL(write(s[0], bytes, 0));
    CALL(recv(s[1], NULL, 5, 0));
    CALL(close(s[0])), CALL(close(s[1]));
}

static void *waits(void *of)
{
    static char byte;
    long n = recv(*(int *)of, &byte, 1, 0);
    return (void *)(n < 0 ? -errno : n);
}

/* Tests connections that fail, and connections that end while a thread waits. */
static void ends(void)
{
    section = "not made";
    struct sockaddr_in nobody = at("127.0.0.1", port + 8), own = at("127.0.0.1", port + 9);
    int s = open_one(), error = -1;
    socklen_t length = sizeof error;
    CALL(fcntl(s, F_SETFL, O_NONBLOCK));
    CALL(connect(s, as(&nobody), sizeof nobody));
    struct pollfd wanted = { .fd = s, .events = POLLOUT };
    CALL(poll(&wanted, 1, 120000));
    VALUE((wanted.revents & POLLERR) != 0), VALUE((wanted.revents & POLLOUT) != 0), VALUE((wanted.revents & POLLIN) != 0);
    CALL(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &length)), VALUE(error);
    CALL(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &length)), VALUE(error);
    CALL(send(s, "x", 1, MSG_NOSIGNAL));
    /* Connects again with the same socket, now that a server listens. */
    own = at("127.0.0.1", port + 9);
    int l = open_one();
    CALL(bind(l, as(&own), sizeof own));
    CALL(listen(l, 5));
    CALL(connect(s, as(&own), sizeof own));
    wanted = (struct pollfd){ .fd = s, .events = POLLOUT };
    CALL(poll(&wanted, 1, 120000)), VALUE(wanted.revents & (POLLOUT | POLLERR));
    CALL(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &length)), VALUE(error);
    CALL(connect(s, as(&own), sizeof own));
    int a = accept(l, NULL, NULL);
    patience(a);
    CALL(fcntl(s, F_SETFL, 0));
    CALL(send(s, "made", 4, 0));
    take(a, 0);
    /* The peer ends the association while a thread waits. */
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, waits, &s);
    settle(100);
    CALL(close(a));
    pthread_join(thread, &result);
    VALUE((long)result);
    CALL(recv(s, &(char){ 0 }, 1, 0));
    CALL(close(s));
    /* One end aborts the association while a thread waits at the other. */
    int p[2];
    section = "aborted";
    s = open_one();
    CALL(connect(s, as(&own), sizeof own));
    p[0] = s, p[1] = accept(l, NULL, NULL);
    patience(p[1]);
    pthread_create(&thread, NULL, waits, &p[1]);
    settle(100);
    CALL(setsockopt(p[0], SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger)));
    CALL(close(p[0]));
    pthread_join(thread, &result);
    VALUE((long)result == -ECONNRESET);
    CALL(send(p[1], "x", 1, MSG_NOSIGNAL));
    CALL(getsockopt(p[1], SOL_SOCKET, SO_ERROR, &error, &length)), VALUE(error);
    CALL(close(p[1]));
    /* Sets a valid and an invalid timeout. */
    section = "limits";
    s = open_one();
    CALL(connect(s, as(&own), sizeof own));
    p[1] = accept(l, NULL, NULL);
    CALL(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 50000 }, sizeof(struct timeval)));
    CALL(recv(s, &(char){ 0 }, 1, 0));
    CALL(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 5000000 }, sizeof(struct timeval)));
    CALL(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 50000 }, 3));
    CALL(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 50000 }, sizeof(struct timeval)));
    CALL(accept(l, NULL, NULL));
    fd_set set_of;
    FD_ZERO(&set_of);
    FD_SET(s, &set_of);
    CALL(select(s + 1, NULL, &set_of, NULL, NULL));
    FD_ZERO(&set_of);
    FD_SET(s, &set_of);
    CALL(select(s + 1, &set_of, NULL, NULL, &(struct timeval){ 0, 10000 }));
    CALL(close(s)), CALL(close(p[1])), CALL(close(l));
}

/* Prints the result of each call after a shutdown by this end, and then after one by the peer. */
static void shut(void)
{
    section = "shut down";
    int s[2];
    pair(s, port + 10);
    struct sctp_event_subscribe events = { .sctp_association_event = 1, .sctp_shutdown_event = 1 };
    CALL(set(s[1], SCTP_EVENTS, &events, sizeof events));
    CALL(send(s[0], "last", 4, 0));
    CALL(shutdown(s[0], SHUT_WR));
    take(s[1], 0);
    take(s[1], 0);
    take(s[1], 0);
    take(s[1], 0);
    CALL(shutdown(s[1], SHUT_RDWR));
    CALL(close(s[1]));
    take(s[0], 0);
    CALL(send(s[0], "x", 1, MSG_NOSIGNAL));
    CALL(shutdown(s[0], SHUT_WR));
    CALL(close(s[0]));
    struct sctp_status status;
    pair(s, port + 11);
    CALL(shutdown(s[0], 5));
    CALL(shutdown(s[0], SHUT_RD));
    CALL(send(s[1], "read", 4, 0));
    take(s[0], 0);
    CALL(get(s[0], SCTP_STATUS, &status, sizeof status));
    VALUE(status.sstat_state);
    CALL(close(s[1]));
    take(s[0], 0);
    /* After a local shutdown of receiving, no event reports the end of the association. */
    while (get(s[0], SCTP_STATUS, &status, sizeof status) == 0)
        usleep(1000);
    CALL(get(s[0], SCTP_STATUS, &status, sizeof status));
    PEER_NAME(s[0]);
    PEERS(s[0], 0);
    OWN_NAME(s[0]);
    CALL(close(s[0]));
}

int main(int given, char **arguments)
{
    port = given > 1 ? atoi(arguments[1]) : 5301;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    alarm(280);
    names();
    below();
    sizes();
    wrong();
    ancillary();
    parts();
    ends();
    shut();
    fprintf(stderr, "%d calls\n", count);
    return 0;
}
