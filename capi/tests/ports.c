/* More calls and their results (see calls.c): sockets that share a port, notifications of keys,
 * addresses and aborts, and sockets closed with unread messages. */
#include "calls.h"

/* Binds the socket to this address; returns 0, or -1 if that fails. */
static int bound(int s, const char *ip, int number)
{
    struct sockaddr_in own = at(ip, number);
    return bind(s, as(&own), sizeof own) ? -1 : 0;
}

/* Connects a new socket, and prints which of two listeners gets the association. */
static void meet(const char *ip, int number, const int listeners[2])
{
    struct sockaddr_in there = at(ip, number), peer = { 0 };
    socklen_t length = sizeof peer;
    int client = open_one(), accepted = -1;
    CALL(connect(client, as(&there), sizeof there));
    struct pollfd both[2] = { { listeners[0], POLLIN, 0 }, { listeners[1], POLLIN, 0 } };
    CALL(poll(both, 2, 120000));
    for (int i = 0; i < 2; i++) {
        VALUE(both[i].revents & POLLIN ? i + 1 : 0);
        if (both[i].revents & POLLIN)
            accepted = accept(listeners[i], NULL, NULL);
    }
    patience(accepted), patience(client);
    CALL(getsockname(accepted, as(&peer), &length));
    VALUE(ntohs(peer.sin_port) - number);
    CALL(send(client, "to", 2, 0));
    take(accepted, 0);
    CALL(send(accepted, "fro", 3, 0));
    take(client, 0);
    CALL(close(client));
    take(accepted, 0);
    CALL(close(accepted));
}

static void one_port(void)
{
    section = "one port";
    int s[2] = { open_one(), open_one() }, third = open_one(), many = open_many();
    struct sockaddr_in first = at("127.0.0.1", port), third_address = at("127.0.0.3", port);
    CALL(bound(s[0], "127.0.0.1", port));
    CALL(bound(s[1], "127.0.0.1", port));
    CALL(bound(s[1], "0.0.0.0", port));
    CALL(bound(s[1], "127.0.0.2", port));
    CALL(bound(third, "127.0.0.2", port));
    CALL(bound(third, "0.0.0.0", port));
    CALL(bound(many, "127.0.0.1", port));
    CALL(listen(s[0], 4));
    CALL(listen(s[1], 4));
    meet("127.0.0.1", port, s);
    meet("127.0.0.2", port, s);
    meet("127.0.0.1", port, s);
    /* Adds an address at the port that is free, and one that another socket has. */
    CALL(sctp_bindx(s[1], as(&first), 1, SCTP_BINDX_ADD_ADDR));
    CALL(sctp_bindx(s[1], as(&third_address), 1, SCTP_BINDX_ADD_ADDR));
    CALL(bound(third, "127.0.0.3", port));
    meet("127.0.0.3", port, s);
    CALL(sctp_bindx(s[1], as(&third_address), 1, SCTP_BINDX_REM_ADDR));
    CALL(bound(third, "127.0.0.3", port));
    CALL(close(third));
    /* A one-to-many socket can share the port too, if its addresses differ. */
    CALL(bound(many, "127.0.0.4", port));
    CALL(listen(many, 1));
    struct sockaddr_in fourth = at("127.0.0.4", port);
    int client = open_one();
    patience(many);
    CALL(connect(client, as(&fourth), sizeof fourth));
    CALL(send(client, "many", 4, 0));
    take(many, 0);
    CALL(close(client));
    CALL(close(many));
    CALL(close(s[0]));
    meet("127.0.0.2", port, (int[2]){ -1, s[1] });
    CALL(close(s[1]));
}

static void one_port_of_all(void)
{
    section = "one port, all addresses";
    int s = open_one(), other = open_one();
    CALL(bound(s, "0.0.0.0", port + 1));
    CALL(bound(other, "127.0.0.2", port + 1));
    CALL(close(s));
    CALL(bound(other, "127.0.0.2", port + 1));
    CALL(close(other));
}

/* A client connects from a port at which another socket of the same host listens at another
 * address. */
