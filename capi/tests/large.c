/* Sends messages of several frames on a non-blocking socket to a peer that does not read. Each
 * message should be sent completely or refused with EAGAIN (POSIX, send); none should be
 * truncated. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { SIZE = 150000, MOST = 10000 };

static char text[SIZE + 1];

int main(int count, char **words)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(count > 1 ? atoi(words[1]) : 5001)) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(l >= 0 && s >= 0 && bind(l, (struct sockaddr *)&address, sizeof address) == 0 && listen(l, 1) == 0);
    CHECK(connect(s, (struct sockaddr *)&address, sizeof address) == 0);
    int a = accept(l, NULL, NULL);
    CHECK(a >= 0 && fcntl(s, F_SETFL, O_NONBLOCK) == 0);
    /* If a send blocked, the alarm would end the test, because the peer does not read. */
    alarm(60);
    uint32_t sent = 0;
    for (int refused = 0; refused < 3; ) {
        memcpy(text, &sent, sizeof sent);
        ssize_t length = send(s, text, SIZE, 0);
        CHECK(length == SIZE || (length == -1 && errno == EAGAIN));
        if (length == SIZE) {
            CHECK(sent++ < MOST);
            refused = 0;
        } else {
            /* The host may have read from the descriptor in the meantime. */
            struct pollfd watched = { .fd = s, .events = POLLOUT };
            if (poll(&watched, 1, 1000) == 0)
                refused++;
        }
    }
    CHECK(sent > 1);
    for (uint32_t number = 0; number < sent; number++) {
        uint32_t found;
        size_t length = 0;
        while (length < SIZE) {
            ssize_t read = recv(a, text + length, sizeof text - length, 0);
            CHECK(read > 0);
            length += (size_t)read;
        }
        memcpy(&found, text, sizeof found);
        CHECK(length == SIZE && found == number);
    }
    puts("as it should be");
    return 0;
}
