/* What can be typed at the prompt. Every answer is lines of text; a failure is one line that starts with "error: ". */
#include "guest.h"

static char *args; /* what follows the command's name */

/* arg cuts the next word off args, "" at the end. */
static char *arg(void)
{
	char *start;

	while (*args == ' ')
		args++;
	start = args;
	while (*args && *args != ' ')
		args++;
	if (*args)
		*args++ = 0;
	return start;
}

static void fail(const char *what, long err)
{
	print("error: %s: %s\n", what, error_name(err));
}

static long attribute(const char *dir, const char *name, const char *file, char *buf, size_t size)
{
	char path[256];

	str_join(path, sizeof path, dir, "/", name);
	str_join(path, sizeof path, path, "/", file);
	return read_file(path, buf, size);
}

/* ---- the machine ---- */

/* count_list counts the members of a list like 0-2,5. */
static long count_list(const char *s)
{
	long count = 0, from = -1, n = 0;

	for (;; s++) {
		if (*s >= '0' && *s <= '9') {
			n = n * 10 + *s - '0';
			continue;
		}
		if (*s == '-') {
			from = n;
		} else {
			count += from < 0 ? 1 : n - from + 1;
			from = -1;
		}
		n = 0;
		if (!*s)
			return count;
	}
}

/* meminfo finds a line of /proc/meminfo, in KiB. */
static long meminfo(const char *key)
{
	char text[4096];
	long kib = 0;

	read_file("/proc/meminfo", text, sizeof text);
	for (const char *p = text; *p; p++) {
		if ((p != text && p[-1] != '\n') || !str_starts(p, key))
			continue;
		for (p += str_len(key); *p == ':' || *p == ' '; p++)
			;
		for (; *p >= '0' && *p <= '9'; p++)
			kib = kib * 10 + *p - '0';
		return kib;
	}
	return -1;
}

static const char *heading; /* stands before the lines about disks and interfaces */

static void cmd_disks(void);
static void cmd_mac(void);

void facts(void)
{
	char uts[6][65], text[128];
	long n;

	sys_uname(uts);
	read_file("/sys/devices/system/cpu/online", text, sizeof text);
	n = count_list(text);
	print("vmop-guest: kernel %s, %ld CPU%s, %ld MiB memory\n", uts[2], n, n == 1 ? "" : "s", meminfo("MemTotal") >> 10);
	if (read_file("/sys/class/dmi/id/product_uuid", text, sizeof text) > 0)
		print("vmop-guest: machine %s\n", text);
	heading = "vmop-guest: disk ";
	cmd_disks();
	heading = "vmop-guest: network ";
	cmd_mac();
	heading = "";
}

static void cmd_cpus(void)
{
	static const char *const files[] = { "online", "present", "possible" };
	char text[128];

	for (int i = 0; i < 3; i++) {
		attribute("/sys/devices/system", "cpu", files[i], text, sizeof text);
		print("%s %s\n", files[i], text);
	}
}

static void set_cpu(const char *value)
{
	char *n = arg(), path[128];
	long err;

	str_join(path, sizeof path, "/sys/devices/system/cpu/cpu", n, "/online");
	err = parse_number(n) < 0 ? -EINVAL : write_file(path, value);
	if (err < 0)
		fail("cpu", err);
}

static void cmd_online(void) { set_cpu("1"); }
static void cmd_offline(void) { set_cpu("0"); }

static void cmd_mem(void)
{
	print("MemTotal %ld kB\nMemAvailable %ld kB\n", meminfo("MemTotal"), meminfo("MemAvailable"));
}

static void cmd_dirty(void)
{
	long mib = parse_number(arg());
	char *p;

	if (mib <= 0) {
		fail("dirty", -EINVAL);
		return;
	}
	p = sys_mmap((size_t)mib << 20);
	if (sys_failed(p)) {
		fail("dirty", P(p));
		return;
	}
	for (long i = 0; i < mib << 20; i += 4096)
		*(volatile char *)(p + i) = 1;
	print("%ld MiB written\n", mib);
}

static void cmd_spin(void)
{
	struct timespec t;
	long seconds = parse_number(arg()), end;

	sys_monotonic(&t);
	end = t.sec + (seconds < 0 ? 1 : seconds);
	while (t.sec < end)
		sys_monotonic(&t);
}

static void dmi_entry(const char *dir, const char *name)
{
	char text[256];

	if (!str_eq(name, "modalias") && !str_eq(name, "uevent") && attribute(dir, "", name, text, sizeof text) > 0)
		print("%s %s\n", name, text);
}

