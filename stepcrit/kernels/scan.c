/* The text of trace events becomes columns, in one pass over its bytes.
 *
 * The plain reader (stepcrit.ingest.rows) says what is right. This one reads what writers usually write, and
 * gives back ("not plain") a whole piece of text in which there is anything else: damage, values of another
 * type than expected, escapes in keys, numbers out of range. So each error, and all that is counted about odd
 * events, is the plain reader's. What is taken here must come out as the plain reader would have it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "json_text.h"
#include "words.h"

enum { REVISION = 3 };

static const int64_t NONE = -1;
/* What stepcrit.ingest.times allows. */
static const int64_t MIN_NS = -((int64_t)1 << 60), MAX_NS = (int64_t)1 << 62, MAX_DURATION_NS = (int64_t)1 << 61;

/* --- tables of words ------------------------------------------------------------------------- */

typedef enum { CATS, NAMES, TRACKS, STACKS, MODULES, SHAPES, DTYPES, LABELS, TABLE_COUNT } Table;

/* --- columns --------------------------------------------------------------------------------- */

typedef enum {
    ROW_ORDER, ROW_START, ROW_DURATION, ROW_BEGINS, ROW_CAT, ROW_NAME, ROW_TRACK, ROW_STACK, ROW_MODULE, ROW_SHAPES,
    ROW_DTYPES, ROW_CORRELATION, ROW_EXTERNAL_ID, ROW_PYTHON_ID, ROW_SEQ, ROW_NBYTES, ROW_STREAM, ROW_DEVICE,
    END_ORDER, END_TIME, END_TRACK,
    FLOW_ORDER, FLOW_TIME, FLOW_IS_START, FLOW_CAT, FLOW_ID, FLOW_TRACK,
    MEMORY_ORDER, MEMORY_TIME, MEMORY_NBYTES, MEMORY_ALLOCATED, MEMORY_RESERVED, MEMORY_DEVICE_TYPE, MEMORY_DEVICE,
    KEPT_ORDER, KEPT_FROM, KEPT_TO,
    ODD_ID_AT, ODD_ID_FROM, ODD_ID_TO,
    MEMORY_CAT, LABEL,
    COLUMN_COUNT,
} ColumnId;

/* What columns are of. Of the first kinds, all that is kept is handed out at the end; of the others, each scan's. */
typedef enum {
    ROWS, ENDS, FLOWS, MEMORY,
    KEPT, ODD_IDS, MEMORY_CATS, METADATA,
    KIND_OF_ROW_COUNT, LASTING_KINDS = KEPT,
} KindOfRow;

typedef struct {
    const char *name;
    KindOfRow kind;
    unsigned char width;
    signed char table; /* of its words, or NO_TABLE */
} ColumnForm;

enum { NO_TABLE = -1 };

static const ColumnForm FORMS[COLUMN_COUNT] = {
    {"rows.order", ROWS, 8, NO_TABLE}, {"rows.start", ROWS, 8, NO_TABLE}, {"rows.duration", ROWS, 8, NO_TABLE},
    {"rows.begins", ROWS, 1, NO_TABLE}, {"rows.cat", ROWS, 4, CATS}, {"rows.name", ROWS, 4, NAMES},
    {"rows.track", ROWS, 4, TRACKS}, {"rows.stack", ROWS, 4, STACKS}, {"rows.module", ROWS, 4, MODULES},
    {"rows.shapes", ROWS, 4, SHAPES}, {"rows.dtypes", ROWS, 4, DTYPES}, {"rows.correlation", ROWS, 8, NO_TABLE},
    {"rows.external_id", ROWS, 8, NO_TABLE}, {"rows.python_id", ROWS, 8, NO_TABLE}, {"rows.seq", ROWS, 8, NO_TABLE},
    {"rows.nbytes", ROWS, 8, NO_TABLE}, {"rows.stream", ROWS, 8, NO_TABLE}, {"rows.device", ROWS, 8, NO_TABLE},
    {"ends.order", ENDS, 8, NO_TABLE}, {"ends.time", ENDS, 8, NO_TABLE}, {"ends.track", ENDS, 4, TRACKS},
    {"flows.order", FLOWS, 8, NO_TABLE}, {"flows.time", FLOWS, 8, NO_TABLE}, {"flows.is_start", FLOWS, 1, NO_TABLE},
    {"flows.cat", FLOWS, 4, CATS}, {"flows.id", FLOWS, 8, NO_TABLE}, {"flows.track", FLOWS, 4, TRACKS},
    {"memory.order", MEMORY, 8, NO_TABLE}, {"memory.time", MEMORY, 8, NO_TABLE}, {"memory.nbytes", MEMORY, 8, NO_TABLE},
    {"memory.allocated", MEMORY, 8, NO_TABLE}, {"memory.reserved", MEMORY, 8, NO_TABLE},
    {"memory.device_type", MEMORY, 8, NO_TABLE}, {"memory.device", MEMORY, 8, NO_TABLE},
    {"kept.order", KEPT, 8, NO_TABLE}, {"kept.from", KEPT, 8, NO_TABLE}, {"kept.to", KEPT, 8, NO_TABLE},
    {"odd_ids.at", ODD_IDS, 8, NO_TABLE}, {"odd_ids.from", ODD_IDS, 8, NO_TABLE}, {"odd_ids.to", ODD_IDS, 8, NO_TABLE},
    {"memory_cats", MEMORY_CATS, 4, CATS}, {"labels", METADATA, 4, LABELS},
};

/* How many rows of a kind its columns hold: those before `kept` are of texts before the last one scanned. */
typedef struct {
    size_t kept, count, room;
} Rows;

/* --- the arguments that are asked for -------------------------------------------------------- */

