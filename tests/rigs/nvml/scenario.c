/* Reads a scenario file. One fact a line; what is not said of a card is "not supported" there.
 *
 *   driver 550.54.15                       version of the driver
 *   cuda 12040                             the CUDA it brings, 12.4
 *   record /tmp/calls                      write the name of each call, and the card's number, into this file
 *   card 0 name NVIDIA H100                also: uuid, bus
 *   card 0 memory_used 1073741824          each number of scenario.h, by its name in small letters
 *   card 0 process 4711 1073741824         who computes on it; -1: its memory is not available
 *   instance 0 2 uuid MIG-...              part 2 of card 0: the same words as for a card
 *   process 4711 /usr/bin/python3          the name of a process
 *   event 0 79                             Xid 79 happens to card 0; what stands here before it is asked for is past
 *   call NAME fail 15 [after N] [card I]   NVML's error 15 from call N + 1 on; NAME may be *
 *   call NAME hang | crash [after N] [card I]
 */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *KEYS[NUMBERS] = {
    "memory_total", "memory_reserved", "memory_used", "utilization", "temperature", "slowdown", "shutdown", "power",
    "power_limit", "throttle", "ecc_uncorrected", "remapped_uncorrected", "remapped_pending", "remapped_failed",
    "retired_pending", "mig", "capability", "counts_reserved",
};

static void copy(char *to, const char *from) { snprintf(to, TEXT, "%s", from); }

static void read_fact(struct scenario *s, struct facts *facts, int card, int instance, const char *key, const char *rest) {
    facts->present = 1;
    if (!strcmp(key, "name")) copy(facts->name, rest);
    else if (!strcmp(key, "uuid")) copy(facts->uuid, rest);
    else if (!strcmp(key, "bus")) copy(facts->bus, rest);
    else if (!strcmp(key, "process")) {
        struct process *p = &s->process[s->processes];
        long long bytes = -1;
        if (s->processes < MAX_PROCESSES && sscanf(rest, "%u %lld", &p->pid, &bytes) == 2) {
            p->card = card, p->instance = instance, p->bytes = (unsigned long long)bytes; /* -1: not available */
            s->processes++;
        }
    } else for (int k = 0; k < NUMBERS; k++) if (!strcmp(key, KEYS[k])) {
        facts->known[k] = 1;
        facts->number[k] = strtoull(rest, NULL, 0);
    }
}

static void read_action(struct scenario *s, const char *call, const char *rest) {
    if (s->actions == MAX_ACTIONS) return;
    struct action *a = &s->action[s->actions];
    char does[TEXT] = "", option[TEXT];
    int used = 0, value;
    memset(a, 0, sizeof *a);
    copy(a->call, call);
    a->card = EVERY;
    if (sscanf(rest, "%95s%n", does, &used) != 1) return;
    rest += used;
    if (!strcmp(does, "fail")) {
        if (sscanf(rest, "%d%n", &value, &used) != 1) return;
        rest += used;
        a->does = FAIL;
        a->code = value;
    } else if (!strcmp(does, "hang")) a->does = HANG;
    else if (!strcmp(does, "crash")) a->does = CRASH;
    else return;
    for (; sscanf(rest, "%95s %d%n", option, &value, &used) == 2; rest += used) {
        if (!strcmp(option, "after")) a->after = value;
        if (!strcmp(option, "card")) a->card = value;
    }
    s->actions++;
}

static void read_line(struct scenario *s, char *line) {
    char word[TEXT] = "", key[TEXT] = "";
    int card, instance, used = 0;
    unsigned int pid;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%95s %n", word, &used) != 1) return;
    const char *rest = line + used;
    if (!strcmp(word, "driver")) copy(s->driver, rest);
    else if (!strcmp(word, "cuda")) s->cuda = atoi(rest);
    else if (!strcmp(word, "record")) snprintf(s->record, sizeof s->record, "%s", rest);
    else if (!strcmp(word, "card") && sscanf(rest, "%d %95s %n", &card, key, &used) == 2) {
        if (card < 0 || card >= MAX_CARDS) return;
        if (card >= s->cards) s->cards = card + 1;
        read_fact(s, &s->card[card], card, WHOLE, key, rest + used);
    } else if (!strcmp(word, "instance") && sscanf(rest, "%d %d %95s %n", &card, &instance, key, &used) == 3) {
        if (card < 0 || card >= MAX_CARDS || instance < 0 || instance >= MAX_INSTANCES) return;
        read_fact(s, &s->instance[card][instance], card, instance, key, rest + used);
    } else if (!strcmp(word, "process") && sscanf(rest, "%u %n", &pid, &used) == 1) {
        if (s->names == MAX_NAMES) return;
        s->name[s->names].pid = pid;
        copy(s->name[s->names++].text, rest + used);
    } else if (!strcmp(word, "event") && s->events < MAX_EVENTS) {
        struct event *e = &s->event[s->events];
        if (sscanf(rest, "%d %llu", &e->card, &e->xid) == 2) s->events++;
    } else if (!strcmp(word, "call") && sscanf(rest, "%95s %n", key, &used) == 1) read_action(s, key, rest + used);
}

int read_scenario(const char *path, struct scenario *found, long long *stamp) {
    struct stat at;
    char line[1024];
    if (!path || stat(path, &at)) return 0;
    long long now = at.st_mtim.tv_sec * 1000000000LL + at.st_mtim.tv_nsec + (long long)at.st_ino * 7 + at.st_size;
    if (now == *stamp) return 0;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    memset(found, 0, sizeof *found);
    while (fgets(line, sizeof line, file)) read_line(found, line);
    fclose(file);
    *stamp = now;
    return 1;
}
