/* More calls and their results (see calls.c): send options, unspecified addresses, keys, and the
 * state that a peeled-off socket inherits. */
#include "calls.h"

#include <sys/mman.h>
#include <sys/sendfile.h>

/* Creates two connected one-to-one sockets with two addresses each. */
static void pair(int number, int out[2], void (*prepare)(int))
{
    struct sockaddr_in own = at("127.0.0.1", number), other = at("127.0.0.2", number);
    struct sockaddr_in client = at("127.0.0.1", 0);
    int l = open_one(), on = 1;
    out[0] = open_one();
    prepare(l), prepare(out[0]);
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CALL(bind(l, as(&own), sizeof own));
    CALL(sctp_bindx(l, as(&other), 1, SCTP_BINDX_ADD_ADDR));
    CALL(bind(out[0], as(&client), sizeof client));
    CALL(listen(l, 1));
    CALL(connect(out[0], as(&own), sizeof own));
    out[1] = accept(l, NULL, NULL);
    VALUE(out[1] >= 0);
    patience(out[0]), patience(out[1]);
    close(l);
}

static void nothing(int s)
{
    (void)s;
}

static ssize_t send_authenticated(int s, const char *text, uint16_t key, struct sockaddr_in *to)
{
    char control[CMSG_SPACE(sizeof(struct sctp_authinfo))] = { 0 };
    struct iovec part = { (void *)text, strlen(text) };
    struct msghdr message = { to, to ? sizeof *to : 0, &part, 1, control, sizeof control, 0 };
    struct sctp_authinfo info = { .auth_keynumber = key };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    *c = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_AUTHINFO, .cmsg_len = CMSG_LEN(sizeof info) };
    memcpy(CMSG_DATA(c), &info, sizeof info);
    return sendmsg(s, &message, MSG_NOSIGNAL);
}

static void addressed(void)
{
    section = "to an address";
    int s[2];
    struct sockaddr_in first = at("127.0.0.1", port), second = at("127.0.0.2", port), strange = at("127.0.0.3", port);
    struct sctp_sndinfo over = { .snd_flags = SCTP_ADDR_OVER };
    pair(port, s, nothing);
    CALL(sctp_sendmsg(s[0], "primary", 7, as(&first), sizeof first, 0, 0, 0, 0, 0));
    take(s[1], 0);
    CALL(sctp_sendmsg(s[0], "other", 5, as(&second), sizeof second, 0, 0, 0, 0, 0));
    take(s[1], 0);
    CALL(sctp_sendmsg(s[0], "by flag", 7, as(&second), sizeof second, 0, SCTP_ADDR_OVER, 0, 0, 0));
    take(s[1], 0);
    CALL(send_with(s[0], "in sndinfo", over, &second, 0));
    take(s[1], 0);
    CALL(send_with(s[0], "no address", over, NULL, 0));
    take(s[1], MSG_DONTWAIT);
    CALL(sctp_sendmsg(s[0], "strange", 7, as(&strange), sizeof strange, 0, 0, 0, 0, 0));
    struct sctp_prim primary = { 0 };
    CALL(get(s[0], SCTP_PRIMARY_ADDR, &primary, sizeof primary));
    VALUE(((struct sockaddr_in *)&primary.ssp_addr)->sin_addr.s_addr == first.sin_addr.s_addr);
    CALL(close(s[0]));
    CALL(close(s[1]));
}

static long chunks_of(int s, int option)
{
    struct {
        sctp_assoc_t association;
        uint32_t count;
        uint8_t chunks[64];
    } all = { 0 };
    socklen_t length = sizeof all;
    if (getsockopt(s, IPPROTO_SCTP, option, &all, &length))
        return -1;
    long data = 0;
    for (unsigned i = 0; i < all.count; i++)
        data += all.chunks[i] == 0;
    return data;
}

