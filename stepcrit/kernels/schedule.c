/* The passes over the schedule graph, and over the threads that it is cut from.
 *
 * The plain forms are in stepcrit.graph.schedule (forward_by_node, latest_by_node), stepcrit.graph.drag
 * (painted_plainly) and stepcrit.graph.threads (overlaps_plainly); these give the same, of the same arguments.
 * Edges come sorted by target, sources before targets; that is checked, for a wrong index here would read or
 * write elsewhere.
 */
#include "columns.h"

enum { REVISION = 2 };

/* Whether edges of every node lie where `ptr` says. */
static bool are_places(const int64_t *ptr, Py_ssize_t nodes, Py_ssize_t edges)
{
    if (ptr[0] != 0 || ptr[nodes] != edges) {
        return false;
    }
    bool ascend = true;
    for (Py_ssize_t v = 0; v < nodes; v++) {
        ascend &= ptr[v] <= ptr[v + 1];
    }
    return ascend;
}

/* forward(src, ptr, dur, lag, start): `start` holds the origins' starts, and gets everyone's. */
static PyObject *forward(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[5];
    if (!PyArg_ParseTuple(args, "OOOOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4])) {
        return NULL;
    }
    Py_ssize_t edges = length_of(objects[0]), nodes = length_of(objects[2]);
    if (edges < 0 || nodes < 0) {
        return NULL;
    }
    Columns columns = {.count = 0};
    const int64_t *src, *ptr, *dur, *lag;
    int64_t *start;
    PyObject *result = NULL;
    int64_t *finish = PyMem_Malloc((size_t)(nodes + 1) * sizeof *finish);
    if (!finish) {
        PyErr_NoMemory();
    } else if ((src = values_of(&columns, objects[0], edges)) && (ptr = values_of(&columns, objects[1], nodes + 1))
               && (dur = values_of(&columns, objects[2], nodes)) && (lag = values_of(&columns, objects[3], edges))
               && (start = written_of(&columns, objects[4], nodes))) {
        if (!are_places(ptr, nodes, edges)) {
            bad_index("an edge");
        } else {
            bool fits = true, earlier = true;
            Py_BEGIN_ALLOW_THREADS
            for (Py_ssize_t v = 0; v < nodes && fits && earlier; v++) {
                int64_t low = ptr[v], high = ptr[v + 1], at = start[v], arrival = 0;
                for (int64_t e = low; e < high; e++) {
                    if (src[e] < 0 || src[e] >= v) {
                        earlier = false;
                        break;
                    }
                    fits &= add(finish[src[e]], lag[e], &arrival);
                    at = e == low || arrival > at ? arrival : at;
                }
                start[v] = at;
                fits = fits && earlier && add(at, dur[v], &finish[v]);
            }
            Py_END_ALLOW_THREADS
            if (!earlier) {
                bad_index("an edge");
            } else if (fits) {
                Py_INCREF(Py_None);
                result = Py_None;
            } else {
                too_large();
            }
        }
    }
    PyMem_Free(finish);
    columns_give_back(&columns);
    return result;
}

/* latest(src, ptr, dur, lag, late, last): `late` holds the sinks' times, and gets everyone's up to node `last`. */
static PyObject *latest(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[5];
    Py_ssize_t last;
    long long far;
    if (!PyArg_ParseTuple(args, "OOOOOnL", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4], &last,
                          &far)) {
        return NULL;
    }
    Py_ssize_t edges = length_of(objects[0]), nodes = length_of(objects[2]);
    if (edges < 0 || nodes < 0) {
        return NULL;
    }
    Columns columns = {.count = 0};
    const int64_t *src, *ptr, *dur, *lag;
    int64_t *late;
    PyObject *result = NULL;
    if ((src = values_of(&columns, objects[0], edges)) && (ptr = values_of(&columns, objects[1], nodes + 1))
        && (dur = values_of(&columns, objects[2], nodes)) && (lag = values_of(&columns, objects[3], edges))
        && (late = written_of(&columns, objects[4], nodes))) {
        if (!are_places(ptr, nodes, edges) || last >= nodes) {
            bad_index("an edge");
        } else {
            bool fits = true, earlier = true;
            Py_BEGIN_ALLOW_THREADS
            for (Py_ssize_t v = last; v >= 0 && fits && earlier; v--) {
                int64_t start = 0, by = 0;
                if (late[v] == far) {
                    continue;
                }
                fits &= subtract(late[v], dur[v], &start);
                for (int64_t e = ptr[v]; e < ptr[v + 1] && fits; e++) {
                    if (src[e] < 0 || src[e] >= v) {
                        earlier = false;
                        break;
                    }
                    fits &= subtract(start, lag[e], &by);
                    late[src[e]] = fits && by < late[src[e]] ? by : late[src[e]];
                }
            }
            Py_END_ALLOW_THREADS
            if (!earlier) {
                bad_index("an edge");
            } else if (fits) {
                Py_INCREF(Py_None);
                result = Py_None;
            } else {
                too_large();
            }
        }
    }
    columns_give_back(&columns);
    return result;
}

