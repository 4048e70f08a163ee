/*
 * The conversation on the console: a small line editor in place of the
 * kernel's, so that news can be printed without tearing the line being typed,
 * and so that no key kills process 1.
 */
#include "guest.h"

enum { TCGETS = 0x5401, TCSETS = 0x5402 };
struct termios { uint32_t iflag, oflag, cflag, lflag; uint8_t line, cc[19]; };

static char typed[1024], last[1024];
static size_t typed_n;
static int escape; /* where in an escape sequence: 0 outside, 1 after ESC, 2 after ESC [ */
static int talking;   /* the first prompt was shown */
static char previous;

void console_init(void)
{
	struct termios t;

	if (sys_ioctl(0, TCGETS, P(&t)) < 0)
		return;
	t.iflag = 0;
	t.oflag = 01 | 04;      /* OPOST|ONLCR */
	t.cflag |= 04000;       /* CLOCAL: a line without carrier is a line nevertheless */
	t.lflag = 0;
	t.cc[6] = 1;            /* VMIN */
	t.cc[5] = 0;            /* VTIME */
	sys_ioctl(0, TCSETS, P(&t));
}

void prompt(void)
{
	talking = 1;
	print("> ");
	for (size_t i = 0; i < typed_n; i++)
		print("%c", typed[i]);
	flush();
}

void note(const char *format, ...)
{
	va_list ap;

	if (!talking)
		return;
	/* To the first column and clear: the prompt and what was typed move below the news. */
	print("\r\033[Kvmop-guest: ");
	va_start(ap, format);
	print_args(format, ap);
	va_end(ap);
	print("\n");
	prompt();
}

static void erase(size_t n)
{
	while (n-- && typed_n) {
		typed_n--;
		print("\b \b");
	}
}

static void enter(void)
{
	static char line[sizeof typed];

	typed[typed_n] = 0;
	typed_n = 0;
	print("\n");
	str_copy(line, typed, sizeof line);
	if (*line) {
		str_copy(last, line, sizeof last);
		command_run(line);
	}
	prompt();
}

static void key(char c)
{
	if (escape) {
		if (escape == 1 && c == '[') {
			escape = 2;
			return;
		}
		/* Numbers and semicolons continue a sequence, anything else ends it. Only "up" means something. */
		if (escape == 2 && c < '@')
			return;
		if (escape == 2 && c == 'A') {
			erase(typed_n);
			str_copy(typed, last, sizeof typed);
			typed_n = str_len(typed);
			print("%s", typed);
		}
		escape = 0;
		return;
	}
	switch (c) {
	case '\n':
		/* Some terminals send both for one key. */
		if (previous == '\r')
			break;
		enter();
		break;
	case '\r':
		enter();
		break;
	case 0x7f:
	case '\b':
		erase(1);
		break;
	case 'C' - '@':
		typed_n = 0;
		print("^C\n");
		prompt();
		break;
	case 'U' - '@':
		erase(typed_n);
		break;
	case '\033':
		escape = 1;
		break;
	default:
		if ((unsigned char)c >= ' ' && typed_n + 1 < sizeof typed) {
			typed[typed_n++] = c;
			print("%c", c);
		}
	}
}

int console_input(void)
{
	char buf[256];
	long n = sys_read(0, buf, sizeof buf);

	if (n == -EINTR || n == -EAGAIN)
		return 1;
	for (long i = 0; i < n; i++) {
		key(buf[i]);
		previous = buf[i];
	}
	flush();
	return n > 0;
}
