/* The machine: its name, and whether others are using it. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench.h"

void bench_cpu(char *text, size_t n)
{
    char line[512];
    snprintf(text, n, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strchr(line, ':');
        if (at && !strncmp(line, "model name", 10)) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, n, "%s", at + 1 + strspn(at + 1, " \t"));
            break;
        }
    }
    if (f)
        fclose(f);
}

/* Time of all cores since the start, in ticks: [0] in use, [1] all. */
static bool ticks(double t[2])
{
    char line[512];
    bool ok = false;
    t[0] = t[1] = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (f && fgets(line, sizeof line, f) && !strncmp(line, "cpu ", 4)) {
        char *at = line + 4;
        for (int i = 0; i < 8; i++) { /* user nice system idle iowait irq softirq steal */
            const double v = strtod(at, &at);
            t[0] += i == 3 || i == 4 ? 0 : v;
            t[1] += v;
        }
        ok = t[1] > 0;
    }
    if (f)
        fclose(f);
    return ok;
}

double bench_load(void)
{
    double a[2], b[2];
    const struct timespec pause = {0, 200000000};
    if (!ticks(a))
        return -1;
    nanosleep(&pause, NULL); /* this process does nothing meanwhile, so what is used is used by others */
    return ticks(b) && b[1] > a[1] ? (b[0] - a[0]) / (b[1] - a[1]) : -1;
}
