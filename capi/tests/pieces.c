/* Several threads and processes send messages of several frames on one socket. Each message
 * should arrive complete and not mixed with others. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { SIZE = 300000, EACH = 20, THREADS = 3 };

static int s;

static void *sender(void *number)
{
    char *text = malloc(SIZE);
    CHECK(text);
    memset(text, 'a' + (int)(intptr_t)number, SIZE);
    for (int i = 0; i < EACH; i++)
        CHECK(send(s, text, SIZE, 0) == SIZE);
    free(text);
    return NULL;
}

static void *senders(void *first)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, sender, (void *)((intptr_t)first + i)));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    return NULL;
}

int main(int count, char **words)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(count > 1 ? atoi(words[1]) : 5001)) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(l >= 0 && s >= 0 && bind(l, (struct sockaddr *)&address, sizeof address) == 0 && listen(l, 1) == 0);
    CHECK(connect(s, (struct sockaddr *)&address, sizeof address) == 0);
    int a = accept(l, NULL, NULL);
    CHECK(a >= 0);
    alarm(200);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        senders((void *)THREADS);
        _exit(0);
    }
    pthread_t own;
    CHECK(!pthread_create(&own, NULL, senders, NULL));
    char *text = malloc(SIZE);
    CHECK(text);
    for (int i = 0; i < 2 * THREADS * EACH; i++) {
        size_t length = 0;
        int flags = 0;
        while (!(flags & MSG_EOR)) {
            struct iovec part = { text + length, SIZE - length };
            struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
            ssize_t read = recvmsg(a, &message, 0);
            CHECK(read > 0);
            length += (size_t)read, flags = message.msg_flags;
        }
        CHECK(length == SIZE);
        for (int at = 1; at < SIZE; at++)
            CHECK(text[at] == text[0]);
    }
    int status;
    CHECK(!pthread_join(own, NULL) && waitpid(child, &status, 0) == child && status == 0);
    puts("whole");
    return 0;
}