static void from_the_port(void)
{
    section = "from a port that another has";
    int l = open_one(), client = open_one();
    struct sockaddr_in there = at("127.0.0.1", port + 2), peer = { 0 };
    socklen_t length = sizeof peer;
    CALL(bound(l, "127.0.0.1", port + 2));
    CALL(listen(l, 1));
    CALL(bound(client, "127.0.0.2", port + 2));
    CALL(connect(client, as(&there), sizeof there));
    int accepted = accept(l, NULL, NULL);
    patience(accepted);
    CALL(getpeername(accepted, as(&peer), &length));
    VALUE(peer.sin_addr.s_addr == inet_addr("127.0.0.2"));
    VALUE(ntohs(peer.sin_port) - port);
    CALL(send(client, "same port", 9, 0));
    take(accepted, 0);
    CALL(close(client));
    CALL(close(accepted));
    CALL(close(l));
}

/* Prints notifications of keys and addresses with all their fields. */
static void tell(int s)
{
    union sctp_notification it = { 0 };
    struct iovec part = { &it, sizeof it };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t n = recvmsg(s, &message, 0);
    count++;
    if (n < 0 || !(message.msg_flags & MSG_NOTIFICATION)) {
        printf("%s: tell = %zd %s\n", section, n, n < 0 ? strerrorname_np(errno) : "a message");
    } else if (it.sn_header.sn_type == SCTP_AUTHENTICATION_EVENT) {
        printf("%s: tell = AUTHENTICATION key %u other %u indication %u length %u\n", section, it.sn_authkey_event.auth_keynumber,
               it.sn_authkey_event.auth_altkeynumber, it.sn_authkey_event.auth_indication, it.sn_header.sn_length);
    } else if (it.sn_header.sn_type == SCTP_PEER_ADDR_CHANGE) {
        struct sockaddr_in *in = (void *)&it.sn_paddr_change.spc_aaddr;
        printf("%s: tell = PEER_ADDR_CHANGE %s state %d error %d\n", section, inet_ntoa(in->sin_addr), it.sn_paddr_change.spc_state,
               it.sn_paddr_change.spc_error);
    } else if (it.sn_header.sn_type == SCTP_REMOTE_ERROR) {
        printf("%s: tell = REMOTE_ERROR %u length %u\n", section, ntohs(it.sn_remote_error.sre_error), it.sn_header.sn_length);
    } else {
        printf("%s: tell = %s", section, name_of(&it));
        for (unsigned i = sizeof it.sn_assoc_change; it.sn_header.sn_type == SCTP_ASSOC_CHANGE && i < it.sn_header.sn_length && i < 64; i++)
            printf(" %02x", ((unsigned char *)&it)[i]);
        printf("\n");
    }
}

static void wants(int s, int type)
{
    struct sctp_event event = { .se_type = (uint16_t)type, .se_on = 1 };
    CALL(set(s, SCTP_EVENT, &event, sizeof event));
}

/* Creates two connected one-to-one sockets with one address each. */
static void pair(int number, int out[2], void (*prepare)(int))
{
    struct sockaddr_in own = at("127.0.0.1", number);
    int l = open_one();
    out[0] = open_one();
    prepare(l), prepare(out[0]);
    CALL(bind(l, as(&own), sizeof own));
    CALL(listen(l, 1));
    CALL(connect(out[0], as(&own), sizeof own));
    out[1] = accept(l, NULL, NULL);
    patience(out[0]), patience(out[1]);
    close(l);
}

static void hears_of_keys(int s)
{
    wants(s, SCTP_ASSOC_CHANGE);
    wants(s, SCTP_AUTHENTICATION_EVENT);
}

static void without_keys(void)
{
    section = "no authentication";
    int s[2];
    pair(port + 3, s, hears_of_keys);
    for (int i = 0; i < 2; i++)
        tell(s[i]), tell(s[i]);
    CALL(close(s[0]));
    tell(s[1]);
    CALL(close(s[1]));
}

static void with_keys_at(int s)
{
    authenticating(s);
    hears_of_keys(s);
}

