/*
 * What the guest needs from the kernel, without a C library: the system calls
 * by number and the few constants they take. Only headers that every compiler
 * brings along are included, so that gcc alone can build the guest.
 */
#ifndef VMOP_SYS_H
#define VMOP_SYS_H

#include <stddef.h>
#include <stdint.h>

#ifndef __x86_64__
#error "the tiny guest is written for x86-64"
#endif

enum {
	SYS_read = 0, SYS_write = 1, SYS_open = 2, SYS_close = 3, SYS_mmap = 9, SYS_munmap = 11,
	SYS_ioctl = 16, SYS_pread64 = 17, SYS_pwrite64 = 18, SYS_getpid = 39, SYS_socket = 41,
	SYS_bind = 49, SYS_fork = 57, SYS_execve = 59, SYS_exit = 60, SYS_wait4 = 61, SYS_kill = 62, SYS_uname = 63, SYS_fsync = 74, SYS_mkdir = 83,
	SYS_syslog = 103, SYS_sync = 162, SYS_mount = 165, SYS_umount2 = 166, SYS_reboot = 169,
	SYS_getdents64 = 217, SYS_clock_gettime = 228, SYS_epoll_wait = 232, SYS_epoll_ctl = 233,
	SYS_epoll_create1 = 291, SYS_finit_module = 313,
};

enum {
	EPERM = 1, ENOENT = 2, EINTR = 4, EIO = 5, EAGAIN = 11, EBUSY = 16, EEXIST = 17, ENODEV = 19,
	ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENOSPC = 28, EROFS = 30, ENOMEDIUM = 123,
};

enum {
	O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0100, O_NOCTTY = 0400, O_TRUNC = 01000, O_NONBLOCK = 04000,
	O_DIRECTORY = 0200000, O_CLOEXEC = 02000000,
};

static inline long syscall6(long n, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define P(x) ((long)(x))

static inline long sys_read(int fd, void *p, size_t n) { return syscall6(SYS_read, fd, P(p), P(n), 0, 0, 0); }
static inline long sys_write(int fd, const void *p, size_t n) { return syscall6(SYS_write, fd, P(p), P(n), 0, 0, 0); }
static inline long sys_open(const char *path, int flags) { return syscall6(SYS_open, P(path), flags | O_CLOEXEC, 0600, 0, 0, 0); }
static inline long sys_close(int fd) { return syscall6(SYS_close, fd, 0, 0, 0, 0, 0); }
static inline long sys_ioctl(int fd, long req, long arg) { return syscall6(SYS_ioctl, fd, req, arg, 0, 0, 0); }
static inline long sys_pread(int fd, void *p, size_t n, long off) { return syscall6(SYS_pread64, fd, P(p), P(n), off, 0, 0); }
static inline long sys_pwrite(int fd, const void *p, size_t n, long off) { return syscall6(SYS_pwrite64, fd, P(p), P(n), off, 0, 0); }
static inline long sys_fsync(int fd) { return syscall6(SYS_fsync, fd, 0, 0, 0, 0, 0); }
static inline long sys_sync(void) { return syscall6(SYS_sync, 0, 0, 0, 0, 0, 0); }
static inline long sys_mkdir(const char *path) { return syscall6(SYS_mkdir, P(path), 0755, 0, 0, 0, 0); }
static inline long sys_mount_with(const char *dev, const char *dir, const char *type, long flags, const char *options)
{
	return syscall6(SYS_mount, P(dev), P(dir), P(type), flags, P(options), 0);
}
static inline long sys_mount(const char *dev, const char *dir, const char *type, long flags)
{
	return sys_mount_with(dev, dir, type, flags, 0);
}
static inline long sys_umount(const char *dir) { return syscall6(SYS_umount2, P(dir), 0, 0, 0, 0, 0); }
static inline long sys_syslog(int type, char *p, int n) { return syscall6(SYS_syslog, type, P(p), n, 0, 0, 0); }
static inline long sys_getdents(int fd, void *p, size_t n) { return syscall6(SYS_getdents64, fd, P(p), P(n), 0, 0, 0); }
static inline long sys_finit_module(int fd, const char *params) { return syscall6(SYS_finit_module, fd, P(params), 0, 0, 0, 0); }
static inline long sys_socket(int family, int type, int proto) { return syscall6(SYS_socket, family, type, proto, 0, 0, 0); }
static inline long sys_bind(int fd, const void *addr, int n) { return syscall6(SYS_bind, fd, P(addr), n, 0, 0, 0); }
static inline long sys_uname(void *p) { return syscall6(SYS_uname, P(p), 0, 0, 0, 0, 0); }
static inline void *sys_mmap(size_t n)
{
	/* PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS */
	return (void *)syscall6(SYS_mmap, 0, P(n), 3, 0x22, -1, 0);
}
static inline long sys_munmap(void *p, size_t n) { return syscall6(SYS_munmap, P(p), P(n), 0, 0, 0, 0); }
static inline long sys_fork(void) { return syscall6(SYS_fork, 0, 0, 0, 0, 0, 0); }
static inline long sys_execve(const char *path, char **argv, char **env) { return syscall6(SYS_execve, P(path), P(argv), P(env), 0, 0, 0); }
static inline long sys_kill(long pid, long signal) { return syscall6(SYS_kill, pid, signal, 0, 0, 0, 0); }
/* sys_reap collects a process that has ended, if there is one: 1 is WNOHANG. */
static inline long sys_reap(void) { return syscall6(SYS_wait4, -1, 0, 1, 0, 0, 0); }
static inline int sys_failed(const void *p) { return (unsigned long)p > -4096UL; }

static inline void sys_exit(int code)
{
	for (;;)
		syscall6(SYS_exit, code, 0, 0, 0, 0, 0);
}

/* reboot(2): the magic numbers are part of the call. */
enum { REBOOT_RESTART = 0x01234567, REBOOT_POWER_OFF = 0x4321fedc };
static inline long sys_reboot(long what) { return syscall6(SYS_reboot, 0xfee1dead, 672274793, what, 0, 0, 0); }

struct timespec { long sec, nsec; };
static inline long sys_monotonic(struct timespec *t) { return syscall6(SYS_clock_gettime, 1, P(t), 0, 0, 0, 0); }

/* epoll: the kernel packs the structure on x86-64. */
struct epoll_event { uint32_t events; uint64_t data; } __attribute__((packed));
enum { EPOLLIN = 1, EPOLLERR = 8, EPOLLHUP = 0x10 };
#define EPOLLET 0x80000000u
static inline long sys_epoll_create(void) { return syscall6(SYS_epoll_create1, 02000000, 0, 0, 0, 0, 0); }
static inline long sys_epoll_add(int ep, int fd, struct epoll_event *ev) { return syscall6(SYS_epoll_ctl, ep, 1, fd, P(ev), 0, 0); }
static inline long sys_epoll_wait(int ep, struct epoll_event *ev, int n) { return syscall6(SYS_epoll_wait, ep, P(ev), n, -1, 0, 0); }

#endif