static void cmd_dmi(void) { each_entry("/sys/class/dmi/id", dmi_entry); }

static void show_file(const char *path, const char *missing)
{
	char text[4096];
	long n = read_file(path, text, sizeof text);

	if (n >= 0)
		print("%s\n", text);
	else
		print("%s\n", missing);
}

static void cmd_uuid(void) { show_file("/sys/class/dmi/id/product_uuid", "error: the firmware tells no UUID"); }

static void cmd_tpm(void)
{
	char text[32];

	if (read_file("/sys/class/tpm/tpm0/tpm_version_major", text, sizeof text) > 0)
		print("tpm0 version %s\n", text);
	else
		print("no tpm\n");
}

static void cmd_efi(void)
{
	static const char path[] = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	char value[8];
	long fd, n;

	fd = sys_open("/sys/firmware/efi", O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		print("no efi\n");
		return;
	}
	sys_close((int)fd);
	sys_mount("efivarfs", "/sys/firmware/efi/efivars", "efivarfs", 0);
	fd = sys_open(path, O_RDONLY);
	n = fd < 0 ? fd : sys_read((int)fd, value, sizeof value);
	if (fd >= 0)
		sys_close((int)fd);
	/* Four bytes of attributes come before the value. */
	print("efi, secure boot %s\n", n < 5 ? "unknown" : value[4] ? "on" : "off");
}

static void cmd_dmesg(void)
{
	enum { SIZE = 256 << 10 };
	long lines = parse_number(arg()), n, at;
	char *p = sys_mmap(SIZE);

	if (sys_failed(p))
		return;
	n = sys_syslog(3, p, SIZE); /* SYSLOG_ACTION_READ_ALL */
	for (at = n; at > 0 && lines != 0; at--)
		if (p[at - 1] == '\n' && at < n && lines > 0 && --lines == 0)
			break;
	for (; at < n; at++)
		print("%c", p[at]);
	sys_munmap(p, SIZE);
}

/* ---- disks ---- */

/* disk_open opens a device by name (vda) or path (/dev/vda). */
static long disk_open(const char *name, int flags)
{
	char path[128];

	str_join(path, sizeof path, *name == '/' ? "" : "/dev/", name, "");
	return sys_open(path, flags);
}

static long sectors(const char *name)
{
	char text[32];

	attribute("/sys/block", name, "size", text, sizeof text);
	return parse_number(text);
}

/* serial finds a disk's serial number: virtio tells it in a file of its own, SCSI and ATA in a page of product data. */
static void serial(const char *name, char *text, size_t size)
{
	char page[260];
	long n;

	text[0] = 0;
	if (attribute("/sys/block", name, "serial", text, size) > 0 ||
	    attribute("/sys/block", name, "device/serial", text, size) > 0)
		return;
	n = attribute("/sys/block", name, "device/vpd_pg80", page, sizeof page);
	if (n > 4) {
		char *s = page + 4;

		while (*s == ' ')
			s++;
		str_copy(text, s, size);
	}
}

static void disk_entry(const char *dir, const char *name)
{
	char ro[8], id[256];
	long fd;

	(void)dir;
	if (str_starts(name, "loop") || str_starts(name, "ram"))
		return;
	/* Opening makes the kernel look at a medium that may have been changed. */
	fd = disk_open(name, O_RDONLY);
	if (fd >= 0)
		sys_close((int)fd);
	attribute("/sys/block", name, "ro", ro, sizeof ro);
	serial(name, id, sizeof id);
	if (fd < 0)
		print("%s%s %s", heading, name, error_name(fd));
	else
		print("%s%s %ld bytes%s", heading, name, sectors(name) * 512, ro[0] == '1' ? ", read-only" : "");
	print("%s%s\n", id[0] ? ", serial " : "", id);
}

static void cmd_disks(void) { each_entry("/sys/block", disk_entry); }

static void cmd_read(void)
{
	char *dev = arg(), text[4096];
	long offset = parse_number(arg()), len = parse_number(arg()), n, fd;

	if (offset < 0 || len < 0 || len > (long)sizeof text) {
		fail("read", -EINVAL);
		return;
	}
	fd = disk_open(dev, O_RDONLY);
	n = fd < 0 ? fd : sys_pread((int)fd, text, (size_t)len, offset);
	if (fd >= 0)
		sys_close((int)fd);
	if (n < 0) {
		fail(dev, n);
		return;
	}
	print_escaped(text, (size_t)n);
	print("\n");
}

