/* Calls on sockets whose association has ended or that have none, and their results (see
 * calls.c). */
#include "calls.h"

#include <sys/uio.h>

static volatile sig_atomic_t pipes;

static void note(int signal)
{
    (void)signal;
    pipes++;
}

#define RECEIVE(s) CALL(recv(s, &(char){ 0 }, 1, 0))
#define LOOK(s) CALL(recv(s, &(char){ 0 }, 1, MSG_DONTWAIT))
#define SEND(s) CALL(send(s, "x", 1, MSG_NOSIGNAL))

static void error_of(int s)
{
    int error = -1;
    socklen_t length = sizeof error;
    getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &length);
    count++;
    printf("%s: the error that waits is %s\n", section, error ? strerrorname_np(error) : "none");
}

/* Prints the immediate result of `poll`. */
static void look(int s)
{
    struct pollfd wanted = { s, POLLIN | POLLOUT | POLLRDHUP, 0 };
    poll(&wanted, 1, 0);
    count++;
    printf("%s: poll says%s%s%s%s%s\n", section, wanted.revents & POLLIN ? " IN" : "", wanted.revents & POLLOUT ? " OUT" : "",
           wanted.revents & POLLERR ? " ERR" : "", wanted.revents & POLLHUP ? " HUP" : "", wanted.revents & POLLRDHUP ? " RDHUP" : "");
}

/* Waits until the association of a one-to-one or peeled-off socket has ended. */
static void ended(int s)
{
    struct pollfd wanted = { s, POLLRDHUP, 0 };
    poll(&wanted, 1, PATIENCE * 1000);
}

/* Waits until a one-to-many socket has no association. */
static void none_left(int s)
{
    while (get_int(s, SCTP_GET_ASSOC_NUMBER) > 0)
        settle(1);
}