typedef enum {
    CORRELATION, NPU_CORRELATION, EXTERNAL_ID, OLD_EXTERNAL_ID, SEQ, /* of these, losses are told */
    PYTHON_ID, NBYTES, OLD_NBYTES, SIZE, STREAM, SYCL_QUEUE, L0_QUEUE, DEVICE, GRAPH,
    ALLOCATED, RESERVED, DEVICE_TYPE, DEVICE_ID,
    NUMBER_COUNT,
    STACK = NUMBER_COUNT, MODULE, COLLECTIVE, INPUT_DIMS, OLD_INPUT_DIMS, INPUT_TYPE,
    FIELD_COUNT,
    NO_FIELD = FIELD_COUNT,
} Field;

/* What losses are told of: arguments, and lists. */
enum { TOLD_COUNT = SEQ + 1, LOST_SHAPES = TOLD_COUNT, LOST_DTYPES, LOSS_COUNT };

enum { LOST_LIST = -2 }; /* what a word is that should be a list, and is none */

typedef enum {
    ABSENT, /* or the number -1, which stands for it */
    NUMBER,
    NO_NUMBER, /* a text that is no number, or a number that does not fit */
    ODD,       /* not for us to read */
} Kind;

typedef struct {
    Kind kind;
    int64_t value;
} Number;

typedef struct {
    Number numbers[NUMBER_COUNT];
    Span texts[FIELD_COUNT - NUMBER_COUNT]; /* of strings without, of lists with what encloses them */
    int is_odd_row, is_odd_memory;
} Arguments;

typedef struct {
    Span cat, name, pid, tid, id, args, attr;
    Number start, duration;
    Arguments arguments;
    unsigned char phase; /* 0: none */
    int has_arguments;   /* `arguments` holds those of `args` */
} Event;

typedef struct {
    PyObject_HEAD
    Words tables[TABLE_COUNT];
    Rows rows[KIND_OF_ROW_COUNT];
    unsigned char *columns[COLUMN_COUNT];
    int is_busy;
} Scanner;

typedef struct {
    Walk walk;
    Place text; /* where offsets count from */
    Scanner *into;
    int64_t order;
    int64_t phases[128];
    int64_t negative, lost[LOSS_COUNT];
    unsigned char scratch[MAX_WORD];
} Scan;

/* --- numbers --------------------------------------------------------------------------------- */

/* A run of digits as a whole number. */
static Number whole_number(Place p, Place end)
{
    int is_negative = p < end && *p == '-';
    uint64_t value = 0;
    p += is_negative;
    if (end - p > 19) { /* 2^64 has 20 digits */
        uint64_t last;
        if (end - p > 20 || *p != '1') {
            return (Number){ODD, NONE};
        }
        for (Place q = p; q < end - 1; q++) {
            value = value * 10 + (uint64_t)(*q - '0');
        }
        last = (uint64_t)(end[-1] - '0');
        if (is_negative || value > (UINT64_MAX - last) / 10) {
            return (Number){ODD, NONE};
        }
        return (Number){NO_NUMBER, NONE};
    }
    while (p < end) {
        value = value * 10 + (uint64_t)(*p++ - '0');
    }
    if (value > (uint64_t)INT64_MAX) {
        return (Number){is_negative ? ODD : NO_NUMBER, NONE};
    }
    return (Number){NUMBER, is_negative ? -(int64_t)value : (int64_t)value};
}

static int are_digits(Place p, Place end)
{
    if (p < end && *p == '-') {
        p++;
    }
    if (p >= end) {
        return 0;
    }
    while (p < end) {
        if (!is_digit(*p++)) {
            return 0;
        }
    }
    return 1;
}

/* A whole number from the inside of a string. What Python's int() may yet make a number of is odd. */
static Number quoted_number(Place p, Place end)
{
    if (are_digits(p, end)) {
        Number number = end - p > 18 ? (Number){ODD, NONE} : whole_number(p, end);
        /* "-01" is -1, and counted where it is not written so */
        return number.value == NONE && end - p != 2 ? (Number){ODD, NONE} : number;
    }
    if (p == end) {
        return (Number){NO_NUMBER, NONE};
    }
    for (; p < end; p++) {
        unsigned char c = *p;
        if (c > ' ' && c < 0x7F && c != '+' && c != '-' && c != '_' && !is_digit(c)) {
            return (Number){NO_NUMBER, NONE};
        }
    }
    return (Number){ODD, NONE};
}

/* A value that should be a whole number or its text; behind it. */
static Place number_value(Walk *walk, Place p, Number *number)
{
    Place from = p;
    int is_plain;
    if (p < walk->end && *p == '"') {
        p = string_end(walk, p + 1, &is_plain); /* tells whether there is an escape */
        if (!p) {
            return NULL;
        }
        *number = is_plain ? (Number){ODD, NONE} : quoted_number(from + 1, p);
        return p + 1;
    }
    if (p < walk->end && (*p == '-' || is_digit(*p))) {
        p = whole_end(from, walk->end, &number->value);
        number->kind = NUMBER;
        if (!p) {
            p = number_end(from, walk->end, &is_plain);
            if (!p) {
                return NULL;
            }
            *number = is_plain ? whole_number(from, p) : (Number){ODD, NONE};
        }
        if (number->kind == NUMBER && number->value == NONE) {
            number->kind = ABSENT;
        }
        return p;
    }
    *number = (Number){ODD, NONE};
    return value_end(walk, p);
}