static void cmd_write(void)
{
	char *dev = arg();
	long offset = parse_number(arg()), n, fd;
	size_t len = str_len(args);

	fd = offset < 0 ? -EINVAL : disk_open(dev, O_WRONLY);
	n = fd < 0 ? fd : sys_pwrite((int)fd, args, len, offset);
	if (n >= 0 && (size_t)n != len)
		n = -EIO;
	/* Done means on the disk: tests kill the machine next. */
	if (n >= 0 && sys_fsync((int)fd) < 0)
		n = -EIO;
	if (fd >= 0)
		sys_close((int)fd);
	if (n < 0)
		fail(dev, n);
	else
		print("%ld bytes written\n", n);
}

static void cmd_mount(void)
{
	static const char *const types[] = { "ext4", "iso9660", "vfat" };
	char *dev = arg(), *dir = arg(), path[128];
	long err = -ENODEV;

	str_join(path, sizeof path, *dev == '/' ? "" : "/dev/", dev, "");
	sys_mkdir(dir);
	for (int i = 0; i < 3 && err < 0; i++) {
		err = sys_mount(path, dir, types[i], 0);
		/* What cannot be written can still be read: 1 is MS_RDONLY. */
		if (err < 0)
			err = sys_mount(path, dir, types[i], 1);
		if (err == 0)
			print("%s\n", types[i]);
	}
	if (err < 0)
		fail(dev, err);
}

static void cmd_share(void)
{
	char *type = arg(), *tag = arg(), *dir = arg();
	long err;

	sys_mkdir(dir);
	err = sys_mount_with(tag, dir, type, 0, arg());
	if (err < 0)
		fail(tag, err);
}

static void cmd_umount(void)
{
	char *dir = arg();
	long err = sys_umount(dir);

	if (err < 0)
		fail(dir, err);
}

/* ---- CD drives: the ioctls of linux/cdrom.h ---- */

enum { CDROMEJECT = 0x5309, CDROMCLOSETRAY = 0x5319, CDROM_DRIVE_STATUS = 0x5326, CDROM_LOCKDOOR = 0x5329 };

static void cdrom(long request, long value)
{
	char *dev = arg();
	long fd, err;

	/* Non-blocking: a drive can be opened although it is empty. */
	fd = disk_open(*dev ? dev : "sr0", O_RDONLY | O_NONBLOCK);
	err = fd < 0 ? fd : sys_ioctl((int)fd, request, value);
	if (fd >= 0)
		sys_close((int)fd);
	if (err < 0) {
		fail(*dev ? dev : "sr0", err);
		return;
	}
	if (request == CDROM_DRIVE_STATUS) {
		static const char *const names[] = { "unknown", "empty", "open", "not ready", "disc" };

		print("%s\n", names[err > 4 ? 0 : err]);
	}
}

static void cmd_eject(void) { cdrom(CDROMEJECT, 0); }
static void cmd_close(void) { cdrom(CDROMCLOSETRAY, 0); }
static void cmd_tray(void) { cdrom(CDROM_DRIVE_STATUS, 0x7fffffff); }
static void cmd_lock(void) { cdrom(CDROM_LOCKDOOR, 1); }
static void cmd_unlock(void) { cdrom(CDROM_LOCKDOOR, 0); }

/* ---- files ---- */

static void cmd_cat(void)
{
	char *path = arg(), buf[1024];
	long fd = sys_open(path, O_RDONLY), n;

	if (fd < 0) {
		fail(path, fd);
		return;
	}
	char end = '\n';
	while ((n = sys_read((int)fd, buf, sizeof buf)) > 0) {
		for (long i = 0; i < n; i++)
			print("%c", end = buf[i]);
	}
	if (n < 0)
		fail(path, n);
	else if (end != '\n')
		print("\n");
	sys_close((int)fd);
}

static void ls_entry(const char *dir, const char *name)
{
	(void)dir;
	print("%s\n", name);
}

static void cmd_ls(void)
{
	char *dir = arg();
	long err = each_entry(*dir ? dir : "/", ls_entry);

	if (err < 0)
		fail(dir, err);
}

/* ---- bytes, of firmware variables and of the TPM ---- */

static void print_hex(const char *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++)
		print("%c%c", digits[(unsigned char)p[i] >> 4], digits[p[i] & 15]);
	print("\n");
}

