// A library to preload into a User Mode Linux kernel, which makes it faster, mends two
// defects, and has what this machine's C library lacks.
//
// Registers. Kernels before 6.13 hand the processor's registers to ptrace in a buffer of a fixed
// size. Where the machine's processor has larger ones (AMX), its kernel wants a buffer of
// exactly that size, and the guest dies at its first process. So what is written is what
// was there, with the guest's buffer laid over its beginning.
//
// For each system call of a process the guest's kernel reads these registers, and writes
// them back before the process goes on. Most often they are as they were read: then
// nothing need be written.
//
// The timer. A kernel forgets an alarm that comes while its handler of the one before is
// held up, and waits for it for ever: it has no other clock. So alarms come again until the
// kernel sets its timer again. One that comes in vain does no harm.
//
// Functions. A kernel of a later release of Debian calls two by names that glibc has since 2.38.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

typedef long (*ptrace_call)(enum __ptrace_request, ...);
typedef int (*settime_call)(timer_t, int, const struct itimerspec *, struct itimerspec *);

static ptrace_call next;

// What was read of processes that haven't run since, each at an index that its pid gives. Only
// one thread of a guest's kernel traces.
static struct known {
	pid_t pid;
	size_t size;
	char registers[8 * 1024];
} all[256];

static long get(struct known *of, pid_t pid, void *type, struct iovec *into)
{
	long result = next(PTRACE_GETREGSET, pid, type, into);
	if (result == 0 && into->iov_len <= sizeof of->registers) {
		of->pid = pid;
		of->size = into->iov_len;
		memcpy(of->registers, into->iov_base, of->size);
	}
	return result;
}

static long set(struct known *of, pid_t pid, void *type, struct iovec *from)
{
	static char whole[64 * 1024];

	if (of->pid == pid && of->size == from->iov_len && memcmp(of->registers, from->iov_base, of->size) == 0)
		return 0;
	of->pid = 0;
	struct iovec full = { whole, sizeof whole };
	if (next(PTRACE_GETREGSET, pid, type, &full) != 0)
		return -1;
	if (full.iov_len <= from->iov_len)
		return next(PTRACE_SETREGSET, pid, type, from);
	memcpy(whole, from->iov_base, from->iov_len);
	return next(PTRACE_SETREGSET, pid, type, &full);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *addr = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);
	if (!next)
		next = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");

	struct known *of = &all[(unsigned)pid % (sizeof all / sizeof *all)];
	switch (request) {
	case PTRACE_GETREGSET:
		if ((long)addr == NT_X86_XSTATE)
			return get(of, pid, addr, data);
		break;
	case PTRACE_SETREGSET:
		if ((long)addr == NT_X86_XSTATE)
			return set(of, pid, addr, data);
		break;
	case PTRACE_GETREGS:
	case PTRACE_SETREGS:
		break;
	default:
		// It may run, or be another process of that pid.
		of->pid = 0;
	}
	return next(request, pid, addr, data);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *given, struct itimerspec *old)
{
	static settime_call next_settime;

	if (!next_settime)
		next_settime = (settime_call)dlsym(RTLD_NEXT, "timer_settime");
	struct itimerspec again = *given;
	if (again.it_interval.tv_sec == 0 && again.it_interval.tv_nsec == 0)
		again.it_interval.tv_nsec = 10 * 1000 * 1000;
	return next_settime(timer, flags, &again, old);
}

#if !__GLIBC_PREREQ(2, 38)
long __isoc23_strtol(const char *text, char **end, int base)
{
	return strtol(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
	return strtoul(text, end, base);
}
#endif
