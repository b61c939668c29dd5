// A library to preload into a User Mode Linux kernel. Kernels before 6.13 hand the
// processor's registers to ptrace in a buffer of a fixed size. Where the machine's
// processor has larger ones (AMX), its kernel wants a buffer of exactly that size,
// and the guest dies at its first process. So what is written is what was there,
// with the guest's buffer laid over its beginning.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef long (*ptrace_call)(enum __ptrace_request, ...);

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_call next;
	static char whole[64 * 1024];
	va_list arguments;

	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *addr = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);
	if (!next)
		next = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");

	long result = next(request, pid, addr, data);
	if (result == 0 || errno != EFAULT || request != PTRACE_SETREGSET || (long)addr != NT_X86_XSTATE)
		return result;
	struct iovec *given = data, full = { whole, sizeof whole };
	if (next(PTRACE_GETREGSET, pid, addr, &full) != 0)
		return -1;
	memcpy(whole, given->iov_base, given->iov_len < full.iov_len ? given->iov_len : full.iov_len);
	return next(PTRACE_SETREGSET, pid, addr, &full);
}
