/* Texts become small numbers: the first appearance of each counts. A cache that may be thrown away at any time. */
#ifndef STEPCRIT_WORDS_H
#define STEPCRIT_WORDS_H

#include "json_text.h"
#include <stdlib.h>

enum {
    MAX_WORD = 1 << 16, /* a longer one is not plain */
    MAX_PROBES = 256,   /* texts that are made to collide are not plain either */
    NO_CODE = -1,
    UNTOLD = INT32_MIN,
};

typedef struct {
    uint32_t hash, size;
    size_t at;    /* in the texts */
    int32_t told; /* what the word is to whom the columns are for; UNTOLD until that is asked */
} Entry;

typedef struct {
    Entry *entries;
    int32_t *slots; /* number of an entry, or NO_CODE; as many as a power of two */
    unsigned char *texts;
    size_t count, room, slot_count, texts_size, texts_room;
} Words;

static void words_free(Words *words)
{
    free(words->entries);
    free(words->slots);
    free(words->texts);
    memset(words, 0, sizeof *words);
}

static inline uint32_t hash_of(Place p, size_t size)
{
    uint64_t h = 0x9E3779B97F4A7C15u ^ size, x = 0;
    while (size >= 8) {
        memcpy(&x, p, 8);
        h = (h ^ x) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
        p += 8;
        size -= 8;
    }
    x = 0;
    memcpy(&x, p, size);
    h = (h ^ x) * 0xC4CEB9FE1A85EC53u;
    h ^= h >> 29;
    h *= 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32);
}

/* Twice as many slots, or the first ones. Tells whether there is memory. */
static int words_spread(Words *words)
{
    size_t count = words->slot_count ? words->slot_count * 2 : 1024;
    int32_t *slots = malloc(count * sizeof *slots);
    if (!slots) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        slots[i] = NO_CODE;
    }
    for (size_t i = 0; i < words->count; i++) {
        size_t slot = words->entries[i].hash & (count - 1);
        while (slots[slot] != NO_CODE) {
            slot = (slot + 1) & (count - 1);
        }
        slots[slot] = (int32_t)i;
    }
    free(words->slots);
    words->slots = slots;
    words->slot_count = count;
    return 1;
}

/* Room for one more entry with a text of some size. */
static int words_reserve(Words *words, size_t size)
{
    if (words->count == words->room) {
        size_t room = words->room ? words->room * 2 : 512;
        Entry *entries = realloc(words->entries, room * sizeof *entries);
        if (!entries) {
            return 0;
        }
        words->entries = entries;
        words->room = room;
    }
    if (words->texts_room - words->texts_size <= size) {
        size_t room = words->texts_room * 2 + size + 4096;
        unsigned char *texts = realloc(words->texts, room);
        if (!texts) {
            return 0;
        }
        words->texts = texts;
        words->texts_room = room;
    }
    return 1;
}

/* The number of a text, which is a new one where it has not been met; NO_CODE where it is not plain. */
static inline int32_t words_code(Words *words, Place from, size_t size)
{
    uint32_t hash;
    size_t slot, probes = 0;
    if (size > MAX_WORD || words->count > (size_t)INT32_MAX / 2) {
        return NO_CODE;
    }
    if (words->count * 2 >= words->slot_count && !words_spread(words)) {
        return NO_CODE;
    }
    hash = hash_of(from, size);
    slot = hash & (words->slot_count - 1);
    while (words->slots[slot] != NO_CODE) {
        const Entry *entry = &words->entries[words->slots[slot]];
        if (entry->hash == hash && entry->size == size && !memcmp(words->texts + entry->at, from, size)) {
            return words->slots[slot];
        }
        if (++probes > MAX_PROBES) {
            return NO_CODE;
        }
        slot = (slot + 1) & (words->slot_count - 1);
    }
    if (!words_reserve(words, size)) {
        return NO_CODE;
    }
    memcpy(words->texts + words->texts_size, from, size);
    words->entries[words->count] = (Entry){hash, (uint32_t)size, words->texts_size, UNTOLD};
    words->texts_size += size;
    words->slots[slot] = (int32_t)words->count;
    return (int32_t)words->count++;
}

#endif