static void aborts(int s)
{
    setsockopt(s, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    close(s);
}

static struct sockaddr_in listening(int s)
{
    struct sockaddr_in own = at("127.0.0.1", 0);
    socklen_t length = sizeof own;
    bind(s, as(&own), sizeof own);
    listen(s, 5);
    getsockname(s, as(&own), &length);
    return own;
}

/* Creates the two ends of a one-to-one association. */
static void pair(int *caller, int *called)
{
    int l = open_one();
    struct sockaddr_in own = listening(l);
    *caller = open_one();
    if (connect(*caller, as(&own), sizeof own))
        exit(2);
    *called = accept(l, NULL, NULL);
    patience(*caller), patience(*called);
    close(l);
}

static void without(void)
{
    char byte;
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    section = "never connected";
    int s = open_one();
    look(s);
    LOOK(s), RECEIVE(s);
    CALL(read(s, &byte, 1));
    CALL(readv(s, &part, 1));
    CALL(recvfrom(s, &byte, 1, MSG_PEEK, NULL, NULL));
    CALL(recvmsg(s, &message, 0));
    CALL(sctp_recvmsg(s, &byte, 1, NULL, NULL, NULL, NULL));
    SEND(s);
    error_of(s);
    CALL(close(s));

    section = "listens";
    int l = open_one(), c = open_one();
    struct sockaddr_in own = listening(l);
    LOOK(l), RECEIVE(l);
    CALL(read(l, &byte, 1));
    CALL(connect(c, as(&own), sizeof own));
    LOOK(l), RECEIVE(l);
    SEND(l);
    /* The calls above should not have consumed the association that waits to be accepted. */
    s = accept(l, NULL, NULL);
    VALUE(s > 0);
    SEND(c);
    RECEIVE(s);
    CALL(close(c)), CALL(close(s)), CALL(close(l));

    section = "with many, none";
    struct sockaddr_in any = at("127.0.0.1", 0);
    s = open_many();
    look(s);
    LOOK(s), RECEIVE(s);
    CALL(bind(s, as(&any), sizeof any));
    RECEIVE(s);
    CALL(recvmsg(s, &message, 0));
    CALL(listen(s, 1));
    LOOK(s);
    CALL(listen(s, 0));
    RECEIVE(s);
    CALL(close(s));

    section = "with many, no more";
    l = open_many(), c = open_many();
    own = listening(l);
    patience(l), patience(c);
    CALL(sctp_sendmsg(c, "x", 1, as(&own), sizeof own, 0, 0, 0, 0, 0));
    RECEIVE(l);
    LOOK(c);
    CALL(close(l));
    none_left(c);
    LOOK(c), RECEIVE(c);
    CALL(close(c));
}

static void failed(void)
{
    struct sockaddr_in nobody = at("127.0.0.1", 9);
    section = "refused, then sends";
    int s = open_one();
    CALL(connect(s, as(&nobody), sizeof nobody));
    SEND(s), SEND(s), RECEIVE(s), LOOK(s);
    error_of(s);
    CALL(close(s));
    section = "refused, then receives";
    s = open_one();
    CALL(connect(s, as(&nobody), sizeof nobody));
    RECEIVE(s), RECEIVE(s), SEND(s);
    error_of(s);
    CALL(close(s));
    section = "refused, then asks";
    s = open_one();
    CALL(connect(s, as(&nobody), sizeof nobody));
    error_of(s);
    RECEIVE(s), SEND(s);
    CALL(connect(s, as(&nobody), sizeof nobody));
    error_of(s);
    CALL(close(s));
    section = "refused, then connected";
    s = open_one();
    CALL(connect(s, as(&nobody), sizeof nobody));
    int l = open_one();
    struct sockaddr_in own = listening(l);
    CALL(connect(s, as(&own), sizeof own));
    error_of(s);
    SEND(s);
    CALL(close(s)), CALL(close(l));
    section = "refused meanwhile";
    for (int sends = 0; sends < 2; sends++) {
        s = open_one();
        struct pollfd wanted = { s, POLLIN, 0 };
        CALL(fcntl(s, F_SETFL, O_NONBLOCK));
        CALL(connect(s, as(&nobody), sizeof nobody));
        CALL(poll(&wanted, 1, PATIENCE * 1000));
        if (sends)
            SEND(s);
        RECEIVE(s), RECEIVE(s), SEND(s);
        error_of(s);
        CALL(close(s));
    }
}

static void over(void)
{
    int a, b;
    section = "aborted";
    pair(&a, &b);
    aborts(b), ended(a);
    look(a);
    SEND(a), SEND(a), RECEIVE(a), LOOK(a);
    error_of(a);
    CALL(connect(a, as(&(struct sockaddr_in){ .sin_family = AF_INET, .sin_port = 9 }), sizeof(struct sockaddr_in)));
    CALL(getpeername(a, as(&(struct sockaddr_in){ 0 }), &(socklen_t){ sizeof(struct sockaddr_in) }));
    CALL(close(a));

    section = "aborted behind a message";
    pair(&a, &b);
    SEND(a), RECEIVE(b);
    SEND(b), settle(50);
    aborts(b), ended(a);
    SEND(a), SEND(a);
    RECEIVE(a), RECEIVE(a);
    CALL(close(a));

    section = "aborted, then receives";
    pair(&a, &b);
    SEND(a), RECEIVE(b);
    aborts(b), ended(a);
    RECEIVE(a), RECEIVE(a), SEND(a);
    CALL(close(a));

    section = "aborted, then asks";
    pair(&a, &b);
    aborts(b), ended(a);
    error_of(a);
    RECEIVE(a), SEND(a);
    CALL(close(a));

    section = "closed";
    pair(&a, &b);
    SEND(a), RECEIVE(b), SEND(b);
    CALL(close(b)), ended(a);
    look(a);
    SEND(a);
    RECEIVE(a), LOOK(a), RECEIVE(a);
    look(a);
    error_of(a);
    pipes = 0;
    CALL(send(a, "x", 1, 0));
    CALL(write(a, "x", 1));
    VALUE(pipes);
    CALL(getpeername(a, as(&(struct sockaddr_in){ 0 }), &(socklen_t){ sizeof(struct sockaddr_in) }));
    CALL(close(a));

    section = "shut down";
    pair(&a, &b);
    SEND(a), RECEIVE(b);
    CALL(shutdown(b, SHUT_WR)), ended(a);
    SEND(a), SEND(b);
    RECEIVE(a);
    CALL(close(a)), CALL(close(b));

    /* Another process caches the state of the socket. */
    section = "in two processes";
    pair(&a, &b);
    SEND(a), RECEIVE(b);
    int go[2];
    pipe(go);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        close(b);
        read(go[0], &(char){ 0 }, 1);
        ended(a);
        SEND(a);
        fflush(stdout);
        _exit(0);
    }
    CALL(close(b));
    write(go[1], "", 1);
    waitpid(child, NULL, 0);
    SEND(a);
    CALL(close(a));
}

