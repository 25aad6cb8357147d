/* Many one-to-one sockets in one process. `thousand_sockets PORT COUNT` connects COUNT sockets
 * to a server in a child process, sends a message on each, and reads an answer. The backlog must
 * admit all of them, because a server that polls a thousand sockets before each `accept` is
 * slower than its clients. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 4096 };

static int sockets[MOST];
static struct pollfd wanted[MOST + 1];

/* Echoes each message until every association has ended. */
static void serve(int l, int count)
{
    int open = 0, ended = 0;
    wanted[0] = (struct pollfd){ .fd = l, .events = POLLIN };
    while (ended < count) {
        CHECK(poll(wanted, (nfds_t)open + 1, -1) > 0);
        for (int i = open; i > 0; i--) {
            char data[16];
            if (!(wanted[i].revents & (POLLIN | POLLHUP)))
                continue;
            ssize_t n = recv(wanted[i].fd, data, sizeof data, 0);
            CHECK(n >= 0);
            if (n > 0) {
                CHECK(send(wanted[i].fd, data, (size_t)n, 0) == n);
                continue;
            }
            CHECK(close(wanted[i].fd) == 0);
            wanted[i] = wanted[open--];
            ended++;
        }
        if (wanted[0].revents & POLLIN) {
            int s = accept(l, NULL, NULL);
            CHECK(s >= 0);
            wanted[++open] = (struct pollfd){ .fd = s, .events = POLLIN };
        }
    }
}

int main(int given, char **arguments)
{
    int port = given > 1 ? atoi(arguments[1]) : 5001, count = given > 2 ? atoi(arguments[2]) : 1000;
    struct rlimit limit;
    CHECK(count <= MOST && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(bind(l, (struct sockaddr *)&own, sizeof own) == 0 && listen(l, count) == 0);
    pid_t child = fork();
    if (!child) {
        serve(l, count);
        exit(0);
    }
    CHECK(close(l) == 0);
    for (int i = 0; i < count; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
        CHECK(sockets[i] >= 0);
        CHECK(connect(sockets[i], (struct sockaddr *)&own, sizeof own) == 0);
    }
    for (int i = 0; i < count; i++)
        CHECK(send(sockets[i], &i, sizeof i, 0) == sizeof i);
    for (int i = 0; i < count; i++) {
        int answer = -1;
        CHECK(recv(sockets[i], &answer, sizeof answer, 0) == sizeof answer && answer == i);
    }
    for (int i = 0; i < count; i++)
        CHECK(close(sockets[i]) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("%d\n", count);
    return 0;
}
