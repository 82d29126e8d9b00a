/* The sweep over one thread: who is open around each row, and who owns each stretch of time; and what rows
 * take from the rows around them.
 *
 * The plain forms are stepcrit.link.nesting.sweep_plainly and inherit_plainly; these give the same, of the same
 * arguments. Rows are checked, for a wrong one here would read or write elsewhere.
 */
#include "columns.h"

enum { REVISION = 3 };

typedef struct {
    int64_t end;
    int32_t row;
} Open;

typedef struct {
    int64_t *start, *end;
    int32_t *owner;
    Py_ssize_t count;
} Tiles;

static int64_t tile(Tiles *tiles, int64_t now, int64_t until, int32_t owner)
{
    if (until <= now) {
        return now;
    }
    tiles->start[tiles->count] = now;
    tiles->end[tiles->count] = until;
    tiles->owner[tiles->count++] = owner;
    return until;
}

/* Close what has ended by `until`, latest started first. */
static int64_t close_by(Tiles *tiles, const Open *opened, Py_ssize_t *count, int64_t now, int64_t until)
{
    while (*count && opened[*count - 1].end <= until) {
        const Open *last = &opened[--*count];
        now = tile(tiles, now, last->end, last->row);
    }
    return now;
}

static bool are_indexes(const int64_t *rows, Py_ssize_t n, Py_ssize_t length)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if (rows[i] < 0 || rows[i] >= length) {
            return false;
        }
    }
    return true;
}

static Py_ssize_t swept(const int64_t *start, const int64_t *end, const int64_t *rows, Py_ssize_t n, int64_t now,
                        int64_t until, int32_t *parent, int32_t *depth, Tiles *tiles, Open *opened)
{
    Py_ssize_t crossing = 0, count = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t row = (int32_t)rows[i];
        now = close_by(tiles, opened, &count, now, start[row]);
        parent[row] = count ? opened[count - 1].row : -1;
        depth[row] = (int32_t)count;
        crossing += count && end[row] > opened[count - 1].end;
        now = tile(tiles, now, start[row], parent[row]);
        opened[count].end = end[row];
        opened[count++].row = row;
    }
    now = close_by(tiles, opened, &count, now, until);
    tile(tiles, now, until, -1);
    return crossing;
}

/* sweep(start, end, rows, now, until, parent, depth, tile_start, tile_end, tile_owner) -> (tiles, crossing) */
static PyObject *sweep(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[8];
    long long now, until;
    if (!PyArg_ParseTuple(args, "OOOLLOOOOO", &objects[0], &objects[1], &objects[2], &now, &until, &objects[3],
                          &objects[4], &objects[5], &objects[6], &objects[7])) {
        return NULL;
    }
    Py_ssize_t length = length_of(objects[0]), n = length_of(objects[2]);
    if (length < 0 || n < 0) {
        return NULL;
    }
    if (length > INT32_MAX || n > INT32_MAX) {
        return bad_index("a row");
    }
    Columns columns = {.count = 0};
    PyObject *result = NULL;
    Open *opened = PyMem_Malloc((size_t)(n + 1) * sizeof *opened);
    const int64_t *start, *end, *rows;
    int32_t *parent, *depth;
    Tiles tiles = {.count = 0};
    if (!opened) {
        PyErr_NoMemory();
    } else if ((start = values_of(&columns, objects[0], length)) && (end = values_of(&columns, objects[1], length))
               && (rows = values_of(&columns, objects[2], n)) && (parent = written_shorts_of(&columns, objects[3], length))
               && (depth = written_shorts_of(&columns, objects[4], length))
               && (tiles.start = written_of(&columns, objects[5], 2 * n + 1))
               && (tiles.end = written_of(&columns, objects[6], 2 * n + 1))
               && (tiles.owner = written_shorts_of(&columns, objects[7], 2 * n + 1))) {
        if (!are_indexes(rows, n, length)) {
            bad_index("a row");
        } else {
            Py_ssize_t crossing;
            Py_BEGIN_ALLOW_THREADS
            crossing = swept(start, end, rows, n, now, until, parent, depth, &tiles, opened);
            Py_END_ALLOW_THREADS
            result = Py_BuildValue("nn", tiles.count, crossing);
        }
    }
    PyMem_Free(opened);
    columns_give_back(&columns);
    return result;
}

/* inherit(parent, value): values below 0 become those of the parent, which comes before. */
static PyObject *inherit(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[2];
    if (!PyArg_ParseTuple(args, "OO", &objects[0], &objects[1])) {
        return NULL;
    }
    Py_ssize_t n = length_of(objects[0]);
    if (n < 0) {
        return NULL;
    }
    Columns columns = {.count = 0};
    const int32_t *parent;
    int32_t *value;
    bool is_sound = false;
    if ((parent = shorts_of(&columns, objects[0], n)) && (value = written_shorts_of(&columns, objects[1], n))) {
        is_sound = true;
        for (Py_ssize_t i = 0; i < n; i++) {
            if (parent[i] >= i) {
                is_sound = false;
                bad_index("a parent");
                break;
            }
            if (value[i] < 0 && parent[i] >= 0) {
                value[i] = value[parent[i]];
            }
        }
    }
    columns_give_back(&columns);
    if (!is_sound) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"sweep", sweep, METH_VARARGS, NULL}, {"inherit", inherit, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_nesting", "How host events lie in each other.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__nesting(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "REVISION", REVISION) < 0) {
        Py_CLEAR(made);
    }
    return made;
}