/* Microseconds, written `812`, `812.5` or `"812.5"`, as nanoseconds, cut off behind them. */
static Number time_of(Place p, Place end)
{
    int is_negative, digits = 0;
    int64_t value = 0;
    if (p < end && *p == '"') {
        p++;
        end--;
    }
    is_negative = p < end && *p == '-';
    p += is_negative;
    for (; p < end && is_digit(*p); p++) {
        if (++digits > 16) {
            return (Number){ODD, 0};
        }
        value = value * 10 + (*p - '0');
    }
    if (!digits || value > MAX_NS / 1000 - 1) {
        return (Number){ODD, 0};
    }
    value *= 1000;
    if (p < end) {
        int64_t unit = 100;
        if (*p++ != '.' || p == end || end - p > 9) {
            return (Number){ODD, 0};
        }
        for (; p < end; p++) {
            if (!is_digit(*p)) {
                return (Number){ODD, 0};
            }
            value += unit * (*p - '0');
            unit /= 10;
        }
    }
    return (Number){NUMBER, is_negative ? -value : value};
}

/* A value that should be a time; behind it. */
static Place time_value(Walk *walk, Place p, Number *number)
{
    Place end = value_end(walk, p);
    if (end) {
        *number = time_of(p, end);
    }
    return end;
}

/* --- fields of events and arguments ---------------------------------------------------------- */

static inline int is(Span span, const char *text, size_t size)
{
    return (size_t)(span.to - span.from) == size && !memcmp(span.from, text, size);
}
#define IS(span, text) is(span, text, sizeof(text) - 1)

static Field field_of(Span key)
{
    switch (key.to - key.from) {
    case 4:
        return IS(key, "size") ? SIZE : NO_FIELD;
    case 5:
        return IS(key, "bytes") ? NBYTES : IS(key, "Bytes") ? OLD_NBYTES : NO_FIELD;
    case 6:
        return IS(key, "stream") ? STREAM : IS(key, "device") ? DEVICE : NO_FIELD;
    case 8:
        return IS(key, "graph id") ? GRAPH : IS(key, "l0 queue") ? L0_QUEUE : NO_FIELD;
    case 9:
        return IS(key, "Python id") ? PYTHON_ID : IS(key, "Device Id") ? DEVICE_ID : NO_FIELD;
    case 10:
        return IS(key, "Input Dims")   ? INPUT_DIMS
               : IS(key, "Input type") ? INPUT_TYPE
               : IS(key, "Call stack") ? STACK
               : IS(key, "sycl queue") ? SYCL_QUEUE
               : IS(key, "Input dims") ? OLD_INPUT_DIMS
                                       : NO_FIELD;
    case 11:
        return IS(key, "External id")   ? EXTERNAL_ID
               : IS(key, "correlation") ? CORRELATION
               : IS(key, "external id") ? OLD_EXTERNAL_ID
               : IS(key, "Device Type") ? DEVICE_TYPE
                                        : NO_FIELD;
    case 14:
        return IS(key, "correlation_id") ? NPU_CORRELATION : IS(key, "Total Reserved") ? RESERVED : NO_FIELD;
    case 15:
        return IS(key, "Sequence number")   ? SEQ
               : IS(key, "Collective name") ? COLLECTIVE
               : IS(key, "Total Allocated") ? ALLOCATED
                                            : NO_FIELD;
    case 16:
        return IS(key, "Module Hierarchy") ? MODULE : NO_FIELD;
    default:
        return NO_FIELD;
    }
}

/* The value of an argument that is asked for; behind it. */
static Place argument_value(Walk *walk, Place p, Field field, Arguments *arguments)
{
    Place from = p;
    if (field < NUMBER_COUNT) {
        int is_of_memory = field >= ALLOCATED;
        Number *number = &arguments->numbers[field];
        p = number_value(walk, p, number);
        if (!p) {
            return NULL;
        }
        if (number->kind == ODD || (field == GRAPH && (*from == '"' || number->kind == NO_NUMBER))) {
            arguments->is_odd_row |= !is_of_memory;
            arguments->is_odd_memory |= is_of_memory || field == OLD_NBYTES;
        }
        return p;
    }
    p = value_end(walk, p);
    if (p) {
        if (field <= COLLECTIVE && *from != '"') {
            arguments->is_odd_row = 1;
        }
        arguments->texts[field - NUMBER_COUNT] = (Span){from, p};
    }
    return p;
}

/* The arguments of an event; behind them. */
static Place arguments_value(Walk *walk, Place p, Arguments *arguments)
{
    for (int i = 0; i < NUMBER_COUNT; i++) {
        arguments->numbers[i] = (Number){ABSENT, NONE};
    }
    memset(arguments->texts, 0, sizeof arguments->texts);
    arguments->is_odd_row = arguments->is_odd_memory = 0;
    if (p >= walk->end || *p != '{') {
        arguments->is_odd_row = arguments->is_odd_memory = 1;
        return value_end(walk, p);
    }
    p = after_space(p + 1, walk->end);
    if (p < walk->end && *p == '}') {
        return p + 1;
    }
    for (;;) {
        Span key;
        Field field;
        p = key_end(walk, p, &key);
        if (!p) {
            return NULL;
        }
        field = field_of(key);
        p = field == NO_FIELD ? value_end(walk, p) : argument_value(walk, p, field, arguments);
        if (!p) {
            return NULL;
        }
        p = after_space(p, walk->end);
        if (p >= walk->end || (*p != ',' && *p != '}')) {
            return NULL;
        }
        if (*p++ == '}') {
            return p;
        }
        p = after_space(p, walk->end);
    }
}