/* arg_hex takes an argument in hexadecimal; it returns its length or an error. */
static long arg_hex(char *buf, size_t size)
{
	const char *s = arg();
	size_t n = str_len(s) / 2;

	if (!n || str_len(s) % 2 || n > size)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		char byte[5] = { '0', 'x', s[2 * i], s[2 * i + 1], 0 };
		long value = parse_number(byte);

		if (value < 0)
			return -EINVAL;
		buf[i] = (char)value;
	}
	return (long)n;
}

static void cmd_hex(void)
{
	char *path = arg(), buf[1024];
	long fd = sys_open(path, O_RDONLY), n = fd < 0 ? fd : sys_read((int)fd, buf, sizeof buf);

	if (fd >= 0)
		sys_close((int)fd);
	if (n < 0)
		fail(path, n);
	else
		print_hex(buf, (size_t)n);
}

/* The bytes are written at once: a firmware variable takes them in no other way. */
static void cmd_store(void)
{
	char *path = arg(), buf[512];
	long n = arg_hex(buf, sizeof buf);
	long fd = n < 0 ? n : sys_open(path, O_WRONLY | O_CREAT);

	if (fd >= 0) {
		n = sys_write((int)fd, buf, (size_t)n);
		sys_close((int)fd);
	}
	if (fd < 0 || n < 0)
		fail(path, fd < 0 ? fd : n);
}

/* ask writes a request to a device, such as a TPM, and shows the answer. */
static void cmd_ask(void)
{
	char *path = arg(), buf[4096];
	long n = arg_hex(buf, sizeof buf);
	long fd = n < 0 ? n : sys_open(path, O_RDWR);

	if (fd >= 0) {
		n = sys_write((int)fd, buf, (size_t)n);
		if (n >= 0)
			n = sys_read((int)fd, buf, sizeof buf);
		sys_close((int)fd);
	}
	if (fd < 0 || n < 0)
		fail(path, fd < 0 ? fd : n);
	else
		print_hex(buf, (size_t)n);
}

/* ---- network and ports ---- */

static void mac_entry(const char *dir, const char *name)
{
	char text[64];

	if (!str_eq(name, "lo") && attribute(dir, name, "address", text, sizeof text) > 0)
		print("%s%s %s\n", heading, name, text);
}

static void cmd_mac(void) { each_entry("/sys/class/net", mac_entry); }

static void port_entry(const char *dir, const char *name)
{
	char text[128];

	attribute(dir, name, "name", text, sizeof text);
	print("%s %s\n", name, text);
}

static void cmd_ports(void) { each_entry("/sys/class/virtio-ports", port_entry); }

static void cmd_port(void)
{
	char *name = arg(), dev[64];
	long agent, fd, err;

	if (!port_find(name, dev, sizeof dev)) {
		fail(name, -ENOENT);
		return;
	}
	/* An agent holds its port open, and a port can be opened only once. */
	agent = port_agent(name);
	fd = agent ? agent : sys_open(dev, O_WRONLY | O_NONBLOCK);
	err = fd < 0 ? fd : write_all((int)fd, args, str_len(args));
	if (err == 0)
		err = write_all((int)fd, "\n", 1);
	if (fd >= 0 && !agent)
		sys_close((int)fd);
	if (err < 0)
		fail(name, err);
}

/* ---- programs, which a test adds to the initial file system ---- */

static void cmd_exec(void)
{
	static char *env[] = { "PATH=/bin", 0 };
	char *argv[16];
	int n = 0;
	long pid;

	while (sys_reap() > 0)
		;
	while (n < 15 && *(argv[n] = arg()))
		n++;
	argv[n] = 0;
	if (!n) {
		fail("exec", -EINVAL);
		return;
	}
	flush(); /* or both processes would write it */
	pid = sys_fork();
	if (pid == 0) {
		pid = sys_execve(argv[0], argv, env);
		fail(argv[0], pid);
		flush();
		sys_exit(127);
	}
	if (pid < 0)
		fail(argv[0], pid);
	else
		print("process %ld\n", pid);
}

static void cmd_kill(void)
{
	char *who = arg();
	long pid = parse_number(who), err = pid < 2 ? -EINVAL : sys_kill(pid, 15 /* SIGTERM */);

	if (err < 0)
		fail(who, err);
}

/* ---- the end ---- */

void shut_down(void)
{
	flush();
	sys_sync();
	sys_reboot(REBOOT_POWER_OFF);
}

static void cmd_reboot(void)
{
	print("vmop-guest: rebooting\n");
	flush();
	sys_sync();
	sys_reboot(REBOOT_RESTART);
}

