/* Time: one clock for durations, one for people. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Since an arbitrary moment, never going back; for differences. */
uint64_t clock_ns(void);
double clock_seconds(void);

#define CLOCK_TEXT 32 /* bytes for a text of clock_utc */

/* Seconds since 1970 of the wall clock; it may jump. */
int64_t clock_wall(void);
/* "2024-02-29T23:59:59Z" (ISO 8601, UTC) for seconds since 1970; "" if there is no such year or no room. Returns buf.
 */
char *clock_utc(int64_t wall, char *buf, size_t n);

#endif
