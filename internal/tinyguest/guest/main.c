/*
 * Process 1 of the tiny guest, and the /sbin/modprobe that the kernel calls
 * when it misses a file system or an encoding: one program under two names.
 */
#include "guest.h"

static char cmdline[2048];

int cmdline_has(const char *word)
{
	size_t n = str_len(word);

	for (const char *p = cmdline; *p;) {
		if (str_starts(p, word) && (p[n] == ' ' || p[n] == 0))
			return 1;
		while (*p && *p != ' ')
			p++;
		while (*p == ' ')
			p++;
	}
	return 0;
}

static void process_one(void)
{
	sys_mount("devtmpfs", "/dev", "devtmpfs", 0);
	sys_mount("proc", "/proc", "proc", 0);
	sys_mount("sysfs", "/sys", "sysfs", 0);
	read_file("/proc/cmdline", cmdline, sizeof cmdline);

	console_init();
	/* From here on the kernel says only what is an emergency: its messages would tear the conversation. They stay
	 * readable with the command dmesg. 8 is SYSLOG_ACTION_CONSOLE_LEVEL. */
	sys_syslog(8, 0, 2);

	/* Listen first, then look at what is there: nothing can appear in between unnoticed. A loaded driver brings
	 * new devices, which bring new news, until all is quiet. */
	events_open();
	modprobe_present();
	while (events_drain())
		;

	facts();
	print("vmop-guest: ready\n");
	print("Type help for what you can do here.\n");
	prompt();
	events_loop();
}

__attribute__((used)) void start(long *stack)
{
	long argc = stack[0];
	char **argv = (char **)(stack + 1);

	if (syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0) == 1)
		process_one();
	/* modprobe -q -- NAME */
	for (long i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			modprobe(argv[i]);
	sys_exit(0);
}

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call start\n");
