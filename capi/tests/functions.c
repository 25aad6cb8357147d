/* Tests of libsctp's functions in each way that programs use them: linked, in the program's own
 * copy (COPIED; with the oldest version of each function), or opened by dlopen (OPENED).
 * `functions PORT` runs both ends, and prints the path of the library and that all checks
 * passed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

#ifdef OPENED
static void *library;
static void *find(const char *name)
{
    void *found = dlsym(library, name);
    CHECK(found);
    return found;
}
#define F(name) ((__typeof__(&name))find(#name))
#else
#define F(name) (&name)
#endif

static struct sockaddr_in at(const char *ip, int port)
{
    struct sockaddr_in out = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    inet_pton(AF_INET, ip, &out.sin_addr);
    return out;
}

/* Receives a message, and checks its text, stream and payload protocol identifier. */
static void receive(int s, const char *text, unsigned stream)
{
    char data[64];
    struct iovec part = { data, sizeof data };
    struct sctp_recvv_rn info = { 0 };
    struct sockaddr_in from;
    socklen_t from_length = sizeof from, info_length = sizeof info;
    unsigned kind = 0;
    int flags = 0;
    int n = F(sctp_recvv)(s, &part, 1, (struct sockaddr *)&from, &from_length, &info, &info_length, &kind, &flags);
    CHECK(n == (int)strlen(text) && !memcmp(data, text, (size_t)n));
    CHECK((flags & MSG_EOR) && from_length == sizeof from);
    CHECK(kind & SCTP_RECVV_RCVINFO);
    CHECK(info.recvv_rcvinfo.rcv_sid == stream && ntohl(info.recvv_rcvinfo.rcv_ppid) == 9);
}

