/*
 * Virtio ports. Two of them have an agent, each switched on by a word on the
 * kernel's command line: vmop.agent answers the login protocol of VM-Operator
 * and vmop.qga the few commands of QEMU's guest agent that end a machine.
 */
#include "guest.h"

enum { LINE = 1024 };

struct agent {
	const char *word, *port;
	void (*connected)(int fd);
	void (*line)(int fd, char *line);
	int fd; /* 0: not open */
	int has_host;
	char text[LINE];
	size_t n;
};

static void say(int fd, const char *a, const char *b, const char *c)
{
	char line[LINE];

	str_join(line, sizeof line, a, b, c);
	write_all(fd, line, str_len(line));
}

/* ---- org.jdrupes.vmop_agent.0: three digits and a text ---- */

static void login_connected(int fd)
{
	say(fd, "220 vmop tiny guest\n", "", "");
}

static void login_line(int fd, char *line)
{
	note("agent received: %s", line);
	if (str_starts(line, "login ") && line[6])
		say(fd, "201 ", line + 6, " is logged in\n");
	else if (str_eq(line, "logout"))
		say(fd, "202 nobody is logged in\n", "", "");
	else
		say(fd, "500 not understood: ", line, "\n");
}

/* ---- org.qemu.guest_agent.0: JSON, one request in a line ---- */

static int contains(const char *s, const char *part)
{
	for (; *s; s++)
		if (str_starts(s, part))
			return 1;
	return 0;
}

/* sync_id copies the number that guest-sync wants back. */
static void sync_id(const char *s, char *id, size_t size)
{
	size_t n = 0;

	for (; *s && !str_starts(s, "\"id\""); s++)
		;
	for (; *s && (*s < '0' || *s > '9'); s++)
		;
	for (; *s >= '0' && *s <= '9' && n + 1 < size; s++)
		id[n++] = *s;
	id[n] = 0;
}

static void qga_line(int fd, char *line)
{
	char id[24];

	if (contains(line, "\"guest-sync")) {
		sync_id(line, id, sizeof id);
		/* The delimited form starts with a byte that no JSON contains, so that a reader can find the place. */
		say(fd, contains(line, "\"guest-sync-delimited\"") ? "\377{\"return\": " : "{\"return\": ", id, "}\n");
	} else if (contains(line, "\"guest-ping\"")) {
		say(fd, "{\"return\": {}}\n", "", "");
	} else if (contains(line, "\"guest-info\"")) {
		say(fd, "{\"return\": {\"version\": \"0\", \"supported_commands\": []}}\n", "", "");
	} else if (contains(line, "\"guest-get-osinfo\"")) {
		say(fd, "{\"return\": {\"id\": \"vmop-guest\", \"name\": \"vmop tiny guest\", ",
		    "\"pretty-name\": \"vmop tiny guest\", \"machine\": \"x86_64\"}}\n", "");
	} else if (contains(line, "\"guest-fsfreeze-freeze\"") || contains(line, "\"guest-fsfreeze-thaw\"")) {
		/* There is nothing to freeze but what the host may look for. */
		note(contains(line, "thaw") ? "guest agent, thawed" : "guest agent, frozen");
		say(fd, "{\"return\": 1}\n", "", "");
	} else if (contains(line, "\"guest-shutdown\"")) {
		/* The real agent does not answer either when it succeeds. */
		note("guest agent, shutting down");
		shut_down();
	} else {
		say(fd, "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"not a command of the tiny guest\"}}\n", "", "");
	}
}

static void qga_connected(int fd)
{
	(void)fd; /* the guest agent waits to be asked */
}

static struct agent agents[] = {
	{ .word = "vmop.agent", .port = "org.jdrupes.vmop_agent.0", .connected = login_connected, .line = login_line },
	{ .word = "vmop.qga", .port = "org.qemu.guest_agent.0", .connected = qga_connected, .line = qga_line },
};

static const char *wanted_name;
static char *found;
static size_t found_size;

static void compare_port(const char *dir, const char *name)
{
	char path[256], text[128];

	str_join(path, sizeof path, dir, "/", name);
	str_join(path, sizeof path, path, "/name", "");
	if (read_file(path, text, sizeof text) >= 0 && (str_eq(text, wanted_name) || str_eq(name, wanted_name)))
		str_join(found, found_size, "/dev/", name, "");
}

int port_find(const char *name, char *dev, size_t size)
{
	wanted_name = name;
	found = dev;
	found_size = size;
	dev[0] = 0;
	each_entry("/sys/class/virtio-ports", compare_port);
	return dev[0] != 0;
}

void agents_open(int epoll)
{
	for (size_t i = 0; i < sizeof agents / sizeof *agents; i++) {
		struct agent *a = &agents[i];
		/* Edge-triggered and for output too: a port without a host would otherwise report its hang-up for ever,
		 * and a host that connects would not be reported at all. */
		struct epoll_event ev = { .events = 1 | 4 | EPOLLET };
		char dev[64];
		long fd;

		if (a->fd || !cmdline_has(a->word) || !port_find(a->port, dev, sizeof dev))
			continue;
		fd = sys_open(dev, O_RDWR | O_NONBLOCK);
		if (fd < 0)
			continue;
		a->fd = (int)fd;
		ev.data = (uint64_t)fd;
		sys_epoll_add(epoll, (int)fd, &ev);
	}
}

int port_agent(const char *name)
{
	for (size_t i = 0; i < sizeof agents / sizeof *agents; i++)
		if (str_eq(agents[i].port, name))
			return agents[i].fd;
	return 0;
}

static void agent_read(struct agent *a)
{
	char buf[256];
	long n;

	while ((n = sys_read(a->fd, buf, sizeof buf)) > 0) {
		for (long i = 0; i < n; i++) {
			if (buf[i] != '\n') {
				if (a->n + 1 < sizeof a->text && buf[i] != '\r')
					a->text[a->n++] = buf[i];
				continue;
			}
			a->text[a->n] = 0;
			a->n = 0;
			a->line(a->fd, a->text);
		}
	}
}

int agent_event(int fd, uint32_t events)
{
	for (size_t i = 0; i < sizeof agents / sizeof *agents; i++) {
		struct agent *a = &agents[i];

		if (!a->fd || a->fd != fd)
			continue;
		if (events & EPOLLHUP) {
			a->has_host = 0;
			a->n = 0;
			return 1;
		}
		if (!a->has_host) {
			a->has_host = 1;
			a->connected(fd);
		}
		agent_read(a);
		return 1;
	}
	return 0;
}