/* A value that should be a name or a number: a string, a whole number or null; behind it. */
static Place label_value(Walk *walk, Place p, Span *label)
{
    Place from = p;
    int64_t unused;
    if (p < walk->end && (*p == '-' || is_digit(*p))) {
        p = whole_end(from, walk->end, &unused);
        if (!p) {
            int is_whole;
            p = number_end(from, walk->end, &is_whole);
            if (!p || !is_whole || whole_number(from, p).kind == ODD) {
                return NULL;
            }
        }
    } else {
        p = scalar_end(walk, p);
        if (!p || *from == 't' || *from == 'f') {
            return NULL;
        }
    }
    *label = (Span){from, p};
    return p;
}

/* A phase: one letter, or none; behind it. */
static Place phase_value(Walk *walk, Place p, unsigned char *phase)
{
    Span inside;
    int is_escaped;
    if (p >= walk->end || *p != '"') {
        return NULL;
    }
    inside.from = p + 1;
    inside.to = string_end(walk, p + 1, &is_escaped);
    if (!inside.to || is_escaped || inside.to - inside.from > 1) {
        return NULL;
    }
    *phase = inside.to == inside.from ? 0 : *inside.from;
    return *phase < 0x80 ? inside.to + 1 : NULL;
}

static int may_need_arguments(unsigned char phase)
{
    return !phase || phase == 'X' || phase == 'B' || phase == 'i' || phase == 'I' || phase == 'R';
}

/* One member of an event, whose value is at p; behind it. */
static Place member_value(Walk *walk, Place p, Span key, Event *event)
{
    Place end;
    switch (key.to - key.from) {
    case 2:
        return IS(key, "ph")   ? phase_value(walk, p, &event->phase)
               : IS(key, "ts") ? time_value(walk, p, &event->start)
               : IS(key, "id") ? label_value(walk, p, &event->id)
                               : value_end(walk, p);
    case 3:
        return IS(key, "cat")   ? label_value(walk, p, &event->cat)
               : IS(key, "pid") ? label_value(walk, p, &event->pid)
               : IS(key, "tid") ? label_value(walk, p, &event->tid)
               : IS(key, "dur") ? time_value(walk, p, &event->duration)
                                : value_end(walk, p);
    case 4:
        if (IS(key, "name")) {
            return label_value(walk, p, &event->name);
        }
        if (IS(key, "args")) {
            event->has_arguments = may_need_arguments(event->phase);
            end = event->has_arguments ? arguments_value(walk, p, &event->arguments) : value_end(walk, p);
            event->args = (Span){p, end};
            return end;
        }
        end = value_end(walk, p);
        if (IS(key, "attr")) {
            event->attr = (Span){p, end};
        }
        return end;
    default:
        return value_end(walk, p);
    }
}

/* One event; behind it. */
static Place event_value(Walk *walk, Place p, Event *event)
{
    memset(event, 0, offsetof(Event, start));
    event->start = (Number){ABSENT, 0};
    event->duration = (Number){NUMBER, 0};
    event->phase = 0;
    event->has_arguments = 0;
    if (p >= walk->end || *p != '{') {
        return NULL;
    }
    p = after_space(p + 1, walk->end);
    if (p < walk->end && *p == '}') {
        return p + 1;
    }
    for (;;) {
        Span key;
        p = key_end(walk, p, &key);
        p = p ? member_value(walk, p, key, event) : NULL;
        if (!p) {
            return NULL;
        }
        p = after_space(p, walk->end);
        if (p >= walk->end || (*p != ',' && *p != '}')) {
            return NULL;
        }
        if (*p++ == '}') {
            return p;
        }
        p = after_space(p, walk->end);
    }
}

/* --- from events to columns ------------------------------------------------------------------ */

/* Room for twice as many rows of a kind, or for the first ones. */
static int grow(Scanner *into, KindOfRow kind)
{
    size_t room = into->rows[kind].room ? into->rows[kind].room * 2 : 512;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (FORMS[i].kind == kind) {
            unsigned char *data = realloc(into->columns[i], room * FORMS[i].width);
            if (!data) {
                return 0; /* some columns have more room than they are told to have, which does no harm */
            }
            into->columns[i] = data;
        }
    }
    into->rows[kind].room = room;
    return 1;
}

/* Begin a row: each column of its kind is to be put next. */
static inline int begin(Scan *scan, KindOfRow kind)
{
    Rows *rows = &scan->into->rows[kind];
    if (rows->count == rows->room && !grow(scan->into, kind)) {
        return 0;
    }
    rows->count++;
    return 1;
}

/* Put a value in the row that was begun last. */
static inline int put(Scan *scan, ColumnId id, int64_t value)
{
    unsigned char *data = scan->into->columns[id];
    size_t row = scan->into->rows[FORMS[id].kind].count - 1;
    if (FORMS[id].width == 8) {
        memcpy(data + row * 8, &value, 8);
    } else if (FORMS[id].width == 4) {
        int32_t small = (int32_t)value;
        memcpy(data + row * 4, &small, 4);
    } else {
        data[row] = (unsigned char)value;
    }
    return 1;
}

/* Add the number of a word; the empty one where there is none. */
static inline int put_word(Scan *scan, ColumnId id, Table table, Span span)
{
    int32_t code = 0;
    if (span.from) {
        code = words_code(&scan->into->tables[table], span.from, (size_t)(span.to - span.from));
    }
    return code != NO_CODE && put(scan, id, code);
}

/* Append to the scratch text, with a zero byte behind it. */
static int pack(Scan *scan, size_t *size, Span span, const char *absent)
{
    size_t length = span.from ? (size_t)(span.to - span.from) : strlen(absent);
    if (length >= sizeof scan->scratch - *size) {
        return 0;
    }
    memcpy(scan->scratch + *size, span.from ? (const void *)span.from : (const void *)absent, length);
    *size += length;
    scan->scratch[(*size)++] = 0;
    return 1;
}

