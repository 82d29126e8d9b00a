/* Arguments of kernels: columns of 64- or 32-bit integers, one after the other in memory, and how long they are. */
#ifndef STEPCRIT_COLUMNS_H
#define STEPCRIT_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST_COLUMNS = 12 };

/* The columns that one call has taken; all are given back together. */
typedef struct {
    Py_buffer taken[MOST_COLUMNS];
    int count;
} Columns;

static void columns_give_back(Columns *columns)
{
    while (columns->count) {
        PyBuffer_Release(&columns->taken[--columns->count]);
    }
}

/* The values of a column of `length` items of `width` bytes; NULL, with an exception, if it is none. */
static void *column_of(Columns *columns, PyObject *object, Py_ssize_t length, Py_ssize_t width, bool is_written)
{
    Py_buffer *view = &columns->taken[columns->count];
    if (PyObject_GetBuffer(object, view, is_written ? PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS) < 0) {
        return NULL;
    }
    columns->count++;
    if (view->itemsize != width || view->len != length * width) {
        PyErr_Format(PyExc_ValueError, "a column of %zd items of %zd bytes was expected, not of %zd bytes of %zd each",
                     length, width, view->len, view->itemsize);
        return NULL;
    }
    return view->buf;
}

static inline const int64_t *values_of(Columns *columns, PyObject *object, Py_ssize_t length)
{
    return column_of(columns, object, length, 8, false);
}

static inline int64_t *written_of(Columns *columns, PyObject *object, Py_ssize_t length)
{
    return column_of(columns, object, length, 8, true);
}

static inline const int32_t *shorts_of(Columns *columns, PyObject *object, Py_ssize_t length)
{
    return column_of(columns, object, length, 4, false);
}

static inline int32_t *written_shorts_of(Columns *columns, PyObject *object, Py_ssize_t length)
{
    return column_of(columns, object, length, 4, true);
}

/* How many items an object with a length has; -1, with an exception, if it has none. */
static inline Py_ssize_t length_of(PyObject *object)
{
    return PyObject_Length(object);
}

/* a + b; false where that is no 64-bit number. */
static inline bool add(int64_t a, int64_t b, int64_t *sum)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        return false;
    }
    *sum = a + b;
    return true;
}

/* a - b; false where that is no 64-bit number. */
static inline bool subtract(int64_t a, int64_t b, int64_t *difference)
{
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) {
        return false;
    }
    *difference = a - b;
    return true;
}

static inline PyObject *too_large(void)
{
    PyErr_SetString(PyExc_OverflowError, "a time does not fit into 64 bits");
    return NULL;
}

static inline PyObject *bad_index(const char *what)
{
    PyErr_Format(PyExc_IndexError, "%s out of range", what);
    return NULL;
}

#endif
