/* Functions of RFC 6458 §9 with the names, types and symbol versions of Linux's libsctp.so.1.
 * They make only calls of libc: socket options, and messages with ancillary data. With
 * libanabranch_preload.so these calls reach this stack; without it they reach the kernel. The
 * same code therefore serves programs that link libsctp, open it with dlopen, or contain their
 * own copy. */
#include "sctp.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Arguments of socket options that only Linux's libsctp uses; linux/sctp.h does not have these
 * structs. */
struct taken_off {
    sctp_assoc_t association;
    int descriptor;
};
struct taken_off_with_flags {
    struct taken_off taken;
    unsigned flags;
};
struct addresses {
    sctp_assoc_t association;
    unsigned count;
    unsigned char bytes[];
};
struct addresses_to_connect {
    sctp_assoc_t association;
    int bytes;
    struct sockaddr *at;
};

static int refuse(int error)
{
    errno = error;
    return -1;
}

int sctp_getaddrlen(sa_family_t family)
{
    switch (family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

/* Size in bytes of `count` addresses that are stored one after the other; -1 if one of them has
 * an unknown family. */
static long bytes_of(const struct sockaddr *all, int count)
{
    const unsigned char *at = (const unsigned char *)all;
    while (count-- > 0) {
        sa_family_t family;
        memcpy(&family, at + offsetof(struct sockaddr, sa_family), sizeof family);
        int length = sctp_getaddrlen(family);
        if (!length)
            return refuse(EINVAL);
        at += length;
    }
    return at - (const unsigned char *)all;
}

int sctp_bindx(int s, struct sockaddr *all, int count, int flags)
{
    long bytes = bytes_of(all, count);
    if (bytes < 0)
        return -1;
    switch (flags) {
    case SCTP_BINDX_ADD_ADDR:
        return setsockopt(s, SOL_SCTP, SCTP_SOCKOPT_BINDX_ADD, all, (socklen_t)bytes);
    case SCTP_BINDX_REM_ADDR:
        return setsockopt(s, SOL_SCTP, SCTP_SOCKOPT_BINDX_REM, all, (socklen_t)bytes);
    default:
        return refuse(EINVAL);
    }
}

/* Oldest version, without the association number, for programs that were linked before it became
 * the fourth argument. */
int sctp_connectx_1(int s, struct sockaddr *all, int count)
{
    long bytes = bytes_of(all, count);
    return bytes < 0 ? -1 : setsockopt(s, SOL_SCTP, SCTP_SOCKOPT_CONNECTX_OLD, all, (socklen_t)bytes);
}

/* Second version: the option returns the association number as its result. */
int sctp_connectx_2(int s, struct sockaddr *all, int count, sctp_assoc_t *association)
{
    long bytes = bytes_of(all, count);
    if (bytes < 0)
        return -1;
    if (association)
        *association = 0;
    int result = setsockopt(s, SOL_SCTP, SCTP_SOCKOPT_CONNECTX, all, (socklen_t)bytes);
    if (result > 0 && association)
        *association = result;
    return result > 0 ? 0 : result;
}

/* Current version: the association number is returned also with EINPROGRESS. A kernel without
 * this option has the option of the second version. */
int sctp_connectx_3(int s, struct sockaddr *all, int count, sctp_assoc_t *association)
{
    long bytes = bytes_of(all, count);
    if (bytes < 0)
        return -1;
    struct addresses_to_connect wanted = { .bytes = (int)bytes, .at = all };
    socklen_t length = sizeof wanted;
    if (association)
        *association = 0;
    int result = getsockopt(s, SOL_SCTP, SCTP_SOCKOPT_CONNECTX3, &wanted, &length);
    if (result < 0 && errno == ENOPROTOOPT)
        return sctp_connectx_2(s, all, count, association);
    if ((result >= 0 || errno == EINPROGRESS) && association)
        *association = wanted.association;
    return result;
}

__asm__(".symver sctp_connectx_1, sctp_connectx@");
__asm__(".symver sctp_connectx_1, sctp_connectx@VERS_1");
__asm__(".symver sctp_connectx_2, sctp_connectx@VERS_2");
__asm__(".symver sctp_connectx_3, sctp_connectx@@VERS_3");

/* Returns the addresses of one end. The allocated memory begins with a header that the program
 * does not see. */
static int addresses(int s, sctp_assoc_t association, int option, struct sockaddr **out)
{
    enum { FIRST = 4096, MOST = 1 << 20 };
    for (socklen_t room = FIRST; room <= MOST; room *= 2) {
        socklen_t length = room;
        struct addresses *all = malloc(room);
        if (!all)
            return refuse(ENOMEM);
        all->association = association;
        if (getsockopt(s, SOL_SCTP, option, all, &length) == 0) {
            *out = (struct sockaddr *)all->bytes;
            return (int)all->count;
        }
        int error = errno;
        free(all);
        if (error != ENOMEM)
            return refuse(error);
    }
    return refuse(ENOBUFS);
}

static int give_back(struct sockaddr *all)
{
    if (all)
        free((unsigned char *)all - offsetof(struct addresses, bytes));
    return 0;
}

int sctp_getpaddrs(int s, sctp_assoc_t association, struct sockaddr **all)
{
    return addresses(s, association, SCTP_GET_PEER_ADDRS, all);
}

int sctp_freepaddrs(struct sockaddr *all)
{
    return give_back(all);
}

int sctp_getladdrs(int s, sctp_assoc_t association, struct sockaddr **all)
{
    return addresses(s, association, SCTP_GET_LOCAL_ADDRS, all);
}

int sctp_freeladdrs(struct sockaddr *all)
{
    return give_back(all);
}

int sctp_opt_info(int s, sctp_assoc_t association, int option, void *value, socklen_t *length)
{
    /* Every struct that this function reads begins with the association number. */
    if (value)
        memcpy(value, &association, sizeof association);
    return getsockopt(s, SOL_SCTP, option, value, length);
}

int sctp_peeloff(int s, sctp_assoc_t association)
{
    struct taken_off taken = { .association = association };
    socklen_t length = sizeof taken;
    return getsockopt(s, SOL_SCTP, SCTP_SOCKOPT_PEELOFF, &taken, &length) < 0 ? -1 : taken.descriptor;
}

int sctp_peeloff_flags(int s, sctp_assoc_t association, unsigned flags)
{
    struct taken_off_with_flags taken = { .taken.association = association, .flags = flags };
    socklen_t length = sizeof taken;
    if (!flags)
        return sctp_peeloff(s, association);
    return getsockopt(s, SOL_SCTP, SCTP_SOCKOPT_PEELOFF_FLAGS, &taken, &length) < 0 ? -1 : taken.taken.descriptor;
}

/* Space for the ancillary data of a sent message: at most the three structs of SCTP_SENDV_SPA,
 * and additional addresses. */
struct ancillary {
    struct msghdr *message;
    size_t room;
};

static int put(struct ancillary *to, int kind, const void *value, size_t length)
{
    size_t used = to->message->msg_controllen;
    if (CMSG_SPACE(length) > to->room - used)
        return refuse(EINVAL);
    struct cmsghdr *header = (struct cmsghdr *)((unsigned char *)to->message->msg_control + used);
    header->cmsg_level = IPPROTO_SCTP;
    header->cmsg_type = kind;
    header->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(header), value, length);
    to->message->msg_controllen += CMSG_SPACE(length);
    return 0;
}

static ssize_t send_with(int s, const void *data, size_t bytes, struct sockaddr *to, socklen_t to_length,
                         const struct sctp_sndrcvinfo *info, int flags)
{
    union {
        struct cmsghdr aligned;
        unsigned char bytes[CMSG_SPACE(sizeof *info)];
    } control = { 0 };
    struct iovec part = { .iov_base = (void *)data, .iov_len = bytes };
    struct msghdr message = { .msg_name = to, .msg_namelen = to_length, .msg_iov = &part, .msg_iovlen = 1 };
    message.msg_control = &control;
    struct ancillary ancillary = { &message, sizeof control };
    if (info && put(&ancillary, SCTP_SNDRCV, info, sizeof *info))
        return -1;
    return sendmsg(s, &message, flags);
}

int sctp_send(int s, const void *data, size_t bytes, const struct sctp_sndrcvinfo *info, int flags)
{
    return (int)send_with(s, data, bytes, NULL, 0, info, flags);
}

int sctp_sendmsg(int s, const void *data, size_t bytes, struct sockaddr *to, socklen_t to_length, uint32_t ppid, uint32_t flags,
                 uint16_t stream, uint32_t lifetime, uint32_t context)
{
    struct sctp_sndrcvinfo info = { .sinfo_stream = stream, .sinfo_flags = (uint16_t)flags, .sinfo_ppid = ppid };
    info.sinfo_context = context;
    info.sinfo_timetolive = lifetime;
    return (int)send_with(s, data, bytes, to, to_length, &info, 0);
}

/* Converts the argument `info` of sctp_sendv to ancillary data. */
static int describe(struct ancillary *to, const void *info, socklen_t length, unsigned kind)
{
    const struct sctp_sendv_spa *all = info;
    size_t sizes[] = { 0, sizeof(struct sctp_sndinfo), sizeof(struct sctp_prinfo), sizeof(struct sctp_authinfo), sizeof *all };
    if (kind >= sizeof sizes / sizeof *sizes || (kind != SCTP_SENDV_NOINFO && (!info || length < sizes[kind])))
        return refuse(EINVAL);
    switch (kind) {
    case SCTP_SENDV_SNDINFO:
        return put(to, SCTP_SNDINFO, info, sizes[kind]);
    case SCTP_SENDV_PRINFO:
        return put(to, SCTP_PRINFO, info, sizes[kind]);
    case SCTP_SENDV_AUTHINFO:
        return put(to, SCTP_AUTHINFO, info, sizes[kind]);
    case SCTP_SENDV_SPA:
        if ((all->sendv_flags & SCTP_SEND_SNDINFO_VALID) && put(to, SCTP_SNDINFO, &all->sendv_sndinfo, sizeof all->sendv_sndinfo))
            return -1;
        if ((all->sendv_flags & SCTP_SEND_PRINFO_VALID) && put(to, SCTP_PRINFO, &all->sendv_prinfo, sizeof all->sendv_prinfo))
            return -1;
        if ((all->sendv_flags & SCTP_SEND_AUTHINFO_VALID) && put(to, SCTP_AUTHINFO, &all->sendv_authinfo, sizeof all->sendv_authinfo))
            return -1;
    }
    return 0;
}

int sctp_sendv(int s, const struct iovec *parts, int count, struct sockaddr *to, int to_count, void *info, socklen_t length,
               unsigned kind, int flags)
{
    struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count };
    if (count < 0 || to_count < 0 || (to_count && !to))
        return refuse(EINVAL);
    if (bytes_of(to, to_count) < 0)
        return -1;
    size_t room = CMSG_SPACE(sizeof(struct sctp_sndinfo)) + CMSG_SPACE(sizeof(struct sctp_prinfo)) +
                  CMSG_SPACE(sizeof(struct sctp_authinfo)) + (size_t)to_count * CMSG_SPACE(sizeof(struct in6_addr));
    message.msg_control = calloc(1, room);
    if (!message.msg_control)
        return refuse(ENOMEM);
    struct ancillary ancillary = { &message, room };
    int result = describe(&ancillary, info, length, kind);
    const unsigned char *at = (const unsigned char *)to;
    for (int i = 0; i < to_count && !result; i++) {
        sa_family_t family;
        memcpy(&family, at + offsetof(struct sockaddr, sa_family), sizeof family);
        if (i == 0) {
            message.msg_name = to;
            message.msg_namelen = (socklen_t)sctp_getaddrlen(family);
        } else if (family == AF_INET) {
            result = put(&ancillary, SCTP_DSTADDRV4, at + offsetof(struct sockaddr_in, sin_addr), sizeof(struct in_addr));
        } else {
            result = put(&ancillary, SCTP_DSTADDRV6, at + offsetof(struct sockaddr_in6, sin6_addr), sizeof(struct in6_addr));
        }
        at += sctp_getaddrlen(family);
    }
    if (!result)
        result = (int)sendmsg(s, &message, flags);
    int error = errno;
    free(message.msg_control);
    errno = error;
    return result;
}

