/* Preloaded into User Mode Linux, so that it can use the extended registers of its processes on processors that have more
 * of them than it supports.
 *
 * User Mode Linux reads and writes these registers (ptrace, NT_X86_XSTATE) as one block of the size that AVX-512 needs.
 * A processor with AMX has a larger block, and newer kernels refuse to write a part of it, so that the first process of
 * the guest dies before its first instruction. This library reads the whole block, replaces its beginning by
 * the part of User Mode Linux, and writes the whole block. If both blocks have the same size, nothing changes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

long ptrace(enum __ptrace_request request, ...)
{
    static long (*next)(enum __ptrace_request, ...);
    static char block[65536];
    va_list list;
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    if (!next)
        next = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
        const struct iovec *known = data;
        struct iovec whole = { block, sizeof block };
        if (next(PTRACE_GETREGSET, pid, address, &whole))
            return -1;
        memcpy(block, known->iov_base, known->iov_len < whole.iov_len ? known->iov_len : whole.iov_len);
        return next(request, pid, address, &whole);
    }
    return next(request, pid, address, data);
}
