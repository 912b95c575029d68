/* The output of connections, from a stream to their sockets: `rtmplite.net.pipe` without Python.
 *
 * The Python there is the specification.  A pipe is the short way of one connection, and `flush`
 * sends one buffer of each connection by one call for all.  Whatever is not one buffer for a socket
 * that takes it whole is left to the owner of the pipe, by `guard`, which may do anything, such as
 * close any pipe.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <sys/socket.h>

typedef struct {
    PyObject_HEAD
    PyObject *owner; /* NULL when closed */
    PyObject *output, *dirty; /* lists */
    PyObject *wake;           /* a callable, or None */
    int fd;
    char is_plain;
} Pipe;

static PyTypeObject Pipe_Type;
static PyObject *str_guard, *str_flush, *str_keep, *str_send_failed;

static PyObject *pipe_put(Pipe *self, PyObject *data) {
    if (!PyBytes_CheckExact(data)) {
        PyErr_SetString(PyExc_TypeError, "output is bytes");
        return NULL;
    }
    if (PyList_GET_SIZE(self->output) == 0) {
        if (self->wake != Py_None && PyList_GET_SIZE(self->dirty) == 0) {
            PyObject *done = PyObject_CallNoArgs(self->wake);
            if (done == NULL) return NULL;
            Py_DECREF(done);
        }
        if (PyList_Append(self->dirty, (PyObject *)self)) return NULL;
    }
    if (PyList_Append(self->output, data)) return NULL;
    Py_RETURN_NONE;
}

/* Have the owner do one of its methods, whose errors it reports itself. */
static void have(Pipe *self, PyObject *method, PyObject *first, PyObject *second) {
    PyObject *owner = Py_XNewRef(self->owner);
    if (owner == NULL) return;
    PyObject *call = PyObject_GetAttr(owner, method), *done = NULL;
    if (call != NULL)
        done = PyObject_CallMethodObjArgs(owner, str_guard, call, first, second, NULL);
    if (done == NULL) PyErr_WriteUnraisable(owner);
    Py_XDECREF(done);
    Py_XDECREF(call);
    Py_DECREF(owner);
}

static void left_over(Pipe *self, PyObject *data, ssize_t sent, int error) {
    PyObject *rest = PyList_New(1), *what = NULL;
    if (rest == NULL) goto failed;
    PyList_SET_ITEM(rest, 0, Py_NewRef(data));
    if (sent >= 0) {
        if ((what = PyLong_FromSsize_t(sent)) == NULL) goto failed;
        have(self, str_keep, rest, what);
    } else {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        PyObject *type, *trace;
        PyErr_Fetch(&type, &what, &trace);
        PyErr_NormalizeException(&type, &what, &trace);
        if (what != NULL) have(self, str_send_failed, what, rest);
        Py_XDECREF(type);
        Py_XDECREF(trace);
    }
    Py_XDECREF(what);
    Py_DECREF(rest);
    return;
failed:
    PyErr_WriteUnraisable((PyObject *)self);
    Py_XDECREF(rest);
}

static void flush_one(Pipe *self) {
    if (!self->is_plain || self->fd < 0 || PyList_GET_SIZE(self->output) != 1 ||
        !PyBytes_CheckExact(PyList_GET_ITEM(self->output, 0))) {
        have(self, str_flush, NULL, NULL);
        return;
    }
    PyObject *data = Py_NewRef(PyList_GET_ITEM(self->output, 0));
    if (PyList_SetSlice(self->output, 0, 1, NULL)) PyErr_Clear(); /* it cannot fail */
    ssize_t sent, size = PyBytes_GET_SIZE(data);
    do
        sent = send(self->fd, PyBytes_AS_STRING(data), (size_t)size, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != size) left_over(self, data, sent, errno);
    Py_DECREF(data);
}

