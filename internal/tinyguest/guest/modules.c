/*
 * Drivers are loaded when a device asks for them, as udev and kmod do it: a
 * machine with one disk pays for one disk's driver. /modules.list, written by
 * the builder, says what there is:
 *
 *	alias PATTERN NAME
 *	module NAME DEPENDENCY...		dependencies first to load come first
 */
#include "guest.h"

static char *list;

static void load_list(void)
{
	enum { SIZE = 256 << 10 };

	if (list)
		return;
	list = sys_mmap(SIZE);
	if (sys_failed(list) || read_file("/modules.list", list, SIZE) < 0)
		list = "";
}

/* next_line copies the line at p and returns where the following one starts, 0 at the end. */
static const char *next_line(const char *p, char *line, size_t size)
{
	size_t n = 0;

	if (!*p)
		return 0;
	for (; *p && *p != '\n'; p++)
		if (n + 1 < size)
			line[n++] = *p;
	line[n] = 0;
	return *p ? p + 1 : p;
}

/* word cuts the first word off a line. */
static char *word(char **line)
{
	char *p = *line, *start;

	while (*p == ' ')
		p++;
	start = p;
	while (*p && *p != ' ')
		p++;
	if (*p)
		*p++ = 0;
	*line = p;
	return start;
}

static void insmod(const char *name)
{
	char path[128];
	long fd;

	str_join(path, sizeof path, "/modules/", name, ".ko");
	fd = sys_open(path, O_RDONLY);
	if (fd < 0)
		return;
	/* Parameters come from the kernel's command line for built-in code only, so the one that matters stands here:
	 * a disk found by a scan in the background would be missing when the guest says that it is ready. */
	sys_finit_module((int)fd, str_eq(name, "scsi_mod") ? "scan=sync" : "");
	sys_close((int)fd);
}

static void load(const char *name)
{
	char line[512], *rest;

	for (const char *p = list; (p = next_line(p, line, sizeof line));) {
		rest = line;
		if (!str_eq(word(&rest), "module") || !str_eq(word(&rest), name))
			continue;
		while (*rest)
			insmod(word(&rest));
		insmod(name);
		return;
	}
}

void modprobe(const char *name)
{
	char line[512], plain[256], *rest;
	size_t i;

	load_list();
	for (const char *p = list; (p = next_line(p, line, sizeof line));) {
		rest = line;
		if (str_eq(word(&rest), "alias") && glob(word(&rest), name))
			load(word(&rest));
	}
	/* A module's own name: - and _ mean the same. */
	str_copy(plain, name, sizeof plain);
	for (i = 0; plain[i]; i++)
		if (plain[i] == '-')
			plain[i] = '_';
	load(plain);
}

static void present(const char *dir, const char *name)
{
	char path[256], alias[512];

	str_join(path, sizeof path, dir, "/", name);
	str_join(path, sizeof path, path, "/modalias", "");
	if (read_file(path, alias, sizeof alias) > 0)
		modprobe(alias);
}

void modprobe_present(void)
{
	static const char *const dirs[] = {
		"/sys/bus/acpi/devices", "/sys/bus/pci/devices", "/sys/bus/platform/devices",
		"/sys/bus/virtio/devices", "/sys/bus/scsi/devices", "/sys/class/input",
	};

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		each_entry(dirs[i], present);
}