static void with_keys(void)
{
    section = "keys";
    int s[2];
    struct sctp_authkeyid id = { .scact_keynumber = 3 };
    pair(port + 4, s, with_keys_at);
    tell(s[0]), tell(s[1]);
    CALL(send(s[0], "by the first", 12, 0));
    take(s[1], 0);
    CALL(set(s[0], SCTP_AUTH_ACTIVE_KEY, &id, sizeof id));
    CALL(send(s[0], "by three", 8, 0));
    tell(s[1]);
    take(s[1], 0);
    id.scact_keynumber = 4;
    CALL(set(s[0], SCTP_AUTH_ACTIVE_KEY, &id, sizeof id));
    CALL(send(s[0], "by four", 7, 0));
    tell(s[1]);
    take(s[1], 0);
    /* Waits until all data that was authenticated with key 3 is acknowledged. */
    settle(500);
    id.scact_keynumber = 3;
    CALL(set(s[0], SCTP_AUTH_DEACTIVATE_KEY, &id, sizeof id));
    tell(s[0]);
    CALL(set(s[0], SCTP_AUTH_DELETE_KEY, &id, sizeof id));
    CALL(close(s[0]));
    tell(s[1]);
    CALL(close(s[1]));
}

static void hears_of_addresses(int s)
{
    struct sctp_paddrparams often = { .spp_hbinterval = 300, .spp_flags = SPP_HB_ENABLE };
    CALL(set(s, SCTP_PEER_ADDR_PARAMS, &often, sizeof often));
    wants(s, SCTP_PEER_ADDR_CHANGE);
}

static void addresses(void)
{
    section = "addresses";
    struct sockaddr_in own = at("127.0.0.1", port + 5), other = at("127.0.0.2", port + 5);
    int l = open_one(), client = open_one();
    hears_of_addresses(client);
    CALL(bind(l, as(&own), sizeof own));
    CALL(sctp_bindx(l, as(&other), 1, SCTP_BINDX_ADD_ADDR));
    CALL(listen(l, 1));
    CALL(connect(client, as(&own), sizeof own));
    patience(client);
    int accepted = accept(l, NULL, NULL);
    tell(client);
    CALL(close(client));
    CALL(close(accepted));
    CALL(close(l));
}

static void hears_of_the_end(int s)
{
    wants(s, SCTP_ASSOC_CHANGE);
}

static void aborts(void)
{
    section = "abort";
    int s[2];
    struct sctp_sndinfo abort = { .snd_flags = SCTP_ABORT };
    pair(port + 6, s, hears_of_the_end);
    tell(s[0]), tell(s[1]);
    CALL(send_with(s[0], "because", abort, NULL, 0));
    CALL(sctp_sendmsg(s[0], "because", 7, NULL, 0, 0, SCTP_ABORT, 0, 0, 0));
    CALL(close(s[0]));
    CALL(close(s[1]));
    /* Aborts with a reason, which only one-to-many sockets can give. */
    struct sockaddr_in there = at("127.0.0.1", port + 8);
    int l = open_one(), many = open_many();
    hears_of_the_end(l);
    CALL(bind(l, as(&there), sizeof there));
    CALL(listen(l, 1));
    CALL(sctp_sendmsg(many, "begins", 6, as(&there), sizeof there, 0, 0, 0, 0, 0));
    s[1] = accept(l, NULL, NULL);
    patience(s[1]);
    tell(s[1]);
    take(s[1], 0);
    CALL(sctp_sendmsg(many, "because", 7, as(&there), sizeof there, 0, SCTP_ABORT, 0, 0, 0));
    tell(s[1]);
    take(s[1], 0);
    take(s[1], 0);
    CALL(close(s[1]));
    CALL(close(many));
    CALL(close(l));
    /* Ends the association by closing the socket. */
    pair(port + 7, s, hears_of_the_end);
    tell(s[0]), tell(s[1]);
    struct linger now = { .l_onoff = 1 };
    CALL(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &now, sizeof now));
    CALL(close(s[0]));
    tell(s[1]);
    CALL(close(s[1]));
}