/* Calls recvmsg with the given flags; then replaces the flags and the address length by those of
 * the message. */
static ssize_t receive(int s, struct msghdr *message, socklen_t *from_length, int *flags)
{
    ssize_t length = recvmsg(s, message, flags ? *flags : 0);
    if (length < 0)
        return -1;
    if (from_length)
        *from_length = message->msg_namelen;
    if (flags)
        *flags = message->msg_flags;
    return length;
}

int sctp_recvmsg(int s, void *data, size_t room, struct sockaddr *from, socklen_t *from_length, struct sctp_sndrcvinfo *info, int *flags)
{
    union {
        struct cmsghdr aligned;
        /* There must also be space for the other two structs, which come first if the program
         * has requested them. */
        unsigned char bytes[CMSG_SPACE(sizeof *info) + CMSG_SPACE(sizeof(struct sctp_rcvinfo)) + CMSG_SPACE(sizeof(struct sctp_nxtinfo))];
    } control;
    struct iovec part = { .iov_base = data, .iov_len = room };
    struct msghdr message = { .msg_name = from, .msg_namelen = from_length ? *from_length : 0, .msg_iov = &part, .msg_iovlen = 1 };
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    ssize_t length = receive(s, &message, from_length, flags);
    if (length < 0)
        return -1;
    for (struct cmsghdr *it = CMSG_FIRSTHDR(&message); it && info; it = CMSG_NXTHDR(&message, it))
        if (it->cmsg_level == IPPROTO_SCTP && it->cmsg_type == SCTP_SNDRCV)
            memcpy(info, CMSG_DATA(it), sizeof *info);
    return (int)length;
}

