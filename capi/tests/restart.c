/* Restart of a server, which listens at a port again while associations that it accepted there
 * continue. Its options apply to new associations. `restart PORT` runs both ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_in own;

/* Creates a listening socket. The bind is repeated, because the host learns only a moment later
 * that the previous socket was closed. */
static int listening(uint16_t streams)
{
    int on = 1, s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(s >= 0 && setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    struct sctp_initmsg init = { .sinit_num_ostreams = streams };
    CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
    while (bind(s, (struct sockaddr *)&own, sizeof own) != 0) {
        CHECK(errno == EADDRINUSE);
        usleep(10000);
    }
    CHECK(listen(s, 5) == 0);
    return s;
}

static int called(void)
{
    int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(c >= 0);
    if (connect(c, (struct sockaddr *)&own, sizeof own) == 0)
        return c;
    CHECK(errno == ECONNREFUSED && close(c) == 0);
    return -1;
}

static void passes(int from, int to, const char *text)
{
    char data[16];
    ssize_t length = (ssize_t)strlen(text);
    CHECK(send(from, text, (size_t)length, 0) == length);
    CHECK(recv(to, data, sizeof data, 0) == length && !memcmp(data, text, (size_t)length));
}

int main(int count, char **given)
{
    own = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)(count > 1 ? atoi(given[1]) : 5001)) };
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    int ends[3][2];
    for (int turn = 0; turn < 3; turn++) {
        int s = listening((uint16_t)(turn + 3));
        ends[turn][0] = called();
        CHECK(ends[turn][0] >= 0);
        ends[turn][1] = accept(s, NULL, NULL);
        CHECK(ends[turn][1] >= 0 && close(s) == 0);
        struct sctp_status status;
        socklen_t length = sizeof status;
        CHECK(getsockopt(ends[turn][1], IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0);
        CHECK(status.sstat_outstrms == turn + 3);
        for (int old = 0; old <= turn; old++) {
            passes(ends[old][0], ends[old][1], "over");
            passes(ends[old][1], ends[old][0], "back");
        }
    }

    /* Without a listening socket, connections should soon be refused. */
    int c;
    while ((c = called()) >= 0) {
        CHECK(close(c) == 0);
        usleep(10000);
    }

    /* Listens again while all associations are being closed. */
    for (int turn = 0; turn < 3; turn++)
        CHECK(close(ends[turn][0]) == 0 && close(ends[turn][1]) == 0);
    int s = listening(10);
    c = called();
    CHECK(c >= 0);
    int a = accept(s, NULL, NULL);
    CHECK(a >= 0);
    passes(c, a, "restarted");
    puts("restarted");
    return 0;
}