static int put_track(Scan *scan, ColumnId id, const Event *event)
{
    size_t size = 0;
    int32_t code;
    if (!pack(scan, &size, event->pid, "\"\"") || !pack(scan, &size, event->tid, "\"\"")) {
        return 0;
    }
    code = words_code(&scan->into->tables[TRACKS], scan->scratch, size);
    return code != NO_CODE && put(scan, id, code);
}

static inline int64_t first_of(Number one, Number other, Number third)
{
    return one.kind != ABSENT ? one.value : other.kind != ABSENT ? other.value : third.value;
}

static int put_numbers(Scan *scan, const Number *of)
{
    int64_t correlation = of[CORRELATION].value, external = of[EXTERNAL_ID].value;
    for (int i = 0; i < TOLD_COUNT; i++) {
        scan->lost[i] += of[i].kind == NO_NUMBER;
    }
    return put(scan, ROW_CORRELATION, correlation > 0 ? correlation : of[NPU_CORRELATION].value)
           && put(scan, ROW_EXTERNAL_ID, external == NONE ? of[OLD_EXTERNAL_ID].value : external)
           && put(scan, ROW_PYTHON_ID, of[PYTHON_ID].value) && put(scan, ROW_SEQ, of[SEQ].value)
           && put(scan, ROW_NBYTES, first_of(of[NBYTES], of[OLD_NBYTES], of[SIZE]))
           && put(scan, ROW_STREAM, first_of(of[STREAM], of[SYCL_QUEUE], of[L0_QUEUE]))
           && put(scan, ROW_DEVICE, of[DEVICE].value);
}

/* Whether a row keeps all its arguments. */
static int keeps_arguments(const Event *event)
{
    Span collective = event->arguments.texts[COLLECTIVE - NUMBER_COUNT];
    return (collective.from && collective.to - collective.from > 2) || event->arguments.numbers[GRAPH].value > 0
           || (event->cat.from && IS(event->cat, "\"cuda_sync\""));
}

static int has_escape(Span span)
{
    return span.from && memchr(span.from, '\\', (size_t)(span.to - span.from)) != NULL;
}

static int put_kept(Scan *scan, Span arguments)
{
    return begin(scan, KEPT) && put(scan, KEPT_ORDER, scan->order) && put(scan, KEPT_FROM, arguments.from - scan->text)
           && put(scan, KEPT_TO, arguments.to - scan->text);
}

/* A row with a duration. */
static int take_row(Scan *scan, Event *event)
{
    Arguments *of = &event->arguments;
    Span given = event->args.from ? event->args : event->attr;
    Span shapes;
    int64_t duration = event->duration.value;
    if (event->start.kind != NUMBER || event->start.value < MIN_NS || event->duration.kind != NUMBER
        || duration > MAX_DURATION_NS || has_escape(event->cat)) {
        return 0;
    }
    if (!event->has_arguments) { /* none, or under the other name, or met before the phase was */
        static const unsigned char none[] = "{}";
        Walk walk = {given.from ? given.to : none + 2, 0};
        if (!arguments_value(&walk, given.from ? given.from : none, of)) {
            return 0;
        }
    }
    if (of->is_odd_row) {
        return 0;
    }
    if (keeps_arguments(event)) {
        if (!given.from || !put_kept(scan, given)) {
            return 0;
        }
    }
    scan->negative += duration < 0;
    shapes = of->texts[INPUT_DIMS - NUMBER_COUNT];
    shapes = shapes.from ? shapes : of->texts[OLD_INPUT_DIMS - NUMBER_COUNT];
    return begin(scan, ROWS) && put(scan, ROW_ORDER, scan->order) && put(scan, ROW_START, event->start.value)
           && put(scan, ROW_DURATION, duration < 0 ? 0 : duration) && put(scan, ROW_BEGINS, event->phase == 'B')
           && put_word(scan, ROW_CAT, CATS, event->cat) && put_word(scan, ROW_NAME, NAMES, event->name)
           && put_track(scan, ROW_TRACK, event)
           && put_word(scan, ROW_STACK, STACKS, of->texts[STACK - NUMBER_COUNT])
           && put_word(scan, ROW_MODULE, MODULES, of->texts[MODULE - NUMBER_COUNT])
           && put_word(scan, ROW_SHAPES, SHAPES, shapes)
           && put_word(scan, ROW_DTYPES, DTYPES, of->texts[INPUT_TYPE - NUMBER_COUNT]) && put_numbers(scan, of->numbers);
}

static int is_usable(Number time)
{
    return time.kind == NUMBER && time.value >= MIN_NS;
}

static int take_end(Scan *scan, const Event *event)
{
    return is_usable(event->start) && begin(scan, ENDS) && put(scan, END_ORDER, scan->order) && put(scan, END_TIME, event->start.value)
           && put_track(scan, END_TRACK, event);
}

/* The number of a flow arrow, where it is one; else where it stands, for the plain reader to number. */
static int put_id(Scan *scan, Span id)
{
    if (id.from && (*id.from == '-' || is_digit(*id.from))) {
        Number number = whole_number(id.from, id.to);
        if (number.kind == NUMBER) {
            return put(scan, FLOW_ID, number.value);
        }
    }
    const Rows *flows = &scan->into->rows[FLOWS];
    return begin(scan, ODD_IDS) && put(scan, ODD_ID_AT, (int64_t)(flows->count - 1 - flows->kept))
           && put(scan, ODD_ID_FROM, id.from ? id.from - scan->text : NONE)
           && put(scan, ODD_ID_TO, id.from ? id.to - scan->text : NONE) && put(scan, FLOW_ID, 0);
}

