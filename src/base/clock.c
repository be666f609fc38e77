/* Time: one clock for durations, one for people. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double clock_seconds(void)
{
    return 1e-9 * (double)clock_ns();
}

int64_t clock_wall(void)
{
    return (int64_t)time(NULL);
}

char *clock_utc(int64_t wall, char *buf, size_t n)
{
    time_t t = (time_t)wall;
    struct tm tm;
    int len = -1;
    if ((int64_t)t == wall && gmtime_r(&t, &tm))
        len = snprintf(buf, n, "%04ld-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900L, tm.tm_mon + 1, tm.tm_mday,
                       tm.tm_hour, tm.tm_min, tm.tm_sec);
    if ((len < 0 || (size_t)len >= n) && n)
        buf[0] = '\0';
    return buf;
}
