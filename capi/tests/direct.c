/* Makes system calls that bypass libc's functions. `direct function PORT` uses syscall(), which
 * the library intercepts. `direct itself` uses the machine instruction, which no library can
 * intercept. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#if defined(__x86_64__)
static long kernel(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long kernel(long number, long a, long b, long c)
{
    register long n __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(n), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#endif

static void by_the_function(int port)
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    char text[8];
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    long l = syscall(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP), c = syscall(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(l >= 0 && c >= 0);
    CHECK(syscall(SYS_bind, l, &own, sizeof own) == 0);
    CHECK(syscall(SYS_listen, l, 1) == 0);
    CHECK(syscall(SYS_connect, c, &own, sizeof own) == 0);
    long s = syscall(SYS_accept4, l, NULL, NULL, SOCK_CLOEXEC);
    CHECK(s >= 0);
    CHECK(syscall(SYS_sendto, c, "first", 5, 0, NULL, 0) == 5);
    CHECK(syscall(SYS_write, c, "second", 6) == 6);
    CHECK(syscall(SYS_recvfrom, s, text, sizeof text, 0, NULL, NULL) == 5 && !memcmp(text, "first", 5));
    CHECK(syscall(SYS_read, s, text, sizeof text) == 6 && !memcmp(text, "second", 6));
    CHECK(syscall(SYS_close, s) == 0 && syscall(SYS_close, c) == 0 && syscall(SYS_close, l) == 0);
    CHECK(syscall(SYS_getpid) == getpid());
}

int main(int count, char **given)
{
    if (count > 2) {
        by_the_function(atoi(given[2]));
        puts("by the function");
    } else {
        printf("itself: %ld\n", kernel(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP));
        CHECK(kernel(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_TCP) >= 0);
    }
    return 0;
}