static void cmd_poweroff(void)
{
	print("vmop-guest: powering off\n");
	shut_down();
}

static void cmd_crash(void)
{
	long err = write_file("/proc/sysrq-trigger", "c");

	fail("crash", err);
}

/* watchdog sets the watchdog's time and never serves it. Closing it does not stop it. */
static void cmd_watchdog(void)
{
	static const unsigned long WDIOC_SETTIMEOUT = 0xc0045706; /* of linux/watchdog.h */
	int seconds = (int)parse_number(arg());
	long fd = seconds < 1 ? -EINVAL : sys_open("/dev/watchdog", O_WRONLY);
	long err = fd < 0 ? fd : sys_ioctl((int)fd, (long)WDIOC_SETTIMEOUT, P(&seconds));

	if (fd >= 0)
		sys_close((int)fd);
	if (err < 0)
		fail("watchdog", err);
}

static void cmd_echo(void) { print("%s\n", args); }

static void cmd_help(void);

static const struct {
	const char *name, *usage, *what;
	void (*run)(void);
} commands[] = {
	{ "help", "", "show this list", cmd_help },
	{ "cpus", "", "processors that are online, present and possible", cmd_cpus },
	{ "online", "N", "switch a processor on", cmd_online },
	{ "offline", "N", "switch a processor off", cmd_offline },
	{ "mem", "", "memory in total and available", cmd_mem },
	{ "dirty", "MIB", "take that much memory and write to it", cmd_dirty },
	{ "spin", "SECONDS", "keep a processor busy", cmd_spin },
	{ "disks", "", "disks with sizes and serial numbers", cmd_disks },
	{ "read", "DISK OFFSET LENGTH", "show bytes of a disk", cmd_read },
	{ "write", "DISK OFFSET TEXT", "write text to a disk", cmd_write },
	{ "mount", "DISK FOLDER", "mount a file system", cmd_mount },
	{ "share", "TYPE TAG FOLDER OPTIONS", "mount a folder of the host", cmd_share },
	{ "umount", "FOLDER", "unmount it", cmd_umount },
	{ "cat", "FILE", "show a file", cmd_cat },
	{ "ls", "[FOLDER]", "list a folder", cmd_ls },
	{ "hex", "FILE", "show the first bytes of a file", cmd_hex },
	{ "store", "FILE BYTES", "write bytes in hexadecimal to a file", cmd_store },
	{ "ask", "DEVICE BYTES", "write bytes to a device and show its answer", cmd_ask },
	{ "tray", "[DRIVE]", "state of a CD drive: disc, empty or open", cmd_tray },
	{ "eject", "[DRIVE]", "open the tray", cmd_eject },
	{ "close", "[DRIVE]", "close the tray", cmd_close },
	{ "lock", "[DRIVE]", "lock the tray", cmd_lock },
	{ "unlock", "[DRIVE]", "unlock the tray", cmd_unlock },
	{ "mac", "", "network interfaces", cmd_mac },
	{ "ports", "", "virtio ports", cmd_ports },
	{ "port", "NAME TEXT", "write a line to a virtio port", cmd_port },
	{ "uuid", "", "the machine's UUID", cmd_uuid },
	{ "dmi", "", "what the firmware says about the machine", cmd_dmi },
	{ "tpm", "", "the TPM", cmd_tpm },
	{ "efi", "", "UEFI and Secure Boot", cmd_efi },
	{ "dmesg", "[LINES]", "messages of the kernel", cmd_dmesg },
	{ "exec", "PROGRAM ARGUMENTS", "start a program in the background", cmd_exec },
	{ "kill", "PROCESS", "ask a program to end", cmd_kill },
	{ "echo", "TEXT", "repeat the text", cmd_echo },
	{ "crash", "", "make the kernel panic", cmd_crash },
	{ "watchdog", "SECONDS", "start the watchdog and leave it alone", cmd_watchdog },
	{ "reboot", "", "restart the machine", cmd_reboot },
	{ "poweroff", "", "switch the machine off", cmd_poweroff },
};

static void cmd_help(void)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		size_t n = str_len(commands[i].name) + str_len(commands[i].usage);

		print("%s %s", commands[i].name, commands[i].usage);
		while (n++ < 26)
			print(" ");
		print("%s\n", commands[i].what);
	}
}

void command_run(char *line)
{
	char *name;

	args = line;
	name = arg();
	if (!*name)
		return;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (str_eq(commands[i].name, name)) {
			commands[i].run();
			return;
		}
	}
	print("error: %s: not a command, try help\n", name);
}