static PyObject *flush(PyObject *Py_UNUSED(module), PyObject *dirty) {
    if (!PyList_CheckExact(dirty)) {
        PyErr_SetString(PyExc_TypeError, "a list of pipes");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(dirty);
    if (count == 0) Py_RETURN_NONE;
    PyObject *pipes = PyList_GetSlice(dirty, 0, count);
    if (pipes == NULL || PyList_SetSlice(dirty, 0, count, NULL)) {
        Py_XDECREF(pipes);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *each = PyList_GET_ITEM(pipes, i); /* nobody else has `pipes` */
        if (Py_IS_TYPE(each, &Pipe_Type)) flush_one((Pipe *)each);
    }
    Py_DECREF(pipes);
    Py_RETURN_NONE;
}

static PyObject *pipe_close(Pipe *self, PyObject *Py_UNUSED(ignored)) {
    self->fd = -1;
    self->is_plain = 0;
    Py_CLEAR(self->owner);
    Py_RETURN_NONE;
}

static PyObject *get_is_plain(Pipe *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(self->is_plain);
}

static int set_is_plain(Pipe *self, PyObject *value, void *Py_UNUSED(closure)) {
    int truth = value == NULL ? 0 : PyObject_IsTrue(value);
    if (truth < 0) return -1;
    self->is_plain = (char)truth;
    return 0;
}

static int pipe_traverse(Pipe *self, visitproc visit, void *arg) {
    Py_VISIT(self->owner);
    Py_VISIT(self->output);
    Py_VISIT(self->dirty);
    Py_VISIT(self->wake);
    return 0;
}

static int pipe_clear(Pipe *self) {
    self->is_plain = 0;
    Py_CLEAR(self->owner);
    return 0; /* the lists stay, so that a late `put` finds them; their cycles pass by the owner */
}

static void pipe_dealloc(Pipe *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->output);
    Py_CLEAR(self->dirty);
    Py_CLEAR(self->wake);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *pipe_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *owner, *output, *dirty, *wake, *connected;
    static char *known[] = {"", "", "", "", "", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "OO!O!OO", known, &owner, &PyList_Type,
                                     &output, &PyList_Type, &dirty, &wake, &connected))
        return NULL;
    int fd = PyObject_AsFileDescriptor(connected);
    if (fd < 0) return NULL;
    Pipe *self = (Pipe *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->owner = Py_NewRef(owner);
    self->output = Py_NewRef(output);
    self->dirty = Py_NewRef(dirty);
    self->wake = Py_NewRef(wake);
    self->fd = fd;
    self->is_plain = 1;
    return (PyObject *)self;
}

static PyMethodDef pipe_methods[] = {
    {"put", (PyCFunction)pipe_put, METH_O, "Queue whole messages, already cut into chunks."},
    {"close", (PyCFunction)pipe_close, METH_NOARGS, "Use socket and owner no longer."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef pipe_getset[] = {
    {"is_plain", (getter)get_is_plain, (setter)set_is_plain, "Whether to send here.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject Pipe_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rtmplite.net._pipe.Pipe",
    .tp_doc = "The short way to one socket.",
    .tp_basicsize = sizeof(Pipe),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = pipe_new,
    .tp_traverse = (traverseproc)pipe_traverse,
    .tp_clear = (inquiry)pipe_clear,
    .tp_dealloc = (destructor)pipe_dealloc,
    .tp_methods = pipe_methods,
    .tp_getset = pipe_getset,
};

static PyMethodDef functions[] = {
    {"flush", flush, METH_O, "Send what waits in a list of pipes, and empty the list."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rtmplite.net._pipe",
    .m_doc = "The output of connections, sent without Python.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__pipe(void) {
    str_guard = PyUnicode_InternFromString("guard");
    str_flush = PyUnicode_InternFromString("flush");
    str_keep = PyUnicode_InternFromString("keep");
    str_send_failed = PyUnicode_InternFromString("send_failed");
    if (!str_guard || !str_flush || !str_keep || !str_send_failed) return NULL;
    if (PyType_Ready(&Pipe_Type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddObjectRef(made, "Pipe", (PyObject *)&Pipe_Type) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