int main(int count, char **given)
{
    int port = count > 1 ? atoi(given[1]) : 5001, on = 1;
    alarm(280);
#ifdef OPENED
    CHECK((library = dlopen("libsctp.so.1", RTLD_NOW)));
#endif
    Dl_info where;
    CHECK(dladdr((void *)F(sctp_bindx), &where));
    printf("%s\n", where.dli_fname);

    struct sockaddr_in own[] = { at("127.0.0.1", port), at("127.0.0.2", port) };
    struct sockaddr *all = NULL;
    int l = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(F(sctp_getaddrlen)(AF_INET) == 16 && F(sctp_getaddrlen)(AF_INET6) == 28 && F(sctp_getaddrlen)(AF_UNIX) == 0);
    CHECK(F(sctp_bindx)(l, (struct sockaddr *)own, 2, SCTP_BINDX_ADD_ADDR) == 0);
    CHECK(F(sctp_getladdrs)(l, 0, &all) == 2);
    CHECK(((struct sockaddr_in *)all)[1].sin_addr.s_addr == own[1].sin_addr.s_addr);
    CHECK(F(sctp_freeladdrs)(all) == 0);
    CHECK(F(sctp_bindx)(l, (struct sockaddr *)&own[1], 1, SCTP_BINDX_REM_ADDR) == 0);
    CHECK(F(sctp_getladdrs)(l, 0, &all) == 1 && F(sctp_freeladdrs)(all) == 0);
    CHECK(listen(l, 5) == 0);
    CHECK(setsockopt(l, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0);

    /* The last two versions of sctp_connectx return the association number. The oldest version
     * has no such argument; dlsym finds this version, as with Linux's library. */
    sctp_assoc_t name = 0;
    CHECK(F(sctp_connectx)(c, (struct sockaddr *)own, 1, &name) == 0);
#if !defined(COPIED) && !defined(OPENED)
    CHECK(name > 2);
#endif
#ifdef OPENED
    int (*second)(int, struct sockaddr *, int, sctp_assoc_t *) = dlvsym(library, "sctp_connectx", "VERS_2");
    int (*first)(int, struct sockaddr *, int) = dlvsym(library, "sctp_connectx", "VERS_1");
    int (*third)(int, struct sockaddr *, int, sctp_assoc_t *) = dlvsym(library, "sctp_connectx", "VERS_3");
    CHECK(first && second && third);
    int d = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), e = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    int f = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(third(f, (struct sockaddr *)own, 1, &name) == 0 && name > 2);
    sctp_assoc_t other = 0;
    CHECK(second(d, (struct sockaddr *)own, 1, &other) == 0 && other > 2 && other != name);
    CHECK(first(e, (struct sockaddr *)own, 1) == 0);
    CHECK(close(d) == 0 && close(e) == 0 && close(f) == 0);
#endif
    struct sctp_status status;
    socklen_t length = sizeof status;
    CHECK(F(sctp_opt_info)(c, name, SCTP_STATUS, &status, &length) == 0);
    CHECK(status.sstat_state == SCTP_ESTABLISHED && status.sstat_assoc_id > 2);
    CHECK(F(sctp_getpaddrs)(c, name, &all) >= 1);
    CHECK(((struct sockaddr_in *)all)->sin_port == own->sin_port && F(sctp_freepaddrs)(all) == 0);

    /* Sends with each of the functions. */
    struct sctp_sendv_spa how = { .sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID };
    how.sendv_sndinfo = (struct sctp_sndinfo){ .snd_sid = 1, .snd_ppid = htonl(9) };
    how.sendv_prinfo = (struct sctp_prinfo){ .pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 60000 };
    struct iovec parts[] = { { "in ", 3 }, { "parts", 5 } };
    CHECK(F(sctp_sendv)(c, parts, 2, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0) == 8);
    receive(l, "in parts", 1);
    struct sctp_sndrcvinfo old = { .sinfo_stream = 2, .sinfo_ppid = htonl(9) };
    CHECK(F(sctp_send)(c, "send", 4, &old, 0) == 4);
    receive(l, "send", 2);
    CHECK(F(sctp_sendmsg)(c, "sendmsg", 7, NULL, 0, htonl(9), SCTP_UNORDERED, 3, 0, 0) == 7);
    receive(l, "sendmsg", 3);
#ifndef COPIED
    CHECK(F(sctp_sendv)(c, parts, 2, NULL, 0, &how, 3, SCTP_SENDV_SPA, 0) == -1 && errno == EINVAL);
#endif

    /* Peels off an association. */
    struct {
        unsigned count;
        sctp_assoc_t first[9];
    } names;
    length = sizeof names;
    CHECK(getsockopt(l, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &names, &length) == 0 && names.count >= 1);
    struct sockaddr_in from;
    struct sctp_sndrcvinfo info = { 0 };
    struct sctp_event_subscribe wanted = { .sctp_data_io_event = 1 };
    int off = 0;
    char data[16];
    int flags = 0;
    length = sizeof from;
    /* SCTP_RECVRCVINFO is disabled, because Linux's own sctp_recvmsg has space for only one of
     * the two structs. */
    CHECK(setsockopt(l, IPPROTO_SCTP, SCTP_RECVRCVINFO, &off, sizeof off) == 0);
    CHECK(setsockopt(l, IPPROTO_SCTP, SCTP_EVENTS, &wanted, sizeof wanted) == 0);
    CHECK(F(sctp_send)(c, "whose?", 6, &old, 0) == 6);
    CHECK(F(sctp_recvmsg)(l, data, sizeof data, (struct sockaddr *)&from, &length, &info, &flags) == 6);
    CHECK(info.sinfo_stream == 2 && ntohl(info.sinfo_ppid) == 9 && info.sinfo_assoc_id > 2);
    int taken = F(sctp_peeloff)(l, info.sinfo_assoc_id);
    CHECK(taken >= 0);
    CHECK(send(taken, "mine", 4, 0) == 4);
    flags = 0;
    CHECK(F(sctp_recvmsg)(c, data, sizeof data, NULL, NULL, NULL, &flags) == 4 && !memcmp(data, "mine", 4));
    CHECK(close(taken) == 0);
    CHECK(recv(c, data, sizeof data, 0) == 0);
    CHECK(close(c) == 0 && close(l) == 0);
    puts("as it should be");
    return 0;
}