static void keys(void)
{
    section = "keys";
    int s[2];
    struct sctp_authkeyid key = { .scact_keynumber = 4 };
    pair(port + 1, s, authenticating);
    CALL(get_value(s[0], SCTP_AUTH_SUPPORTED, 0));
    CALL(chunks_of(s[0], SCTP_PEER_AUTH_CHUNKS));
    CALL(chunks_of(s[0], SCTP_LOCAL_AUTH_CHUNKS));
    CALL(chunks_of(s[1], SCTP_PEER_AUTH_CHUNKS));
    struct sctp_event event = { .se_type = SCTP_AUTHENTICATION_EVENT, .se_on = 1 };
    CALL(set(s[1], SCTP_EVENT, &event, sizeof event));
    CALL(send(s[0], "null key", 8, 0));
    take(s[1], 0);
    CALL(send_authenticated(s[0], "by key 0", 0, NULL));
    take(s[1], 0);
    CALL(send_authenticated(s[0], "by key 9", 9, NULL));
    CALL(set(s[0], SCTP_AUTH_DEACTIVATE_KEY, &key, sizeof key));
    CALL(send_authenticated(s[0], "by key 4", 4, NULL));
    CALL(set(s[0], SCTP_AUTH_DELETE_KEY, &key, sizeof key));
    CALL(set(s[0], SCTP_AUTH_DELETE_KEY, &key, sizeof key));
    event.se_on = 0;
    CALL(set(s[1], SCTP_EVENT, &event, sizeof event));
    CALL(send_authenticated(s[0], "by key 3", 3, NULL));
    take(s[1], 0);
    CALL(close(s[0]));
    CALL(close(s[1]));
    section = "keys without AUTH";
    pair(port + 2, s, nothing);
    CALL(chunks_of(s[0], SCTP_PEER_AUTH_CHUNKS));
    CALL(chunks_of(s[0], SCTP_LOCAL_AUTH_CHUNKS));
    CALL(send_authenticated(s[0], "by key 0", 0, NULL));
    take(s[1], 0);
    CALL(send_authenticated(s[0], "by key 3", 3, NULL));
    CALL(close(s[0]));
    CALL(close(s[1]));
}

/* Receives one message and returns its TSNs. */
static void tsns(int s, unsigned *tsn, unsigned *cumulative)
{
    char data[64], control[512];
    struct iovec part = { data, sizeof data };
    struct msghdr message = { NULL, 0, &part, 1, control, sizeof control, 0 };
    struct sctp_rcvinfo info = { 0 };
    if (recvmsg(s, &message, 0) < 0)
        return;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_type == SCTP_RCVINFO)
            memcpy(&info, CMSG_DATA(c), sizeof info);
    *tsn = info.rcv_tsn, *cumulative = info.rcv_cumtsn;
}

static void ancillary(void)
{
    section = "ancillary data";
    int s[2];
    unsigned first = 0, second = 0, third = 0, cumulative[3] = { 0 };
    struct sctp_event_subscribe data = { .sctp_data_io_event = 1 };
    pair(port + 3, s, nothing);
    CALL(set_int(s[1], SCTP_RECVRCVINFO, 1));
    CALL(set_int(s[1], SCTP_RECVNXTINFO, 1));
    CALL(set(s[1], SCTP_EVENTS, &data, sizeof data));
    CALL(sctp_sendmsg(s[0], "all three", 9, NULL, 0, htonl(7), 0, 2, 0, 0));
    CALL(sctp_sendmsg(s[0], "next", 4, NULL, 0, htonl(8), SCTP_UNORDERED, 3, 0, 0));
    settle(200);
    take(s[1], 0);
    take(s[1], 0);
    data.sctp_data_io_event = 0;
    CALL(set(s[1], SCTP_EVENTS, &data, sizeof data));
    CALL(sctp_sendmsg(s[0], "a", 1, NULL, 0, 0, 0, 0, 0, 0));
    CALL(sctp_sendmsg(s[0], "b", 1, NULL, 0, 0, 0, 1, 0, 0));
    CALL(sctp_sendmsg(s[0], "c", 1, NULL, 0, 0, SCTP_UNORDERED, 1, 0, 0));
    settle(200);
    tsns(s[1], &first, &cumulative[0]), tsns(s[1], &second, &cumulative[1]), tsns(s[1], &third, &cumulative[2]);
    VALUE(second - first);
    VALUE(third - second);
    VALUE(cumulative[2] == third);
    CALL(close(s[0]));
    CALL(close(s[1]));
}

