/* JSON text, token by token: where each ends, or that it is not plain.
 *
 * "Not plain" (NULL) is whatever the plain reader had better look at: text that is no JSON, and JSON that
 * hardly any writer writes (halves of surrogate pairs, containers nested deeper than 64, numbers of more
 * than 64 digits). Nothing here reads at or behind `end`, writes, or allocates.
 */
#ifndef STEPCRIT_JSON_TEXT_H
#define STEPCRIT_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HAS_WORDS /* the first byte of a word is its lowest, and bits can be counted */
#endif

typedef const unsigned char *Place;

typedef struct {
    Place from, to; /* from == NULL: there is none */
} Span;

enum { MAX_DEPTH = 64, MAX_NUMBER = 64 };

/* What a walk over text takes notice of: some words, wherever they stand between quotation marks. */
typedef struct {
    Place end;
    unsigned words_seen; /* one bit a word */
} Walk;

typedef struct {
    const char *text;
    size_t size;
} Word;

/* Longer words first do not matter: they are told apart by their size. The order is the order of the bits. */
static const Word DATED_WORDS[] = {
    {"Trace iteration", 15}, {"Ev Idx", 6}, {"Record function id", 18}, {"graph node id", 13}, {"Comms Id", 8},
};
enum { DATED_COUNT = sizeof DATED_WORDS / sizeof DATED_WORDS[0] };
#define DATED_SIZES ((1u << 15) | (1u << 6) | (1u << 18) | (1u << 13) | (1u << 8))

static inline int is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline int is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static inline Place after_space(Place p, Place end)
{
    if (p < end && *p > ' ') {
        return p; /* mostly there is none, */
    }
    if (end - p > 1 && *p == ' ' && p[1] > ' ') {
        return p + 1; /* or one blank, */
    }
    while (p < end && is_space(*p)) {
        p++;
#ifdef HAS_WORDS
        if (end - p >= 8) { /* or a line end and some blanks */
            uint64_t x;
            memcpy(&x, p, 8);
            x ^= 0x2020202020202020u;
            p += x ? __builtin_ctzll(x) >> 3 : 8;
        }
#endif
    }
    return p;
}

/* Take notice of a word that stands between quotation marks. */
static inline void notice(Walk *walk, Place from, Place to)
{
    size_t size = (size_t)(to - from);
    if (size > 18 || !((DATED_SIZES >> size) & 1)) {
        return;
    }
    for (unsigned i = 0; i < DATED_COUNT; i++) {
        if (DATED_WORDS[i].size == size && !memcmp(DATED_WORDS[i].text, from, size)) {
            walk->words_seen |= 1u << i;
        }
    }
}

/* The first byte of text that may end a string or is wrong in it: a quotation mark, a backslash, a control. */
static inline Place to_special(Place p, Place end)
{
#if defined(__SSE2__) && defined(HAS_WORDS)
    const __m128i control = _mm_set1_epi8(0x1F), mark = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    while (end - p >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i is_control = _mm_cmpeq_epi8(_mm_min_epu8(x, control), x);
        __m128i is_other = _mm_or_si128(_mm_cmpeq_epi8(x, mark), _mm_cmpeq_epi8(x, backslash));
        unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(is_control, is_other));
        if (found) {
            return p + __builtin_ctz(found);
        }
        p += 16;
    }