/* The first place from `at` on that is not painted yet; the way there gets shorter for who comes next. */
static int64_t next_bare(int64_t *following, int64_t at)
{
    int64_t root = at;
    while (following[root] != root) {
        root = following[root];
    }
    while (following[at] != root) {
        int64_t then = following[at];
        following[at] = root;
        at = then;
    }
    return root;
}

/* paint(left, right, value, best): open intervals, most valuable first, each on the places still bare. */
static PyObject *paint(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[4];
    if (!PyArg_ParseTuple(args, "OOOO", &objects[0], &objects[1], &objects[2], &objects[3])) {
        return NULL;
    }
    Py_ssize_t count = length_of(objects[0]), places = length_of(objects[3]);
    if (count < 0 || places < 0) {
        return NULL;
    }
    Columns columns = {.count = 0};
    const int64_t *left, *right, *value;
    int64_t *best;
    PyObject *result = NULL;
    int64_t *following = PyMem_Malloc((size_t)(places + 1) * sizeof *following);
    if (!following) {
        PyErr_NoMemory();
    } else if ((left = values_of(&columns, objects[0], count)) && (right = values_of(&columns, objects[1], count))
               && (value = values_of(&columns, objects[2], count)) && (best = written_of(&columns, objects[3], places))) {
        bool inside = true;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i <= places; i++) {
            following[i] = i;
        }
        for (Py_ssize_t i = 0; i < count && inside; i++) {
            inside = left[i] >= -1 && right[i] > left[i] && right[i] <= places;
            if (!inside) {
                break;
            }
            for (int64_t at = next_bare(following, left[i] + 1); at < right[i]; at = next_bare(following, at)) {
                best[at] = value[i];
                following[at] = at + 1;
            }
        }
        Py_END_ALLOW_THREADS
        if (inside) {
            Py_INCREF(Py_None);
            result = Py_None;
        } else {
            bad_index("an interval");
        }
    }
    PyMem_Free(following);
    columns_give_back(&columns);
    return result;
}

/* overlaps(start, end, tile_start, tile_end, node, tile, length): how many overlaps spans and tiles of one thread have,
 * both ascending; each with its span, its tile and how long it is. */
static PyObject *overlaps(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[7];
    if (!PyArg_ParseTuple(args, "OOOOOOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4], &objects[5],
                          &objects[6])) {
        return NULL;
    }
    Py_ssize_t spans = length_of(objects[0]), tiles = length_of(objects[2]), room = length_of(objects[4]);
    if (spans < 0 || tiles < 0 || room < 0) {
        return NULL;
    }
    Columns columns = {.count = 0};
    const int64_t *start, *end, *tile_start, *tile_end;
    int64_t *node, *tile, *length;
    PyObject *result = NULL;
    if ((start = values_of(&columns, objects[0], spans)) && (end = values_of(&columns, objects[1], spans))
        && (tile_start = values_of(&columns, objects[2], tiles)) && (tile_end = values_of(&columns, objects[3], tiles))
        && (node = written_of(&columns, objects[4], room)) && (tile = written_of(&columns, objects[5], room))
        && (length = written_of(&columns, objects[6], room))) {
        Py_ssize_t found = 0, first = 0;
        bool fits = true;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < spans && fits; i++) {
            while (first < tiles && tile_end[first] <= start[i]) {
                first++;
            }
            for (Py_ssize_t j = first; j < tiles && tile_start[j] < end[i]; j++) {
                int64_t from = start[i] > tile_start[j] ? start[i] : tile_start[j];
                int64_t until = end[i] < tile_end[j] ? end[i] : tile_end[j];
                if (until <= from) {
                    continue;
                }
                fits = found < room && subtract(until, from, &length[found]);
                if (!fits) {
                    break;
                }
                node[found] = i;
                tile[found++] = j;
            }
        }
        Py_END_ALLOW_THREADS
        result = fits ? PyLong_FromSsize_t(found) : bad_index("an overlap");
    }
    columns_give_back(&columns);
    return result;
}

static PyMethodDef methods[] = {
    {"forward", forward, METH_VARARGS, NULL},
    {"latest", latest, METH_VARARGS, NULL},
    {"paint", paint, METH_VARARGS, NULL},
    {"overlaps", overlaps, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_schedule", "Passes over a schedule graph.", 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__schedule(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "REVISION", REVISION) < 0) {
        Py_CLEAR(made);
    }
    return made;
}
