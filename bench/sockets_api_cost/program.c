/* `sockets_api_cost send|receive ADDRESS PORT COUNT SIZE`: one association by the sockets API (RFC 6458), COUNT messages of SIZE bytes one way. The peer is
 * a process of `sockets_api_cost` (bench/src/bin/sockets_api_cost.rs), which sends or receives the same number. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGEST = 1 << 20 };

static char bytes[LARGEST];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

int main(int count, char **given)
{
    if (count != 6) {
        fprintf(stderr, "sockets_api_cost send|receive ADDRESS PORT COUNT SIZE\n");
        return 2;
    }
    int sends = !strcmp(given[1], "send");
    long messages = atol(given[4]), size = atol(given[5]);
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(given[3])) };
    if (size < 1 || size > LARGEST || inet_pton(AF_INET, given[2], &peer.sin_addr) != 1) {
        fprintf(stderr, "found %s and %s; ADDRESS is one of IPv4, SIZE 1 to %d\n", given[2], given[5], LARGEST);
        return 2;
    }
    int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (s < 0)
        fail("socket");
    if (connect(s, (struct sockaddr *)&peer, sizeof peer))
        fail("connect");
    memset(bytes, 'x', (size_t)size);
    for (long done = 0; done < messages * size;) {
        ssize_t now = sends ? send(s, bytes, (size_t)size, 0) : recv(s, bytes, (size_t)size, 0);
        if (now <= 0)
            fail(given[1]);
        done += now;
    }
    close(s);
    return 0;
}
