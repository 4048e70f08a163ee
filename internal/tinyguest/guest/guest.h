/* The guest's parts and what they offer each other. */
#ifndef VMOP_GUEST_H
#define VMOP_GUEST_H

#include <stdarg.h>

#include "sys.h"

/* ---- lib.c: strings, formatted output, small files ---- */

size_t str_len(const char *s);
int str_eq(const char *a, const char *b);
int str_starts(const char *s, const char *prefix);
/* str_copy always terminates; it returns dst. */
char *str_copy(char *dst, const char *src, size_t size);
/* str_join builds a, b and c into dst, shortened to size. */
char *str_join(char *dst, size_t size, const char *a, const char *b, const char *c);
/* glob matches the patterns of module aliases: *, ? and [a-z]. */
int glob(const char *pattern, const char *s);
/* parse_number reads decimal or 0x hexadecimal; it returns -1 for anything else. */
long parse_number(const char *s);

/* print collects output, flush writes it to the console. Verbs: %s %ld %c. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_args(const char *format, va_list ap);
void print_escaped(const char *p, size_t n);
void flush(void);

/* error_name says what a negative system call result means. */
const char *error_name(long err);

/* read_file fills buf with a terminated string without its last line feed; it returns its length or an error. */
long read_file(const char *path, char *buf, size_t size);
long write_file(const char *path, const char *text);
/* write_all writes n bytes even where the kernel takes them in parts. */
long write_all(int fd, const char *p, size_t n);

/* each_entry calls fn for the entries of a folder in the order of their names, without . and .. */
long each_entry(const char *dir, void (*fn)(const char *dir, const char *name));

/* ---- modules.c ---- */

/* modprobe loads what a name or a device's modalias asks for; unknown ones are none of ours. */
void modprobe(const char *name);
/* modprobe_present does it for every device that is there already. */
void modprobe_present(void);

/* ---- console.c: the line editor ---- */

void console_init(void);
/* console_input takes what arrived; complete lines go to command_run. It returns 0 when the console is gone. */
int console_input(void);
void prompt(void);
/* note prints a line of news above whatever the user is typing; before the first prompt there is no news. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- commands.c ---- */

void command_run(char *line);
void facts(void);
void shut_down(void);

/* ---- events.c: what the kernel and the host tell us ---- */

void events_open(void);
/* events_drain handles the kernel's news that are waiting and returns how many there were. */
int events_drain(void);
/* events_loop never returns. */
void events_loop(void);

/* ---- ports.c: virtio ports and the agents that listen on them ---- */

/* port_find finds the device of a named virtio port, e.g. /dev/vport1p1; 0 if there is none. */
int port_find(const char *name, char *dev, size_t size);
/* port_agent returns the descriptor of the agent that holds a named port, 0 if none does. */
int port_agent(const char *name);
/* agents_open opens the ports of the agents that are switched on as soon as they appear. */
void agents_open(int epoll);
/* agent_event handles what epoll reports for an agent's port; it returns 0 if the descriptor is not one. */
int agent_event(int fd, uint32_t events);

/* ---- main.c ---- */

/* cmdline_has tells whether a word stands on the kernel's command line. */
int cmdline_has(const char *word);

#endif