static void peeled(void)
{
    section = "peeled off";
    int l = open_many(), c = open_many();
    struct sockaddr_in own = listening(l);
    patience(l), patience(c);
    for (int gently = 0; gently < 2; gently++) {
        struct {
            unsigned count;
            sctp_assoc_t id;
        } ids;
        CALL(sctp_sendmsg(c, "x", 1, as(&own), sizeof own, 0, 0, 0, 0, 0));
        RECEIVE(l);
        get(l, SCTP_GET_ASSOC_ID_LIST, &ids, sizeof ids);
        int s = sctp_peeloff(l, ids.id);
        SEND(s), RECEIVE(c);
        get(c, SCTP_GET_ASSOC_ID_LIST, &ids, sizeof ids);
        struct sctp_sndrcvinfo end = { .sinfo_flags = gently ? SCTP_EOF : SCTP_ABORT, .sinfo_assoc_id = ids.id };
        CALL(sctp_send(c, NULL, 0, &end, 0));
        none_left(c);
        if (!gently) {
            ended(s);
            SEND(s);
        }
        RECEIVE(s);
        SEND(s);
        error_of(s);
        CALL(close(s));
    }
    CALL(close(l)), CALL(close(c));
}

/* Passes addresses to sockets with one association, and sets options of future associations with
 * the number of an existing one. */
static void named(void)
{
    section = "named";
    int l = open_many(), c = open_many(), other = open_many(), a, b;
    struct sockaddr_in own = listening(l), others = listening(other);
    patience(l), patience(c);
    CALL(sctp_sendmsg(c, "x", 1, as(&own), sizeof own, 0, 0, 0, 0, 0));
    RECEIVE(l);
    struct {
        unsigned count;
        sctp_assoc_t id;
    } ids;
    get(c, SCTP_GET_ASSOC_ID_LIST, &ids, sizeof ids);
    sctp_assoc_t known = ids.id;
    const int options[] = { SCTP_PR_SUPPORTED, SCTP_RECONFIG_SUPPORTED, SCTP_ENABLE_STREAM_RESET, SCTP_INTERLEAVING_SUPPORTED,
                            SCTP_ASCONF_SUPPORTED, SCTP_AUTH_SUPPORTED, SCTP_ECN_SUPPORTED };
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
        CALL(set_value(c, options[i], known, 1)), CALL(get_value(c, options[i], known)), CALL(get_value(c, options[i], 0));
        CALL(set_value(c, options[i], 999999, 1)), CALL(get_value(c, options[i], 999999));
    }
    get(l, SCTP_GET_ASSOC_ID_LIST, &ids, sizeof ids);
    int s = sctp_peeloff(l, ids.id);
    patience(s);
    CALL(sendto(s, "1", 1, MSG_NOSIGNAL, as(&own), sizeof own));
    CALL(sendto(s, "2", 1, MSG_NOSIGNAL, as(&others), sizeof others));
    CALL(sctp_sendmsg(s, "3", 1, as(&others), sizeof others, 0, 0, 0, 0, 0));
    RECEIVE(c), RECEIVE(c), RECEIVE(c);
    CALL(close(s)), CALL(close(l)), CALL(close(c)), CALL(close(other));
    pair(&a, &b);
    CALL(sendto(a, "1", 1, MSG_NOSIGNAL, as(&others), sizeof others));
    CALL(set_int(b, SCTP_RECVRCVINFO, 1));
    struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
    set(b, SCTP_EVENTS, &events, sizeof events);
    /* Sizes of the control buffer: none, a header, a part of the first item, the first item
     * alone, and more. */
    const size_t rooms[] = { 0, sizeof(struct cmsghdr), 20, CMSG_SPACE(sizeof(struct sctp_rcvinfo)), 100, 200 };
    for (unsigned i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        char byte, control[200];
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = rooms[i] ? control : NULL, .msg_controllen = rooms[i] };
        SEND(a);
        CALL(recvmsg(b, &message, 0));
        VALUE(message.msg_flags), VALUE(message.msg_controllen);
    }
    CALL(close(a)), CALL(close(b));
    /* A socket that is bound to all addresses should have those of the interfaces. */
    struct sockaddr_in all = { .sin_family = AF_INET };
    s = open_one();
    CALL(bind(s, as(&all), sizeof all));
    struct sockaddr *list = NULL;
    VALUE(sctp_getladdrs(s, 0, &list) > 0);
    VALUE(((struct sockaddr_in *)list)->sin_addr.s_addr != INADDR_ANY);
    sctp_freeladdrs(list);
    CALL(close(s));
    /* An association that was not accepted should end with the listening socket. */
    l = open_one(), a = open_one(), own = listening(l);
    patience(a);
    CALL(connect(a, as(&own), sizeof own));
    CALL(close(l)), ended(a);
    RECEIVE(a), SEND(a);
    CALL(close(a));
}

