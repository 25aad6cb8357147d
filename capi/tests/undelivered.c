/* Messages that an association does not deliver should be returned to the sender, each with its
 * own data, before the end of the association is reported (RFC 6458 §6.1.4, §6.1.11). */
#include "calls.h"
#include "check.h"

/* Length of a message, bytes; longer than a packet. */
#define LENGTH 40000

static char text[LENGTH], got[2 * LENGTH];

static const char *text_of(int number)
{
    for (int i = 0; i < LENGTH; i++)
        text[i] = (char)(number + i * 11);
    return text;
}

/* Extracts message number, flags and cause from a notification; returns whether it reports a
 * send failure. */
static int failed(const void *data, ssize_t length, uint16_t *flags, uint32_t *cause, int *number)
{
    const union sctp_notification *it = data;
    const struct sctp_send_failed *old = data;
    const struct sctp_send_failed_event *new = data;
    const char *message = (const char *)data + sizeof *old;
    int stream, ppid;
    *flags = it->sn_header.sn_flags;
    if (it->sn_header.sn_type == SCTP_SEND_FAILED) {
        *cause = old->ssf_error, *number = (int)old->ssf_info.sinfo_context;
        stream = old->ssf_info.sinfo_stream, ppid = (int)ntohl(old->ssf_info.sinfo_ppid);
    } else if (it->sn_header.sn_type == SCTP_SEND_FAILED_EVENT) {
        message = (const char *)data + sizeof *new;
        *cause = new->ssf_error, *number = (int)new->ssfe_info.snd_context;
        stream = new->ssfe_info.snd_sid, ppid = (int)ntohl(new->ssfe_info.snd_ppid);
    } else {
        return 0;
    }
    CHECK(it->sn_header.sn_length == (uint32_t)length);
    CHECK((const char *)data + length - message == LENGTH && !memcmp(message, text_of(*number), LENGTH));
    CHECK(stream == *number % 3 && ppid == 7 + *number);
    return 1;
}

/* Aborts the association at this end or at the peer while messages are queued. */
static void aborted(int own, int type)
{
    int l = open_many(), c = own ? open_many() : open_one();
    struct sockaddr_in there = at("127.0.0.1", ++port);
    CHECK(!bind(l, as(&there), sizeof there) && !listen(l, 5));
    CHECK(!connect(c, as(&there), sizeof there));
    sctp_assoc_t id = 0;
    if (own) {
        struct {
            unsigned count;
            sctp_assoc_t id;
        } ids;
        CHECK(!get(c, SCTP_GET_ASSOC_ID_LIST, &ids, sizeof ids) && ids.count == 1);
        id = ids.id;
    }
    uint16_t kinds[] = { SCTP_ASSOC_CHANGE, (uint16_t)type };
    for (int i = 0; i < 2; i++) {
        struct sctp_event wanted = { own ? SCTP_ALL_ASSOC : 0, kinds[i], 1 };
        CHECK(!set(c, SCTP_EVENT, &wanted, sizeof wanted));
    }
    int sent = 0;
    for (int tries = 0; tries < 200;) {
        struct sctp_sndrcvinfo info = { .sinfo_stream = (uint16_t)(sent % 3), .sinfo_ppid = htonl((uint32_t)(7 + sent)),
                                        .sinfo_context = (uint32_t)sent, .sinfo_assoc_id = id };
        if (sctp_send(c, text_of(sent), LENGTH, &info, MSG_DONTWAIT | MSG_NOSIGNAL) == LENGTH) {
            sent++, tries = 0;
        } else {
            CHECK(errno == EAGAIN);
            settle(1), tries++;
        }
    }
    CHECK(sent > 10);
    struct sctp_sndrcvinfo end = { .sinfo_flags = SCTP_ABORT, .sinfo_assoc_id = id };
    if (own)
        CHECK(sctp_send(c, NULL, 0, &end, MSG_NOSIGNAL) == 0);
    else {
        struct {
            unsigned count;
            sctp_assoc_t id;
        } ids;
        CHECK(!get(l, SCTP_GET_ASSOC_ID_LIST, &ids, sizeof ids));
        end.sinfo_assoc_id = ids.id;
        CHECK(sctp_send(l, NULL, 0, &end, MSG_NOSIGNAL) == 0);
    }
    patience(c);
    int count_of[2] = { 0 }, last = -1;
    for (;;) {
        int flags = 0, number;
        uint16_t said;
        uint32_t cause;
        ssize_t length = sctp_recvmsg(c, got, sizeof got, NULL, NULL, NULL, &flags);
        CHECK(length > 0 && flags & MSG_NOTIFICATION && flags & MSG_EOR);
        if (!failed(got, length, &said, &cause, &number)) {
            const struct sctp_assoc_change *change = (const void *)got;
            CHECK(change->sac_type == SCTP_ASSOC_CHANGE);
            if (change->sac_state == SCTP_COMM_UP)
                continue;
            CHECK(change->sac_state == SCTP_COMM_LOST);
            break;
        }
        /* The cause should be User-Initiated Abort, as in the packet. */
        CHECK(cause == htons(12));
        CHECK(said == SCTP_DATA_SENT || said == SCTP_DATA_UNSENT);
        CHECK(number > last || last == -1);
        last = number;
        count_of[said == SCTP_DATA_SENT]++;
    }
    /* The messages that are not returned were acknowledged by the peer. The last message
     * returned should be the last one sent. */
    CHECK(last == sent - 1 && count_of[0] > 0 && count_of[0] + count_of[1] <= sent);
    close(c), close(l);
}

int main(int count_of, char **arguments)
{
    port = count_of > 1 ? atoi(arguments[1]) : 5700;
    for (int own = 0; own < 2; own++) {
        aborted(own, SCTP_SEND_FAILED);
        aborted(own, SCTP_SEND_FAILED_EVENT);
    }
    printf("as it should be\n");
    return 0;
}