static int take_flow(Scan *scan, const Event *event)
{
    return is_usable(event->start) && begin(scan, FLOWS) && put(scan, FLOW_ORDER, scan->order)
           && put(scan, FLOW_TIME, event->start.value)
           && put(scan, FLOW_IS_START, event->phase == 's') && put_word(scan, FLOW_CAT, CATS, event->cat)
           && put_id(scan, event->id) && put_track(scan, FLOW_TRACK, event);
}

/* An allocator event, if it is one. */
static int take_instant(Scan *scan, const Event *event)
{
    const Number *of = event->arguments.numbers;
    if (has_escape(event->name)) {
        return 0;
    }
    if (!event->name.from || !IS(event->name, "\"[memory]\"")) {
        return 1;
    }
    if (!is_usable(event->start) || !begin(scan, MEMORY_CATS)
        || !put_word(scan, MEMORY_CAT, CATS, event->cat)) {
        return 0;
    }
    if (!event->has_arguments || event->arguments.is_odd_memory || of[OLD_NBYTES].kind != NUMBER) {
        return 0;
    }
    return begin(scan, MEMORY) && put(scan, MEMORY_ORDER, scan->order) && put(scan, MEMORY_TIME, event->start.value)
           && put(scan, MEMORY_NBYTES, of[OLD_NBYTES].value) && put(scan, MEMORY_ALLOCATED, of[ALLOCATED].value)
           && put(scan, MEMORY_RESERVED, of[RESERVED].value) && put(scan, MEMORY_DEVICE_TYPE, of[DEVICE_TYPE].value)
           && put(scan, MEMORY_DEVICE, of[DEVICE_ID].value);
}

/* The name of a thread or of a process, if it is one. */
static int take_metadata(Scan *scan, const Event *event)
{
    size_t size = 1;
    int32_t code;
    if (has_escape(event->name)) {
        return 0;
    }
    if (!event->name.from) {
        return 1;
    }
    if (IS(event->name, "\"thread_name\"")) {
        scan->scratch[0] = 't';
    } else if (IS(event->name, "\"process_name\"")) {
        scan->scratch[0] = 'p';
    } else {
        return 1;
    }
    if (!pack(scan, &size, event->pid, "\"\"") || !pack(scan, &size, event->tid, "\"\"")
        || !pack(scan, &size, event->args, "{}")) {
        return 0;
    }
    code = words_code(&scan->into->tables[LABELS], scan->scratch, size);
    return code != NO_CODE && begin(scan, METADATA) && put(scan, LABEL, code);
}

static int take(Scan *scan, Event *event)
{
    scan->phases[event->phase]++;
    switch (event->phase) {
    case 'X': case 'B':
        return take_row(scan, event);
    case 'E':
        return take_end(scan, event);
    case 's': case 'f':
        return take_flow(scan, event);
    case 'i': case 'I': case 'R':
        return take_instant(scan, event);
    case 'M':
        return take_metadata(scan, event);
    default:
        return 1;
    }
}

/* All events of a text without the brackets around it. Tells whether it was plain. */
static int scan_events(Scan *scan, Place p)
{
    Walk *walk = &scan->walk;
    Event event;
    p = after_space(p, walk->end);
    while (p < walk->end) {
        p = event_value(walk, p, &event);
        if (!p || !take(scan, &event)) {
            return 0;
        }
        scan->order++;
        p = after_space(p, walk->end);
        if (p == walk->end) {
            break;
        }
        if (*p != ',') {
            return 0;
        }
        p = after_space(p + 1, walk->end);
        if (p == walk->end) {
            return 0;
        }
    }
    return 1;
}

/* --- the face to Python ---------------------------------------------------------------------- */

/* Memory of a column that was handed out. It is moved here, and may be written to: nobody else has it. */
typedef struct {
    PyObject_HEAD
    unsigned char *data;
    size_t size;
} Block;

static PyObject *block_type; /* set when the module is loaded */

static int block_buffer(Block *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)self, self->data, (Py_ssize_t)self->size, 0, flags);
}

static void block_dealloc(Block *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free(self->data);
    release(self);
    Py_DECREF(type);
}

/* Move a column's memory into a view of a new block; what has no rows is one byte that nobody sees. */
static PyObject *view_of(unsigned char **data, size_t size)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)block_type, Py_tp_alloc);
    unsigned char *shrunk = realloc(*data, size ? size : 1);
    PyObject *view;
    Block *block = shrunk ? (Block *)allocate((PyTypeObject *)block_type, 0) : NULL;
    *data = shrunk ? shrunk : *data;
    if (!block) {
        return PyErr_NoMemory();
    }
    block->data = shrunk;
    block->size = size;
    *data = NULL;
    view = PyMemoryView_FromObject((PyObject *)block);
    Py_DECREF(block);
    return view;
}

static PyType_Slot BLOCK_SLOTS[] = {
    {Py_tp_doc, "A column's memory."},
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_bf_getbuffer, (void *)block_buffer},
    {0, NULL},
};

static PyType_Spec BLOCK = {
    "stepcrit.kernels._scan.Block", (int)sizeof(Block), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    BLOCK_SLOTS,
};

static void set_item(PyObject *dict, const char *key, PyObject *value, int *is_bad)
{
    if (!value || PyDict_SetItemString(dict, key, value) < 0) {
        *is_bad = 1;
    }
    Py_XDECREF(value);
}

/* Ask what a word is: `tell(table, text)` gives a number of 32 bits. Tells whether it did. */
static int ask(Words *words, int table, int32_t number, PyObject *tell)
{
    Entry *entry = &words->entries[number];
    PyObject *answer = PyObject_CallFunction(tell, "iy#", table, (const char *)words->texts + entry->at,
                                             (Py_ssize_t)entry->size);
    long told = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        return 0;
    }
    if (told <= UNTOLD || told > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a word's number has 32 bits");
        return 0;
    }
    words->entries[number].told = (int32_t)told;
    return 1;
}