int sctp_recvv(int s, const struct iovec *parts, int count, struct sockaddr *from, socklen_t *from_length, void *info,
               socklen_t *info_length, unsigned *kind, int *flags)
{
    union {
        struct cmsghdr aligned;
        unsigned char bytes[CMSG_SPACE(sizeof(struct sctp_rcvinfo)) + CMSG_SPACE(sizeof(struct sctp_nxtinfo))];
    } control;
    struct msghdr message = { .msg_name = from, .msg_namelen = from_length ? *from_length : 0 };
    struct sctp_recvv_rn both;
    unsigned found = SCTP_RECVV_NOINFO;
    if (count < 0)
        return refuse(EINVAL);
    message.msg_iov = (struct iovec *)parts;
    message.msg_iovlen = (size_t)count;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    ssize_t length = receive(s, &message, from_length, flags);
    if (length < 0)
        return -1;
    for (struct cmsghdr *it = CMSG_FIRSTHDR(&message); it; it = CMSG_NXTHDR(&message, it)) {
        if (it->cmsg_level == IPPROTO_SCTP && it->cmsg_type == SCTP_RCVINFO) {
            memcpy(&both.recvv_rcvinfo, CMSG_DATA(it), sizeof both.recvv_rcvinfo);
            found |= SCTP_RECVV_RCVINFO;
        } else if (it->cmsg_level == IPPROTO_SCTP && it->cmsg_type == SCTP_NXTINFO) {
            memcpy(&both.recvv_nxtinfo, CMSG_DATA(it), sizeof both.recvv_nxtinfo);
            found |= SCTP_RECVV_NXTINFO;
        }
    }
    /* If the buffer cannot hold both structs, returns only that of the next message, like
     * Linux's library. */
    if (found == SCTP_RECVV_RN && info_length && *info_length < sizeof both)
        found = SCTP_RECVV_NXTINFO;
    const void *value = found == SCTP_RECVV_NXTINFO ? (void *)&both.recvv_nxtinfo : (void *)&both;
    socklen_t size = found == SCTP_RECVV_RN ? sizeof both : found == SCTP_RECVV_RCVINFO ? sizeof both.recvv_rcvinfo : sizeof both.recvv_nxtinfo;
    if (found == SCTP_RECVV_NOINFO || !info || !info_length || *info_length < size) {
        found = SCTP_RECVV_NOINFO;
    } else {
        memcpy(info, value, size);
        *info_length = size;
    }
    if (kind)
        *kind = found;
    return (int)length;
}

/* Cipher suites of the DTLS chunk in order of preference: TLS_AES_128_GCM_SHA256,
 * TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256. */
static const uint8_t cipher_suites_of_dtls[][2] = { { 0x13, 0x01 }, { 0x13, 0x02 }, { 0x13, 0x03 } };

unsigned int sctp_dtls_nr_cipher_suites(void)
{
    return sizeof cipher_suites_of_dtls / sizeof cipher_suites_of_dtls[0];
}

int sctp_dtls_cipher_suites(uint8_t cipher_suites[][2], unsigned int n)
{
    if (n < sctp_dtls_nr_cipher_suites())
        return refuse(EINVAL);
    memcpy(cipher_suites, cipher_suites_of_dtls, sizeof cipher_suites_of_dtls);
    return (int)sctp_dtls_nr_cipher_suites();
}
