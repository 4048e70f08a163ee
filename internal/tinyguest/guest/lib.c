#include "guest.h"

/* The compiler calls these four by name, also when nobody else does. */

void *memset(void *p, int c, size_t n)
{
	char *d = p;

	while (n--)
		*d++ = (char)c;
	return p;
}

void *memcpy(void *dst, const void *src, size_t n)
{
	char *d = dst;
	const char *s = src;

	while (n--)
		*d++ = *s++;
	return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
	char *d = dst;
	const char *s = src;

	if (d < s)
		return memcpy(dst, src, n);
	while (n--)
		d[n] = s[n];
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	for (; n--; p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

size_t str_len(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

int str_eq(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

int str_starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return 0;
	return 1;
}

char *str_copy(char *dst, const char *src, size_t size)
{
	return str_join(dst, size, src, "", "");
}

char *str_join(char *dst, size_t size, const char *a, const char *b, const char *c)
{
	const char *part[3] = { a, b, c };
	size_t n = 0;

	for (int i = 0; i < 3; i++)
		for (const char *s = part[i]; *s && n + 1 < size; s++)
			dst[n++] = *s;
	dst[n] = 0;
	return dst;
}

int glob(const char *pattern, const char *s)
{
	for (; *pattern; pattern++) {
		switch (*pattern) {
		case '*':
			for (;; s++) {
				if (glob(pattern + 1, s))
					return 1;
				if (!*s)
					return 0;
			}
		case '[': {
			int found = 0;

			for (pattern++; *pattern && *pattern != ']'; pattern++) {
				if (pattern[1] == '-' && pattern[2] && pattern[2] != ']') {
					found |= *s >= pattern[0] && *s <= pattern[2];
					pattern += 2;
				} else {
					found |= *s == *pattern;
				}
			}
			if (!found || !*pattern)
				return 0;
			s++;
			break;
		}
		case '?':
			if (!*s++)
				return 0;
			break;
		default:
			if (*pattern != *s++)
				return 0;
		}
	}
	return !*s;
}

long parse_number(const char *s)
{
	unsigned long n = 0, base = 10;

	if (str_starts(s, "0x")) {
		base = 16;
		s += 2;
	}
	if (!*s)
		return -1;
	for (; *s; s++) {
		unsigned long digit;

		if (*s >= '0' && *s <= '9')
			digit = *s - '0';
		else if (*s >= 'a' && *s <= 'f')
			digit = *s - 'a' + 10;
		else
			return -1;
		if (digit >= base || n > (1UL << 58))
			return -1;
		n = n * base + digit;
	}
	return (long)n;
}

/* One buffer: a whole answer leaves with one system call, so that kernel messages cannot fall in between. */
static char out[4096];
static size_t out_n;

void flush(void)
{
	write_all(1, out, out_n);
	out_n = 0;
}

static void print_char(char c)
{
	if (out_n == sizeof out)
		flush();
	out[out_n++] = c;
}

static void print_string(const char *s)
{
	while (*s)
		print_char(*s++);
}

static void print_number(unsigned long n)
{
	char digits[24];
	int i = sizeof digits - 1;

	digits[i] = 0;
	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	print_string(digits + i);
}

void print(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print_args(format, ap);
	va_end(ap);
}

void print_args(const char *format, va_list ap)
{
	for (; *format; format++) {
		long n;

		if (*format != '%') {
			print_char(*format);
			continue;
		}
		format++;
		if (*format == 'l')
			format++;
		switch (*format) {
		case 's':
			print_string(va_arg(ap, const char *));
			break;
		case 'c':
			print_char((char)va_arg(ap, int));
			break;
		case 'd':
			n = va_arg(ap, long);
			if (n < 0)
				print_char('-');
			print_number(n < 0 ? -(unsigned long)n : (unsigned long)n);
			break;
		default:
			print_char(*format);
		}
	}
}

void print_escaped(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		if (c == '\\') {
			print("\\\\");
		} else if (c >= ' ' && c < 0x7f) {
			print_char((char)c);
		} else {
			print("\\x%c%c", "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]);
		}
	}
}

const char *error_name(long err)
{
	switch (-err) {
	case EPERM: return "not permitted";
	case ENOENT: return "no such file";
	case EIO: return "input/output error";
	case EAGAIN: return "would block";
	case EBUSY: return "busy";
	case EEXIST: return "exists";
	case ENODEV: return "no such device";
	case ENOTDIR: return "not a folder";
	case EISDIR: return "is a folder";
	case EINVAL: return "invalid argument";
	case ENOSPC: return "no space";
	case EROFS: return "read-only";
	case ENOMEDIUM: return "no medium";
	}
	return "failed";
}

long read_file(const char *path, char *buf, size_t size)
{
	long fd = sys_open(path, O_RDONLY), n = 0, got;

	buf[0] = 0;
	if (fd < 0)
		return fd;
	while ((got = sys_read((int)fd, buf + n, size - 1 - (size_t)n)) > 0)
		n += got;
	sys_close((int)fd);
	if (got < 0)
		n = 0;
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = 0;
	return got < 0 ? got : n;
}

long write_file(const char *path, const char *text)
{
	long fd = sys_open(path, O_WRONLY), n;

	if (fd < 0)
		return fd;
	n = sys_write((int)fd, text, str_len(text));
	sys_close((int)fd);
	return n;
}

long write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		long done = sys_write(fd, p, n);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return done;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

struct dirent64 { uint64_t ino; int64_t off; uint16_t len; uint8_t type; char name[]; };

long each_entry(const char *dir, void (*fn)(const char *dir, const char *name))
{
	/* Folders nest (the entries' handlers list folders too), so the buffers live on the stack. */
	char names[8192], raw[2048], *sorted[256];
	size_t used = 0;
	int count = 0;
	long fd = sys_open(dir, O_RDONLY | O_DIRECTORY), got;

	if (fd < 0)
		return fd;
	while ((got = sys_getdents((int)fd, raw, sizeof raw)) > 0) {
		for (long at = 0; at < got;) {
			struct dirent64 *e = (void *)(raw + at);
			size_t n = str_len(e->name) + 1;
			int i;

			at += e->len;
			if (str_eq(e->name, ".") || str_eq(e->name, "..") || count == 256 || used + n > sizeof names)
				continue;
			str_copy(names + used, e->name, n);
			for (i = count++; i > 0; i--) {
				const char *a = sorted[i - 1], *b = names + used;

				while (*a && *a == *b)
					a++, b++;
				if (*a <= *b)
					break;
				sorted[i] = sorted[i - 1];
			}
			sorted[i] = names + used;
			used += n;
		}
	}
	sys_close((int)fd);
	for (int i = 0; i < count; i++)
		fn(dir, sorted[i]);
	return got;
}
