#!/usr/bin/env bash
# getaddrinfo of musl 1.2.3 (Debian 12, 1.2.3-1) succeeds and returns addresses for TCP and UDP if
# protocol SCTP is requested without a socket type.
#
# With the type SOCK_STREAM or SOCK_SEQPACKET it fails ("Unrecognized service"), even if the port
# is a number, and getprotobyname("sctp") finds nothing. A program that sets only ai_protocol, and
# opens a socket for the first result, therefore gets TCP without an error. glibc 2.36 returns
# SOCK_STREAM of SCTP.
#
# A reader would expect an error in all of these cases, or in none.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 755 "$work"
timeout 120 apt-get download -qq musl=1.2.3-1 musl-dev=1.2.3-1 2> /dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat > case.c <<'C'
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

static void ask(const char *name, int type)
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = type, .ai_protocol = 132 }, *found;
    int error = getaddrinfo("127.0.0.1", "3868", &hints, &found);
    printf("%s:", name);
    if (error)
        printf(" %s", gai_strerror(error));
    else
        for (; found; found = found->ai_next)
            printf(" protocol %d", found->ai_protocol);
    puts("");
}

int main(void)
{
    ask("no type", 0);
    ask("SOCK_STREAM", SOCK_STREAM);
    ask("SOCK_SEQPACKET", SOCK_SEQPACKET);
    printf("getprotobyname: %s\n", getprotobyname("sctp") ? "found" : "nothing");
    return 0;
}
C
library=$(dirname "$(find root -name crt1.o)")
include=$(dirname "$(find root -name netdb.h)")
gcc -nostdinc -isystem "$include" -static -nostdlib -o case "$library/crt1.o" "$library/crti.o" case.c \
  "$library/libc.a" -lgcc "$library/crtn.o"
seen=$(timeout 30 ./case)
echo "$seen"
expected='no type: protocol 6 protocol 17
SOCK_STREAM: Unrecognized service
SOCK_SEQPACKET: Unrecognized service
getprotobyname: nothing'
[[ $seen == "$expected" ]] || { echo "musl-getaddrinfo: the output is another one now" >&2; exit 1; }