/* Tests sockets without an explicit protocol, and unmapped pages. */
static void odds(void)
{
    section = "without a protocol";
    int v4 = socket(AF_INET, SOCK_SEQPACKET, 0), v6 = socket(AF_INET6, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    VALUE(v4 >= 0);
    VALUE(v6 >= 0);
    CALL(get_int(v4, SCTP_NODELAY));
    CALL(get_int(v6, SCTP_NODELAY));
    CALL(bound(v4, "127.0.0.1", port + 9));
    CALL(close(v4));
    CALL(close(v6));
    section = "a page that is not sent";
    int s[2], pipes[2];
    char text[8];
    pair(port + 10, s, hears_of_the_end);
    CALL(close(s[1]));
    tell(s[0]), tell(s[0]);
    CALL(pipe(pipes));
    CALL(write(pipes[1], "stays", 5));
    CALL(splice(pipes[0], NULL, s[0], NULL, 5, SPLICE_F_NONBLOCK));
    CALL(fcntl(pipes[0], F_SETFL, O_NONBLOCK));
    CALL(read(pipes[0], text, sizeof text));
    CALL(close(s[0]));
}

static void hears_nothing(int s)
{
    (void)s;
}

/* Sends as much as both ends can buffer: until no space has become available for `patience`
 * milliseconds. */
static void fill(int s, int patience)
{
    static const char piece[8192];
    struct pollfd room = { s, POLLOUT, 0 };
    do
        while (send(s, piece, sizeof piece, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
            ;
    while (poll(&room, 1, patience) > 0);
}

/* Prints the notifications of the peer when a socket is closed with unread data. */
static void unread(void)
{
    section = "left unread";
    int s[2];
    /* An unread notification should not count as an unread message. */
    pair(port + 11, s, hears_of_the_end);
    tell(s[0]);
    CALL(close(s[1]));
    tell(s[0]);
    CALL(close(s[0]));
    pair(port + 12, s, hears_of_the_end);
    tell(s[0]), tell(s[1]);
    CALL(send(s[0], "unread", 6, 0));
    struct pollfd came = { s[1], POLLIN, 0 };
    CALL(poll(&came, 1, 120000));
    CALL(close(s[1]));
    tell(s[0]);
    CALL(close(s[0]));
    /* Only the first of many messages is read. */
    pair(port + 13, s, hears_of_the_end);
    tell(s[0]), tell(s[1]);
    fill(s[0], 0);
    take(s[1], 0);
    came = (struct pollfd){ s[1], POLLIN, 0 };
    CALL(poll(&came, 1, 120000));
    CALL(close(s[1]));
    tell(s[0]);
    CALL(close(s[0]));
    /* All available data is read while more arrives. It is undefined whether a message is unread
     * when the socket is closed, but the association must end. */
    section = "more to come";
    static char bytes[1 << 18];
    pair(port + 14, s, hears_nothing);
    fill(s[0], 0);
    while (recv(s[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    CALL(close(s[1]));
    long n = recv(s[0], bytes, sizeof bytes, 0);
    VALUE(n == 0 || (n < 0 && errno != EAGAIN));
    CALL(close(s[0]));
    /* The remaining data of a closed socket waits until its peer reads. Meanwhile, the peer may
     * send much more data than can be buffered. */
    section = "sends to a closed socket";
    pair(port + 15, s, hears_nothing);
    fill(s[1], 2000);
    CALL(close(s[1]));
    struct timeval limit = { .tv_sec = 20 };
    CALL(setsockopt(s[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
    long sent = 0;
    while (sent < 4000 && send(s[0], bytes, 8192, MSG_NOSIGNAL) == 8192)
        sent++;
    VALUE(sent);
    while ((n = recv(s[0], bytes, sizeof bytes, 0)) > 0)
        ;
    CALL(n);
    CALL(close(s[0]));
}

int main(int given, char **arguments)
{
    port = given > 1 ? atoi(arguments[1]) : 5201;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    alarm(280);
    one_port();
    one_port_of_all();
    from_the_port();
    without_keys();
    with_keys();
    addresses();
    aborts();
    odds();
    unread();
    fprintf(stderr, "%d calls\n", count);
    return 0;
}