/* Put in a column of words what they are instead of their numbers here; counts those that are lost lists. */
static int tell_words(Scan *scan, ColumnId id, PyObject *tell)
{
    const Rows *rows = &scan->into->rows[FORMS[id].kind];
    int table = FORMS[id].table;
    Words *words = &scan->into->tables[table];
    int32_t *codes = (int32_t *)(void *)scan->into->columns[id];
    for (size_t i = rows->kept; i < rows->count; i++) {
        int32_t told = words->entries[codes[i]].told;
        if (told == UNTOLD) {
            if (!ask(words, table, codes[i], tell)) {
                return 0;
            }
            told = words->entries[codes[i]].told;
        }
        if (told == LOST_LIST) {
            scan->lost[table == SHAPES ? LOST_SHAPES : LOST_DTYPES]++;
            told = NO_CODE;
        }
        codes[i] = told;
    }
    return 1;
}

static PyObject *bytes_of(const void *data, size_t size)
{
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

/* What a scan found, besides what lasts: a dict of columns (bytes) and counts. */
static PyObject *found_of(Scan *scan, PyObject *tell)
{
    PyObject *found = PyDict_New();
    int is_bad = !found;
    for (int i = 0; i < COLUMN_COUNT && !is_bad; i++) {
        is_bad = FORMS[i].table != NO_TABLE && !tell_words(scan, (ColumnId)i, tell);
    }
    for (int i = 0; i < COLUMN_COUNT && !is_bad; i++) {
        if (FORMS[i].kind >= LASTING_KINDS) {
            size_t size = scan->into->rows[FORMS[i].kind].count * FORMS[i].width;
            set_item(found, FORMS[i].name, bytes_of(scan->into->columns[i], size), &is_bad);
        }
    }
    if (!is_bad) {
        set_item(found, "phases", bytes_of(scan->phases, sizeof scan->phases), &is_bad);
    }
    if (!is_bad) {
        set_item(found, "lost", bytes_of(scan->lost, sizeof scan->lost), &is_bad);
    }
    if (!is_bad) {
        set_item(found, "count", PyLong_FromLongLong(scan->order), &is_bad);
    }
    if (!is_bad) {
        set_item(found, "negative", PyLong_FromLongLong(scan->negative), &is_bad);
    }
    if (!is_bad) {
        set_item(found, "dated", PyLong_FromUnsignedLong(scan->walk.words_seen), &is_bad);
    }
    if (is_bad) {
        Py_CLEAR(found);
    }
    return found;
}

/* Forget the rows that were not kept. */
static void forget(Scanner *self)
{
    for (int i = 0; i < KIND_OF_ROW_COUNT; i++) {
        self->rows[i].count = self->rows[i].kept;
    }
}

static int is_free(const Scanner *self)
{
    if (self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "a scanner serves one thread at a time");
    }
    return !self->is_busy;
}

static PyObject *scanner_scan(Scanner *self, PyObject *args)
{
    PyObject *text, *tell, *found;
    Py_ssize_t from, to;
    Scan *scan;
    int is_plain;
    if (!PyArg_ParseTuple(args, "SnnO", &text, &from, &to, &tell)) {
        return NULL;
    }
    if (from < 0 || from > to || to > PyBytes_Size(text)) {
        PyErr_SetString(PyExc_ValueError, "no such part of the text");
        return NULL;
    }
    if (!is_free(self)) {
        return NULL;
    }
    scan = calloc(1, sizeof *scan);
    if (!scan) {
        return PyErr_NoMemory();
    }
    scan->text = (Place)PyBytes_AsString(text);
    scan->walk.end = scan->text + to;
    scan->into = self;
    self->is_busy = 1;
    forget(self);
    Py_BEGIN_ALLOW_THREADS
    is_plain = scan_events(scan, scan->text + from);
    Py_END_ALLOW_THREADS
    if (is_plain) {
        found = found_of(scan, tell);
    } else {
        found = Py_None;
        Py_INCREF(found);
    }
    if (!is_plain || !found) {
        forget(self);
    }
    self->is_busy = 0;
    free(scan);
    return found;
}

/* Keep the rows of the text scanned last, now that it is known which event of the file its first one is. */
static PyObject *scanner_keep(Scanner *self, PyObject *args)
{
    static const ColumnId orders[LASTING_KINDS] = {ROW_ORDER, END_ORDER, FLOW_ORDER, MEMORY_ORDER};
    long long first;
    if (!PyArg_ParseTuple(args, "L", &first) || !is_free(self)) {
        return NULL;
    }
    for (int kind = 0; kind < LASTING_KINDS; kind++) {
        Rows *rows = &self->rows[kind];
        int64_t *order = (int64_t *)(void *)self->columns[orders[kind]];
        for (size_t i = rows->kept; i < rows->count; i++) {
            order[i] += first;
        }
        rows->kept = rows->count;
    }
    Py_RETURN_NONE;
}

/* Set what the plain reader says that an id is, of a flow arrow of the text scanned last. */
static PyObject *scanner_set_flow_id(Scanner *self, PyObject *args)
{
    const Rows *flows = &self->rows[FLOWS];
    Py_ssize_t at;
    long long id;
    if (!PyArg_ParseTuple(args, "nL", &at, &id) || !is_free(self)) {
        return NULL;
    }
    if (at < 0 || (size_t)at >= flows->count - flows->kept) {
        PyErr_SetString(PyExc_IndexError, "no such flow arrow");
        return NULL;
    }
    ((int64_t *)(void *)self->columns[FLOW_ID])[flows->kept + (size_t)at] = id;
    Py_RETURN_NONE;
}

