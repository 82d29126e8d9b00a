#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_scan", "", 0, NULL, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__scan(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddIntConstant(made, "REVISION", 1) < 0) {
        Py_CLEAR(made);
    }
    return made;
}