static void options(void)
{
    section = "options of associations";
    int s[2], one = open_one(), many = open_many();
    struct sockaddr_in bound = at("127.0.0.1", 0);
    CALL(set_int(one, SCTP_AUTO_ASCONF, 1));
    CALL(get_int(one, SCTP_AUTO_ASCONF));
    CALL(set_int(one, SCTP_AUTO_ASCONF, 0));
    CALL(bind(one, as(&bound), sizeof bound));
    CALL(set_int(one, SCTP_AUTO_ASCONF, 1));
    CALL(set_int(one, SCTP_AUTO_ASCONF, 0));
    CALL(set_value(many, SCTP_ECN_SUPPORTED, 12345, 1));
    CALL(set_value(many, SCTP_ECN_SUPPORTED, 0, 0));
    CALL(get_value(many, SCTP_ECN_SUPPORTED, 0));
    CALL(close(one));
    CALL(close(many));
    pair(port + 4, s, nothing);
    CALL(get_value(s[0], SCTP_ECN_SUPPORTED, 0));
    CALL(get_value(s[0], SCTP_ASCONF_SUPPORTED, 0));
    for (unsigned kind = 0; kind < 5; kind++) {
        CALL(set_value(s[0], SCTP_STREAM_SCHEDULER, 0, kind));
        CALL(get_value(s[0], SCTP_STREAM_SCHEDULER, 0));
        CALL(sctp_sendmsg(s[0], "scheduled", 9, NULL, 0, 0, 0, (uint16_t)kind, 0, 0));
        take(s[1], 0);
    }
    CALL(set_value(s[0], SCTP_STREAM_SCHEDULER, 0, 9));
    struct sctp_stream_value value = { .stream_id = 2, .stream_value = 5 };
    CALL(set_value(s[0], SCTP_STREAM_SCHEDULER, 0, SCTP_SS_PRIO));
    CALL(set(s[0], SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value));
    value.stream_value = 0;
    CALL(get(s[0], SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value));
    VALUE(value.stream_value);
    value.stream_id = 999;
    CALL(set(s[0], SCTP_STREAM_SCHEDULER_VALUE, &value, sizeof value));
    CALL(close(s[0]));
    CALL(close(s[1]));
}

/* When an association is peeled off, its unread data should move with it. */
static void taken_off(void)
{
    section = "taken off";
    struct sockaddr_in own = at("127.0.0.1", port + 5);
    int s = open_many(), a = open_many(), b = open_many(), taken;
    unsigned list[9] = { 0 };
    socklen_t length = sizeof list;
    patience(s);
    CALL(bind(s, as(&own), sizeof own));
    CALL(set_int(s, SCTP_RECVRCVINFO, 1));
    CALL(listen(s, 2));
    CALL(sctp_sendmsg(a, "a1", 2, as(&own), sizeof own, 0, 0, 0, 0, 0));
    settle(200);
    CALL(sctp_sendmsg(b, "b1", 2, as(&own), sizeof own, 0, 0, 0, 0, 0));
    settle(200);
    CALL(sctp_sendmsg(a, "a2, a longer one", 16, as(&own), sizeof own, 0, 0, 0, 0, 0));
    settle(200);
    CALL(sctp_sendmsg(b, "b2", 2, as(&own), sizeof own, 0, 0, 0, 0, 0));
    settle(200);
    CALL(getsockopt(s, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, list, &length));
    VALUE(list[0]);
    sctp_assoc_t first = take(s, 0);
    VALUE((taken = sctp_peeloff(s, first)) >= 0);
    patience(taken);
    CALL(sctp_sendmsg(a, "a3", 2, as(&own), sizeof own, 0, 0, 0, 0, 0));
    take(taken, 0);
    take(taken, 0);
    take(taken, MSG_DONTWAIT);
    take(s, 0);
    take(s, 0);
    take(s, MSG_DONTWAIT);
    CALL(close(taken));
    /* Peels off an association whose first message is partially read. */
    char part[4];
    CALL(sctp_sendmsg(b, "0123456789", 10, as(&own), sizeof own, 0, 0, 0, 0, 0));
    settle(200);
    CALL(recv(s, part, sizeof part, 0));
    length = sizeof list;
    CALL(getsockopt(s, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, list, &length));
    VALUE((taken = sctp_peeloff(s, (sctp_assoc_t)list[1])) >= 0);
    patience(taken);
    take(taken, 0);
    take(s, MSG_DONTWAIT);
    CALL(close(taken));
    CALL(close(a));
    CALL(close(b));
    CALL(close(s));
}

static long family_of(struct sockaddr_storage *address, int mapped)
{
    struct sockaddr_in6 *in = (void *)address;
    if (address->ss_family == AF_INET6 && mapped && !IN6_IS_ADDR_V4MAPPED(&in->sin6_addr))
        return -2;
    return address->ss_family == AF_INET ? 4 : address->ss_family == AF_INET6 ? 6 : 0;
}

