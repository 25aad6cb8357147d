/* Program that gets many signals without SA_RESTART. The end of an association should be
 * reported as the end of data, not as the loss of the host (ECONNRESET). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

static void nothing(int number)
{
    (void)number;
}

int main(int count, char **words)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(count > 1 ? atoi(words[1]) : 5001)) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(l >= 0 && s >= 0 && bind(l, (struct sockaddr *)&address, sizeof address) == 0 && listen(l, 1) == 0);
    CHECK(connect(s, (struct sockaddr *)&address, sizeof address) == 0);
    int a = accept(l, NULL, NULL);
    char text;
    CHECK(a >= 0 && close(a) == 0 && recv(s, &text, 1, 0) == 0);
    struct sigaction action = { .sa_handler = nothing };
    struct itimerval often = { { 0, 100 }, { 0, 100 } };
    CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
    for (int i = 0; i < 2000; i++) {
        ssize_t length = recv(s, &text, 1, 0);
        CHECK(length == 0 || (length == -1 && errno == EINTR));
    }
    puts("ended");
    return 0;
}
