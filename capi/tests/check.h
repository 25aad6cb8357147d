/* What a test does where something is not as it should be: says which line, and ends. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                            \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

#endif
