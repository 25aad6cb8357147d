/* The SCTP of Linux as a peer. As process 1 of a User Mode Linux this program first sets the guest up and finally switches it off. */
#include "../common/workload.h"
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arguments arguments;

static void option(int s, int level, int name, const void *value, socklen_t length)
{
    if (setsockopt(s, level, name, value, length))
        fail("option %d: %s", name, strerror(errno));
}

/* Offers the extension of the case, which guest_extend has allowed. */
static void extend(int s)
{
    struct sctp_assoc_value value = { .assoc_value = 1 };
    int level = 1;
    if (speaks(&arguments, "interleaving")) {
        option(s, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level);
        option(s, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &value, sizeof value);
    }
    if (speaks(&arguments, "resets")) {
        struct sctp_event event = { .se_type = SCTP_STREAM_RESET_EVENT, .se_on = 1 };
        value.assoc_value = SCTP_ENABLE_RESET_STREAM_REQ;
        option(s, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &value, sizeof value);
        option(s, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
    }
    if (speaks(&arguments, "authentication")) {
        struct sctp_authchunk data = { .sauth_chunk = DATA };
        option(s, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &data, sizeof data);
    }
}

static void configure(int s)
{
    int on = 1, room = 2 << 20;
    struct sctp_initmsg init = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS };
    struct sctp_event_subscribe events = { .sctp_association_event = 1, .sctp_partial_delivery_event = speaks(&arguments, "partial"),
                                          .sctp_address_event = speaks(&arguments, "addresses") };
    option(s, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init);
    option(s, IPPROTO_SCTP, SCTP_EVENTS, &events, sizeof events);
    option(s, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
    option(s, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
    extend(s);
    option(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    option(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
}

/* Packed array of addresses, as SCTP's socket options require. */
struct addresses {
    char bytes[4 * sizeof(struct sockaddr_in6)];
    socklen_t length;
    int family;
};

/* Reads addresses of one family, separated by commas. */
static struct addresses addresses(const char *text)
{
    struct addresses all = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
    uint16_t port = htons((uint16_t)arguments.port);
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = port };
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = port };
        bool is_v6 = all.family == AF_INET6;
        if (inet_pton(all.family, one, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
            fail("not an IP address, or of another version than the first: %s", one);
        socklen_t length = is_v6 ? sizeof v6 : sizeof v4;
        if (all.length + length > sizeof all.bytes)
            fail("too many addresses: %s", text);
        memcpy(all.bytes + all.length, is_v6 ? (void *)&v6 : (void *)&v4, length);
        all.length += length;
    }
    return all;
}

static int open_association(void)
{
    struct addresses local = addresses(arguments.local), remote = addresses(arguments.remote);
    int s = socket(local.family, SOCK_STREAM, IPPROTO_SCTP);
    if (s < 0)
        fail("socket: %s", strerror(errno));
    configure(s);
    option(s, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, local.bytes, local.length);
    if (arguments.connects) {
        say("ready");
        if (setsockopt(s, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, remote.bytes, remote.length) < 0)
            fail("connect: %s", strerror(errno));
        return s;
    }
    if (listen(s, 1))
        fail("listen: %s", strerror(errno));
    say("ready");
    int accepted = accept(s, NULL, NULL);
    if (accepted < 0)
        fail("accept: %s", strerror(errno));
    close(s);
    return accepted;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool reset_done;

/* Resets all outgoing streams, and waits until this is done. Linux refuses it while data is queued or in flight. */
static void reset_all(int s)
{
    struct sctp_reset_streams all = { .srs_flags = SCTP_STREAM_RESET_OUTGOING };
    while (setsockopt(s, IPPROTO_SCTP, SCTP_RESET_STREAMS, &all, sizeof all)) {
        if (errno != EAGAIN && errno != EINPROGRESS)
            fail("reset: %s", strerror(errno));
        usleep(1000);
    }
    pthread_mutex_lock(&lock);
    while (!reset_done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Adds the new address, requests that the peer sends to it, and removes the first address. */
static void move_address(int s)
{
    struct addresses from = addresses(arguments.local), to = addresses(arguments.moves_to);
    struct sctp_setpeerprim primary = { 0 };
    memcpy(&primary.sspp_addr, to.bytes, to.length);
    option(s, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, to.bytes, to.length);
    option(s, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &primary, sizeof primary);
    option(s, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_REM, from.bytes, from.length);
}

/* Prints changes of the peer's addresses. */
static void take_address_change(const struct sctp_paddr_change *change)
{
    const struct sockaddr_in6 *v6 = (const void *)&change->spc_aaddr;
    const struct sockaddr_in *v4 = (const void *)&change->spc_aaddr;
    char text[INET6_ADDRSTRLEN] = "";
    if (change->spc_aaddr.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    else
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    if (change->spc_state == SCTP_ADDR_ADDED)
        say("peer address added: %s", text);
    else if (change->spc_state == SCTP_ADDR_REMOVED)
        say("peer address removed: %s", text);
}

/* Whether notifications must be read: the sender waits for the notification of its stream reset. */
static bool awaits_reset(void)
{
    pthread_mutex_lock(&lock);
    bool awaits = speaks(&arguments, "resets") && !reset_done;
    pthread_mutex_unlock(&lock);
    return awaits;
}

/* Notifications of the extension of the case. */
static void take_notification(const void *data, struct pieces *pieces)
{
    const struct sctp_pdapi_event *aborted = data;
    const struct sctp_stream_reset_event *reset = data;
    if (aborted->pdapi_type == SCTP_PEER_ADDR_CHANGE)
        take_address_change(data);
    if (aborted->pdapi_type == SCTP_PARTIAL_DELIVERY_EVENT && aborted->pdapi_stream < STREAMS)
        pieces->length[aborted->pdapi_stream] = 0;
    if (reset->strreset_type != SCTP_STREAM_RESET_EVENT || !(reset->strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN))
        return;
    if (reset->strreset_flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED))
        fail("the reset was refused: flags %u", reset->strreset_flags);
    pthread_mutex_lock(&lock);
    reset_done = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *send_all(void *association)
{
    static uint8_t data[LARGEST];
    uint32_t ordinals[STREAMS] = { 0 };
    for (int i = 0; i < arguments.messages; i++) {
        struct message m = plan(arguments.seed, (uint32_t)i, ordinals);
        char control[CMSG_SPACE(sizeof(struct sctp_sndinfo)) + CMSG_SPACE(sizeof(struct sctp_prinfo))] = { 0 };
        bool gives_up = speaks(&arguments, "partial") && expendable(m.stream);
        struct iovec part = { data, m.length };
        struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        *c = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO, .cmsg_len = CMSG_LEN(sizeof(struct sctp_sndinfo)) };
        struct sctp_sndinfo info = { .snd_sid = m.stream, .snd_ppid = htonl(m.index + PPID), .snd_flags = m.unordered ? SCTP_UNORDERED : 0 };
        memcpy(CMSG_DATA(c), &info, sizeof info);
        header.msg_controllen = CMSG_SPACE(sizeof info);
        if (gives_up) {
            struct sctp_prinfo terms = { .pr_policy = SCTP_PR_SCTP_RTX };
            header.msg_controllen = sizeof control;
            c = CMSG_NXTHDR(&header, c);
            *c = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_PRINFO, .cmsg_len = CMSG_LEN(sizeof terms) };
            memcpy(CMSG_DATA(c), &terms, sizeof terms);
        }
        if (speaks(&arguments, "resets") && i == arguments.messages / 2)
            reset_all(*(int *)association);
        if (*arguments.moves_to && i == arguments.messages / 2)
            move_address(*(int *)association);
        compose(m, data);
        ssize_t n = sendmsg(*(int *)association, &header, 0);
        if (n != (ssize_t)m.length)
            fail("send of message %d: %s", i, n < 0 ? strerror(errno) : "in part");
    }
    say("sent messages=%d", arguments.messages);
    return NULL;
}

/* One piece of a message or one notification. False when the association is over. */
static bool receive_one(int s, struct checker *checker)
{
    static uint8_t data[LARGEST];
    static struct pieces pieces;
    char control[512];
    struct iovec part = { data, sizeof data };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    ssize_t n = recvmsg(s, &header, 0);
    if (n < 0)
        fail("receive after %u messages: %s", checker->count, strerror(errno));
    if (n == 0)
        return false;
    if (header.msg_flags & MSG_NOTIFICATION) {
        struct sctp_assoc_change *change = (struct sctp_assoc_change *)data;
        take_notification(data, &pieces);
        if (change->sac_type != SCTP_ASSOC_CHANGE || change->sac_state == SCTP_COMM_UP)
            return true;
        if (change->sac_state != SCTP_SHUTDOWN_COMP)
            fail("association change %u, error %u, after %u messages", change->sac_state, change->sac_error, checker->count);
        return false;
    }
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    if (!c || c->cmsg_type != SCTP_RCVINFO)
        fail("a message without its stream");
    struct sctp_rcvinfo info;
    memcpy(&info, CMSG_DATA(c), sizeof info);
    gather(&pieces, checker, info.rcv_sid, ntohl(info.rcv_ppid), info.rcv_flags & SCTP_UNORDERED, data, (size_t)n, header.msg_flags & MSG_EOR);
    return true;
}

static void run(void)
{
    int s = open_association();
    say("established");
    struct checker checker = checker_of(&arguments);
    pthread_t sender;
    pthread_create(&sender, NULL, send_all, &s);
    bool open = true;
    while (open && (!arguments.connects || !complete(&checker) || awaits_reset()))
        open = receive_one(s, &checker);
    if (!complete(&checker))
        fail("over after %u messages of %u", checker.count, checker.expected);
    pthread_join(sender, NULL);
    if (open && shutdown(s, SHUT_WR))
        fail("shutdown: %s", strerror(errno));
    while (open)
        open = receive_one(s, &checker);
    conclude(&checker);
    say("closed");
    for (;;) /* until it is ended: the kernel may have to answer for what is closed */
        pause();
}

/* Runs a script of the host with the guest's SCTP, instead of the workload. The script sees the files of the host read-only, except
 * that /run belongs to the guest. */
static void run_script(const char *path)
{
    char *const command[] = { "/bin/bash", (char *)path, NULL };
    char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/run", "TMPDIR=/run", "LC_ALL=C", NULL };
    int status = 0;
    if (mount("run", "/run", "tmpfs", 0, NULL))
        fail("mounting /run: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        execve(command[0], command, environment);
        fail("%s: %s", command[0], strerror(errno));
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        fail("%s: %s", path, strerror(errno));
    say("ended %d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int count, char **given)
{
    const char *modules = "";
    const char *impaired = "0", *script = NULL;
    bool guest = getpid() == 1;
    if (guest)
        atexit(guest_end);
    arguments = defaults;
    for (int i = 1; i < count; i++)
        if (guest && !strncmp(given[i], "console=", 8)) /* User Mode Linux adds it at the end */
            continue;
        else if (!argument(given[i], "impair", &impaired) && !argument(given[i], "modules", &modules) &&
                 !argument(given[i], "script", &script) && !take_argument(&arguments, given[i]))
            fail("unknown argument: %s", given[i]);
    bool encap = !strcmp(arguments.transport, "encap");
    if (!encap && strcmp(arguments.transport, "raw"))
        fail("transport %s: this peer has encap and raw", arguments.transport);
    if (guest)
        guest_setup(modules, arguments.local, arguments.moves_to, encap ? arguments.local_udp : 0, arguments.remote_udp,
                    arguments.rto_min, arguments.max_retrans, atoi(impaired));
    if (guest)
        guest_extend(arguments.speaks);
    if (script)
        run_script(script);
    else
        run();
    return 0;
}
