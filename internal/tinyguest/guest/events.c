/*
 * News from the kernel (uevents), from the power button and from the agents'
 * ports. The guest sleeps until there is some: an idle machine costs its host
 * nothing.
 */
#include "guest.h"

enum { AF_NETLINK = 16, SOCK_DGRAM = 2, SOCK_FLAGS = O_CLOEXEC | O_NONBLOCK, NETLINK_KOBJECT_UEVENT = 15 };
enum { EV_KEY = 1, KEY_POWER = 116 };

struct sockaddr_nl { uint16_t family, pad; uint32_t pid, groups; };
struct input_event { uint64_t sec, usec; uint16_t type, code; int32_t value; };

static int epoll, uevents;

static void watch(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = (uint64_t)fd };

	sys_epoll_add(epoll, fd, &ev);
}

static void open_input(const char *dir, const char *name)
{
	char path[64];
	long fd;

	if (!str_starts(name, "event"))
		return;
	str_join(path, sizeof path, dir, "/", name);
	fd = sys_open(path, O_RDONLY | O_NONBLOCK);
	if (fd >= 0)
		watch((int)fd);
}

void events_open(void)
{
	struct sockaddr_nl addr = { .family = AF_NETLINK, .groups = 1 };

	epoll = (int)sys_epoll_create();
	uevents = (int)sys_socket(AF_NETLINK, SOCK_DGRAM | SOCK_FLAGS, NETLINK_KOBJECT_UEVENT);
	sys_bind(uevents, &addr, sizeof addr);
	watch(uevents);
}

/* value finds KEY=... in an uevent, "" if it is not there. */
static const char *value(const char *msg, const char *end, const char *key)
{
	for (; msg < end; msg += str_len(msg) + 1)
		if (str_starts(msg, key))
			return msg + str_len(key);
	return "";
}

static const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

static void cpu_event(const char *action, const char *device)
{
	char path[128];

	if (str_eq(action, "add")) {
		/* The kernel leaves hot-added CPUs offline, except the first one. */
		str_join(path, sizeof path, "/sys/devices/system/cpu/", device, "/online");
		write_file(path, "1");
	} else if (str_eq(action, "online") || str_eq(action, "offline")) {
		note("cpu %s %s", device + 3, action);
	} else if (str_eq(action, "remove")) {
		note("cpu %s removed", device + 3);
	}
}

static void uevent(const char *msg, const char *end)
{
	const char *action = value(msg, end, "ACTION="), *subsystem = value(msg, end, "SUBSYSTEM="),
		   *device = base_name(value(msg, end, "DEVPATH=")), *alias = value(msg, end, "MODALIAS=");
	int add = str_eq(action, "add"), plugged = add || str_eq(action, "remove");
	char path[128];

	if (add && *alias)
		modprobe(alias);
	if (str_eq(subsystem, "cpu")) {
		cpu_event(action, device);
	} else if (str_eq(subsystem, "memory") && add) {
		str_join(path, sizeof path, "/sys/devices/system/memory/", device, "/state");
		write_file(path, "online");
	} else if (str_eq(subsystem, "block") && plugged && str_eq(value(msg, end, "DEVTYPE="), "disk")) {
		note("disk %s %s", device, add ? "added" : "removed");
	} else if (str_eq(subsystem, "net") && plugged && !str_eq(device, "lo")) {
		note("network %s %s", device, add ? "added" : "removed");
	} else if (str_eq(subsystem, "input") && add) {
		open_input("/dev/input", device);
	} else if (str_eq(subsystem, "virtio-ports")) {
		agents_open(epoll);
	}
}

int events_drain(void)
{
	static char msg[4096];
	int count = 0;
	long n;

	while ((n = sys_read(uevents, msg, sizeof msg - 1)) > 0) {
		msg[n] = 0;
		uevent(msg, msg + n);
		count++;
	}
	return count;
}

static void input(int fd)
{
	struct input_event ev;

	while (sys_read(fd, &ev, sizeof ev) == sizeof ev) {
		if (ev.type != EV_KEY || ev.code != KEY_POWER || ev.value != 1)
			continue;
		if (cmdline_has("vmop.ignore-powerbutton")) {
			note("power button, ignored");
			continue;
		}
		note("power button, shutting down");
		shut_down();
	}
}

void events_loop(void)
{
	struct epoll_event ev[8];

	/* The console too when it is not there: epoll then refuses it and the guest lives on without. */
	watch(0);
	agents_open(epoll);
	for (;;) {
		long n = sys_epoll_wait(epoll, ev, 8);

		for (long i = 0; i < n; i++) {
			int fd = (int)ev[i].data;

			if (fd == uevents)
				events_drain();
			else if (fd == 0 && !console_input())
				sys_close(0);
			else if (fd != 0 && !agent_event(fd, ev[i].events)) {
				/* An unplugged input device reports errors until it is closed. */
				if (ev[i].events & (EPOLLERR | EPOLLHUP))
					sys_close(fd);
				else
					input(fd);
			}
		}
	}
}
