/* Pauses after each call that sends, for programs that expect its result at the peer as soon as
 * the call returns. The linker option --wrap replaces the program's calls by these functions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

int __real_close(int descriptor);
int __real_connect(int descriptor, const struct sockaddr *address, socklen_t length);
ssize_t __real_sendmsg(int descriptor, const struct msghdr *message, int flags);

/* Waits for the number of milliseconds in the environment variable PAUSE. */
static void pause_after_call(void)
{
	int error = errno;
	long milliseconds = atol(getenv("PAUSE"));
	struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	while (nanosleep(&left, &left) == -1 && errno == EINTR)
		;
	errno = error;
}

int __wrap_close(int descriptor)
{
	int result = __real_close(descriptor);

	pause_after_call();
	return result;
}

int __wrap_connect(int descriptor, const struct sockaddr *address, socklen_t length)
{
	int result = __real_connect(descriptor, address, length);

	pause_after_call();
	return result;
}

ssize_t __wrap_sendmsg(int descriptor, const struct msghdr *message, int flags)
{
	ssize_t result = __real_sendmsg(descriptor, message, flags);

	pause_after_call();
	return result;
}