/* A successful call should not change `errno`. */
#define KEEPS(call)                                                                                         \
    do {                                                                                                    \
        errno = ENOTTY;                                                                                     \
        long result = (long)(call);                                                                         \
        int left = errno;                                                                                   \
        count++;                                                                                            \
        printf("%s: %s %s errno\n", section, #call, result >= 0 && left == ENOTTY ? "keeps" : "changes");   \
    } while (0)

static void quiet(void)
{
    section = "errno";
    static char large[100000];
    struct sctp_sndrcvinfo info;
    struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
    struct sockaddr *all = NULL;
    int l = -1, c = -1, s = -1, flags = 0;
    struct sockaddr_in own = at("127.0.0.1", 0);
    KEEPS(l = open_one());
    own = listening(l);
    KEEPS(c = open_one());
    KEEPS(connect(c, as(&own), sizeof own));
    KEEPS(s = accept(l, NULL, NULL));
    KEEPS(set(s, SCTP_EVENTS, &events, sizeof events));
    KEEPS(send(c, "x", 1, 0));
    KEEPS(recv(s, large, sizeof large, 0));
    KEEPS(sctp_sendmsg(c, "x", 1, NULL, 0, 0, 0, 0, 0, 0));
    KEEPS(sctp_recvmsg(s, large, sizeof large, NULL, NULL, &info, &flags));
    /* Receives in a wait, while another process sends. */
    fflush(stdout);
    if (!fork()) {
        settle(50);
        send(c, large, sizeof large, 0);
        _exit(0);
    }
    KEEPS(recv(s, large, sizeof large, 0));
    while (wait(NULL) > 0)
        ;
    KEEPS(sctp_getladdrs(c, 0, &all));
    sctp_freeladdrs(all);
    KEEPS(sctp_getpaddrs(c, 0, &all));
    sctp_freepaddrs(all);
    KEEPS(getpeername(c, as(&own), &(socklen_t){ sizeof own }));
    KEEPS(shutdown(c, SHUT_WR));
    KEEPS(close(c));
    KEEPS(recv(s, large, sizeof large, 0));
    KEEPS(close(s));
    KEEPS(close(l));
}

int main(int count_of, char **arguments)
{
    port = count_of > 1 ? atoi(arguments[1]) : 5401;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, note);
    without();
    failed();
    over();
    peeled();
    named();
    quiet();
    fprintf(stderr, "%d lines\n", count);
    return 0;
}