/* Hand out all rows that were kept, and begin anew with none. */
static PyObject *scanner_take(Scanner *self, PyObject *unused)
{
    PyObject *taken;
    int is_bad = 0;
    (void)unused;
    if (!is_free(self)) {
        return NULL;
    }
    taken = PyDict_New();
    is_bad = !taken;
    for (int i = 0; i < COLUMN_COUNT && !is_bad; i++) {
        if (FORMS[i].kind < LASTING_KINDS) {
            size_t size = self->rows[FORMS[i].kind].kept * FORMS[i].width;
            set_item(taken, FORMS[i].name, view_of(&self->columns[i], size), &is_bad);
        }
    }
    for (int kind = 0; kind < LASTING_KINDS; kind++) {
        self->rows[kind] = (Rows){0, 0, 0};
    }
    if (is_bad) {
        Py_CLEAR(taken);
    }
    return taken;
}

static PyObject *scanner_size(Scanner *self, PyObject *unused)
{
    size_t size = 0;
    (void)unused;
    for (int i = 0; i < TABLE_COUNT; i++) {
        size += self->tables[i].texts_size + self->tables[i].count * (sizeof(Entry) + 2 * sizeof(int32_t));
    }
    return PyLong_FromSize_t(size);
}

/* The empty word is number 0 of each table, written as it stands in a file where it is a string. */
static int set_up(Scanner *self)
{
    static const unsigned char empty[] = "\"\"";
    for (int i = CATS; i < TABLE_COUNT; i++) {
        size_t size = i == SHAPES || i == DTYPES || i == TRACKS || i == LABELS ? 0 : 2;
        if (words_code(&self->tables[i], empty, size) != 0) {
            return 0;
        }
    }
    return 1;
}

static PyObject *scanner_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Scanner *self;
    (void)args;
    (void)keywords;
    self = (Scanner *)allocate(type, 0);
    if (self && !set_up(self)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void scanner_dealloc(Scanner *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    for (int i = 0; i < TABLE_COUNT; i++) {
        words_free(&self->tables[i]);
    }
    for (int i = 0; i < COLUMN_COUNT; i++) {
        free(self->columns[i]);
    }
    release(self);
    Py_DECREF(type);
}

static PyMethodDef SCANNER_METHODS[] = {
    {"scan", (PyCFunction)(void (*)(void))scanner_scan, METH_VARARGS,
     "scan(text, start, end, tell): what is there of events, or None where they are not plain.\n\n"
     "tell(table, text) says which number a word has in the columns; it is asked once a word."},
    {"keep", (PyCFunction)(void (*)(void))scanner_keep, METH_VARARGS,
     "keep(first): keep the rows scanned last, whose first event has that place in the file."},
    {"set_flow_id", (PyCFunction)(void (*)(void))scanner_set_flow_id, METH_VARARGS,
     "set_flow_id(at, id): the id of a flow arrow scanned last, where it is no number of 64 bits."},
    {"take", (PyCFunction)(void (*)(void))scanner_take, METH_NOARGS,
     "The columns of all rows kept, by name; then there are none."},
    {"size", (PyCFunction)(void (*)(void))scanner_size, METH_NOARGS, "Bytes that the tables of words take."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot SCANNER_SLOTS[] = {
    {Py_tp_doc, "Reads texts of events, and remembers the words it met."},
    {Py_tp_new, (void *)scanner_new},
    {Py_tp_dealloc, (void *)scanner_dealloc},
    {Py_tp_methods, SCANNER_METHODS},
    {0, NULL},
};

static PyType_Spec SCANNER = {
    "stepcrit.kernels._scan.Scanner", (int)sizeof(Scanner), 0, Py_TPFLAGS_DEFAULT, SCANNER_SLOTS,
};

/* How many line ends there are: a compiler makes this eight times as fast as one count for all. */
static size_t line_ends(Place p, Place end)
{
    size_t count = 0;
    while (p < end) {
        size_t size = end - p < 240 ? (size_t)(end - p) : 240;
        unsigned char few = 0;
        for (size_t i = 0; i < size; i++) {
            few += p[i] == '\n';
        }
        count += few;
        p += size;
    }
    return count;
}

static PyObject *scan_line_ends(PyObject *module, PyObject *args)
{
    PyObject *text;
    Py_ssize_t end, size;
    Place from;
    (void)module;
    if (!PyArg_ParseTuple(args, "Sn", &text, &end)) {
        return NULL;
    }
    from = (Place)PyBytes_AsString(text);
    size = PyBytes_Size(text);
    return PyLong_FromSize_t(line_ends(from, from + (end < 0 ? 0 : end < size ? end : size)));
}

static PyMethodDef MODULE_METHODS[] = {
    {"line_ends", (PyCFunction)(void (*)(void))scan_line_ends, METH_VARARGS,
     "line_ends(text, end): how many there are before a position, which may be behind the text."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE_FORM = {
    PyModuleDef_HEAD_INIT, "_scan", "Text of events to columns.", -1, MODULE_METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scan(void)
{
    PyObject *module = PyModule_Create(&MODULE_FORM);
    PyObject *scanner = module ? PyType_FromSpec(&SCANNER) : NULL;
    block_type = scanner ? PyType_FromSpec(&BLOCK) : NULL;
    if (!block_type || PyModule_AddObjectRef(module, "Scanner", scanner) < 0
        || PyModule_AddIntConstant(module, "REVISION", REVISION) < 0) {
        Py_CLEAR(module);
    }
    Py_XDECREF(scanner);
    return module;
}