/* Prints the addresses of an IPv4 peer as an AF_INET6 socket reports them. */
static void mapped(void)
{
    struct sockaddr_in own = at("127.0.0.1", port + 6), client = at("127.0.0.1", 0);
    struct sockaddr_in6 all = { .sin6_family = AF_INET6, .sin6_port = own.sin_port };
    for (int on = 1; on >= 0; on--) {
        section = on ? "mapped" : "not mapped";
        own.sin_port = all.sin6_port = htons((uint16_t)(port + 6 + on));
        struct sockaddr_storage name;
        struct sockaddr *several;
        struct sctp_status status = { 0 };
        socklen_t length = sizeof name;
        int l = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP), c = open_one(), s;
        CALL(set_int(l, SCTP_I_WANT_MAPPED_V4_ADDR, on));
        CALL(get_int(l, SCTP_I_WANT_MAPPED_V4_ADDR));
        CALL(bind(l, (struct sockaddr *)&all, sizeof all));
        CALL(listen(l, 1));
        CALL(bind(c, as(&client), sizeof client));
        CALL(connect(c, as(&own), sizeof own));
        VALUE((s = accept(l, (struct sockaddr *)&name, &length)) >= 0);
        patience(s);
        VALUE(length);
        VALUE(family_of(&name, 1));
        length = sizeof name;
        CALL(getpeername(s, (struct sockaddr *)&name, &length));
        VALUE(family_of(&name, 1));
        CALL(sctp_getpaddrs(s, 0, &several));
        VALUE(family_of((struct sockaddr_storage *)several, 1));
        sctp_freepaddrs(several);
        CALL(get(s, SCTP_STATUS, &status, sizeof status));
        memcpy(&name, &status.sstat_primary.spinfo_address, sizeof name);
        VALUE(family_of(&name, 1));
        CALL(send(c, "x", 1, 0));
        take(s, 0);
        length = sizeof name;
        CALL(send(c, "y", 1, 0));
        CALL(recvfrom(s, &(char){ 0 }, 1, 0, (struct sockaddr *)&name, &length));
        VALUE(length);
        VALUE(family_of(&name, 1));
        CALL(close(s));
        CALL(close(c));
        CALL(close(l));
    }
}

/* Tests sendfile and splice. */
static void transfers(void)
{
    section = "transfers";
    int s[2], pipes[2], file = memfd_create("file", 0);
    static char text[10000];
    off_t offset = 4000;
    memset(text, 't', sizeof text);
    pair(port + 8, s, nothing);
    CALL(write(file, text, sizeof text));
    CALL(pipe(pipes));
    CALL(sendfile(s[0], file, &offset, 5000));
    VALUE(offset);
    take(s[1], 0);
    take(s[1], 0);
    take(s[1], 0);
    take(s[1], MSG_DONTWAIT);
    CALL(write(pipes[1], text, 5000));
    CALL(splice(pipes[0], NULL, s[0], NULL, 5000, 0));
    take(s[1], 0);
    take(s[1], 0);
    take(s[1], MSG_DONTWAIT);
    CALL(send(s[0], text, 300, 0));
    CALL(send(s[0], text, 200, 0));
    settle(200);
    CALL(splice(s[1], NULL, pipes[1], NULL, 1000, 0));
    CALL(read(pipes[0], text, sizeof text));
    CALL(splice(s[1], NULL, pipes[1], NULL, 100, 0));
    CALL(splice(s[1], NULL, pipes[1], NULL, 100, 0));
    CALL(read(pipes[0], text, sizeof text));
    CALL(splice(s[1], NULL, pipes[1], NULL, 100, SPLICE_F_NONBLOCK));
    CALL(splice(s[1], &offset, pipes[1], NULL, 100, 0));
    CALL(splice(s[1], NULL, s[0], NULL, 100, 0));
    CALL(sendfile(file, s[1], NULL, 100));
    CALL(close(s[0]));
    CALL(close(s[1]));
}

int main(int given, char **arguments)
{
    port = given > 1 ? atoi(arguments[1]) : 5101;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    alarm(280);
    addressed();
    keys();
    ancillary();
    options();
    taken_off();
    mapped();
    transfers();
    fprintf(stderr, "%d calls\n", count);
    return 0;
}
