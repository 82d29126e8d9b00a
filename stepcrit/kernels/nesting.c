/* The sweep over one thread: who is open around each row, and who owns each stretch of time.
 *
 * The plain form is stepcrit.link.nesting.sweep_plainly; this one gives the same, of the same arguments.
 */
#include "columns.h"

enum { REVISION = 1 };

typedef struct {
    int64_t end, row;
} Open;

typedef struct {
    int64_t *start, *end, *owner;
    Py_ssize_t count;
} Tiles;

static int64_t tile(Tiles *tiles, int64_t now, int64_t until, int64_t owner)
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

static Py_ssize_t swept(const int64_t *start, const int64_t *end, Py_ssize_t n, int64_t now, int64_t until,
                        int64_t *parent, int64_t *depth, Tiles *tiles, Open *opened)
{
    Py_ssize_t crossing = 0, count = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        now = close_by(tiles, opened, &count, now, start[i]);
        parent[i] = count ? opened[count - 1].row : -1;
        depth[i] = count;
        crossing += count && end[i] > opened[count - 1].end;
        now = tile(tiles, now, start[i], parent[i]);
        opened[count].end = end[i];
        opened[count++].row = i;
    }
    now = close_by(tiles, opened, &count, now, until);
    tile(tiles, now, until, -1);
    return crossing;
}

/* sweep(start, end, now, until, parent, depth, tile_start, tile_end, tile_owner) -> (tiles, crossing) */
static PyObject *sweep(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[7];
    long long now, until;
    if (!PyArg_ParseTuple(args, "OOLLOOOOO", &objects[0], &objects[1], &now, &until, &objects[2], &objects[3],
                          &objects[4], &objects[5], &objects[6])) {
        return NULL;
    }
    Py_ssize_t n = length_of(objects[0]);
    if (n < 0) {
        return NULL;
    }
    Columns columns = {.count = 0};
    PyObject *result = NULL;
    Open *opened = PyMem_Malloc((size_t)(n + 1) * sizeof *opened);
    const int64_t *start, *end;
    int64_t *parent, *depth;
    Tiles tiles = {.count = 0};
    if (!opened) {
        PyErr_NoMemory();
    } else if ((start = values_of(&columns, objects[0], n)) && (end = values_of(&columns, objects[1], n))
               && (parent = written_of(&columns, objects[2], n)) && (depth = written_of(&columns, objects[3], n))
               && (tiles.start = written_of(&columns, objects[4], 2 * n + 1))
               && (tiles.end = written_of(&columns, objects[5], 2 * n + 1))
               && (tiles.owner = written_of(&columns, objects[6], 2 * n + 1))) {
        Py_ssize_t crossing;
        Py_BEGIN_ALLOW_THREADS
        crossing = swept(start, end, n, now, until, parent, depth, &tiles, opened);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("nn", tiles.count, crossing);
    }
    PyMem_Free(opened);
    columns_give_back(&columns);
    return result;
}

static PyMethodDef methods[] = {{"sweep", sweep, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_nesting", "How host events lie in each other.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__nesting(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "REVISION", REVISION) < 0) {
        Py_CLEAR(made);
    }
    return made;
}