#elif defined(HAS_WORDS)
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    while (end - p >= 8) {
        uint64_t x, quote, slash;
        memcpy(&x, p, 8);
        quote = x ^ (ones * '"');
        slash = x ^ (ones * '\\');
        /* The lowest of these bits is right; a borrow can only make a higher one wrong. */
        x = (((x - ones * 0x20) & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs;
        if (x) {
            return p + (__builtin_ctzll(x) >> 3);
        }
        p += 8;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) {
        p++;
    }
    return p;
}

static inline int hex_of(unsigned char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind an escape whose backslash is at p. */
static Place after_escape(Place p, Place end)
{
    if (end - p < 2) {
        return NULL;
    }
    switch (p[1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return p + 2;
    case 'u': {
        int code = 0;
        if (end - p < 6) {
            return NULL;
        }
        for (int i = 2; i < 6; i++) {
            int digit = hex_of(p[i]);
            if (digit < 0) {
                return NULL;
            }
            code = code * 16 + digit;
        }
        return code >= 0xD800 && code <= 0xDFFF ? NULL : p + 6;
    }
    default:
        return NULL;
    }
}

/* The closing quotation mark of a string with an escape at p, whose inside began at `from`. */
static Place escaped_end(Walk *walk, Place p)
{
    Place quoted = NULL;
    for (;;) {
        if (p >= walk->end || *p < 0x20) {
            return NULL;
        }
        if (*p == '"') {
            if (quoted) {
                notice(walk, quoted, p); /* "\"Ev Idx" holds the word between quotation marks, too */
            }
            return p;
        }
        if (*p != '\\') {
            p = to_special(p, walk->end);
            continue;
        }
        if (walk->end - p > 1 && p[1] == '"') {
            quoted = p + 2;
        }
        p = after_escape(p, walk->end);
        if (!p) {
            return NULL;
        }
    }
}

/* The closing quotation mark of a string whose inside begins at p. */
static inline Place string_end(Walk *walk, Place p, int *is_escaped)
{
    Place at = to_special(p, walk->end);
    *is_escaped = 0;
    if (at < walk->end && *at == '"') {
        notice(walk, p, at);
        return at;
    }
    *is_escaped = 1;
    return escaped_end(walk, at);
}

/* Behind a number; tells whether it is a whole one (without a fraction and an exponent). */
static inline Place number_end(Place p, Place end, int *is_whole)
{
    Place from = p;
    *is_whole = 1;
    if (p < end && *p == '-') {
        p++;
    }
    if (p >= end || !is_digit(*p)) {
        return NULL;
    }
    if (*p++ != '0') {
        while (p < end && is_digit(*p)) {
            p++;
        }
    }
    if (p < end && *p == '.') {
        *is_whole = 0;
        p++;
        if (p >= end || !is_digit(*p)) {
            return NULL;
        }
        while (p < end && is_digit(*p)) {
            p++;
        }
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        *is_whole = 0;
        p++;
        if (p < end && (*p == '+' || *p == '-')) {
            p++;
        }
        /* An exponent of three digits may be out of a float's range, which some decoders mind. */
        if (p >= end || !is_digit(*p) || (end - p > 2 && is_digit(p[1]) && is_digit(p[2]))) {
            return NULL;
        }
        while (p < end && is_digit(*p)) {
            p++;
        }
    }
    if (p - from > MAX_NUMBER || (p < end && is_digit(*p))) {
        return NULL;
    }
    return p;
}

/* Behind a whole number of up to 18 digits, and its value; NULL where it is anything else, for `number_end` to tell. */
static inline Place whole_end(Place p, Place end, int64_t *value)
{
    int is_negative = p < end && *p == '-';
    Place digits = p + is_negative;
    uint64_t sum = 0;
    for (p = digits; p < end && is_digit(*p); p++) {
        sum = sum * 10 + (uint64_t)(*p - '0');
    }
    if (p == digits || p - digits > 18 || p == end || *p == '.' || (*p | 0x20) == 'e' || (*digits == '0' && p - digits > 1)) {
        return NULL;
    }
    *value = is_negative ? -(int64_t)sum : (int64_t)sum;
    return p;
}

static inline Place literal_end(Place p, Place end)
{
    size_t left = (size_t)(end - p);
    if (left >= 4 && (!memcmp(p, "true", 4) || !memcmp(p, "null", 4))) {
        return p + 4;
    }
    return left >= 5 && !memcmp(p, "false", 5) ? p + 5 : NULL;
}

/* Behind a string, a number, true, false or null. */
static inline Place scalar_end(Walk *walk, Place p)
{
    int unused;
    if (p >= walk->end) {
        return NULL;
    }
    if (*p == '"') {
        p = string_end(walk, p + 1, &unused);
        return p ? p + 1 : NULL;
    }
    if (*p == '-' || is_digit(*p)) {
        return number_end(p, walk->end, &unused);
    }
    return literal_end(p, walk->end);
}

/* A member's key: its inside; the value's place is given back. A key with an escape is not plain. */
static inline Place key_end(Walk *walk, Place p, Span *key)
{
    int is_escaped;
    if (p >= walk->end || *p != '"') {
        return NULL;
    }
    key->from = p + 1;
    key->to = string_end(walk, p + 1, &is_escaped);
    if (!key->to || is_escaped) {
        return NULL;
    }
    p = after_space(key->to + 1, walk->end);
    if (p >= walk->end || *p != ':') {
        return NULL;
    }
    return after_space(p + 1, walk->end);
}

/* Behind a value of any kind. */
static Place value_end(Walk *walk, Place p)
{
    uint64_t objects = 0; /* the kind of each open container, the innermost in the lowest bit */
    int depth = 0;
    Span key;
    for (;;) {
        if (p >= walk->end) {
            return NULL;
        }
        if (*p == '{' || *p == '[') {
            int is_object = *p == '{';
            if (++depth > MAX_DEPTH) {
                return NULL;
            }
            objects = objects << 1 | (uint64_t)is_object;
            p = after_space(p + 1, walk->end);
            if (p < walk->end && *p != (is_object ? '}' : ']')) {
                p = is_object ? key_end(walk, p, &key) : p;
                if (!p) {
                    return NULL;
                }
                continue;
            }
        } else {
            p = scalar_end(walk, p);
            if (!p || !depth) {
                return p;
            }
        }
        /* A value has ended, or a container is empty: close what ends here. */
        for (;;) {
            int is_object = objects & 1;
            p = after_space(p, walk->end);
            if (p >= walk->end) {
                return NULL;
            }
            if (*p == (is_object ? '}' : ']')) {
                p++;
                objects >>= 1;
                if (!--depth) {
                    return p;
                }
                continue;
            }
            if (*p != ',') {
                return NULL;
            }
            p = after_space(p + 1, walk->end);
            p = is_object ? key_end(walk, p, &key) : p;
            if (!p) {
                return NULL;
            }
            break;
        }
    }
}

#endif
