/* Counts the usual packets of a batch: `line_count.py` without Python.
 *
 * The Python there is the specification, and a test has both count the same.  Nothing is decrypted:
 * a packet is counted by the clear header of RTP (RFC 3550 §5.1), and jitter as RFC 3550 §A.8 does.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <structmember.h>
#include <stdint.h>
#include <string.h>

/* As `Batch` lays out what it has read: heads of RTP, then of each message its struct mmsghdr, and
 * a control message with a time of two 64-bit numbers. */
enum { HEAD = 12, MESSAGE = 64, OCTETS_AT = 56, CONTROL = 32, TIME_AT = 16 };
enum { RTP = 128, SECONDS = 256 };

typedef struct {
    PyObject_HEAD
    long long ssrc, next, timestamp, ticks, run, markers; /* -1 is none */
    double rate, jitter, last;
    char is_new;
} LineCount;

static int line_init(PyObject *self, PyObject *args, PyObject *named) {
    LineCount *line = (LineCount *)self;
    if (named != NULL && PyDict_GET_SIZE(named) > 0) {
        PyErr_SetString(PyExc_TypeError, "LineCount takes a rate alone");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "d", &line->rate)) return -1;
    line->ssrc = line->next = -1;
    line->timestamp = line->ticks = line->run = line->markers = 0;
    line->jitter = line->last = 0.0;
    line->is_new = 1;
    return 0;
}

/* Whether this was the packet that had to be next, which is then counted. */
static int heard(LineCount *line, unsigned second, unsigned sequence, uint32_t timestamp,
                 uint32_t ssrc, double at) {
    if ((long long)sequence != line->next || (long long)ssrc != line->ssrc) return 0;
    line->next = (sequence + 1) & 0xFFFF;
    line->run++;
    line->markers += second > 127;
    int32_t ticks = (int32_t)(timestamp - (uint32_t)line->timestamp);
    line->ticks += ticks;
    line->timestamp = timestamp;
    double gap = (at - line->last) * line->rate - ticks;
    line->jitter += ((gap > 0 ? gap : -gap) - line->jitter) / 16;
    line->last = at;
    return 1;
}

static PyObject *line_heard(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 5) return PyErr_Format(PyExc_TypeError, "the fields of a header, and a time");
    unsigned long second = PyLong_AsUnsignedLong(given[0]);
    unsigned long sequence = PyLong_AsUnsignedLong(given[1]);
    unsigned long timestamp = PyLong_AsUnsignedLong(given[2]);
    unsigned long ssrc = PyLong_AsUnsignedLong(given[3]);
    double at = PyFloat_AsDouble(given[4]);
    if (PyErr_Occurred()) return NULL;
    return PyBool_FromLong(heard((LineCount *)self, (unsigned)second, (unsigned)sequence,
                                 (uint32_t)timestamp, (uint32_t)ssrc, at));
}

static PyMemberDef line_members[] = {
    {"ssrc", T_LONGLONG, offsetof(LineCount, ssrc), 0, NULL},
    {"next", T_LONGLONG, offsetof(LineCount, next), 0, NULL},
    {"timestamp", T_LONGLONG, offsetof(LineCount, timestamp), 0, NULL},
    {"ticks", T_LONGLONG, offsetof(LineCount, ticks), 0, NULL},
    {"run", T_LONGLONG, offsetof(LineCount, run), 0, NULL},
    {"markers", T_LONGLONG, offsetof(LineCount, markers), 0, NULL},
    {"rate", T_DOUBLE, offsetof(LineCount, rate), 0, NULL},
    {"jitter", T_DOUBLE, offsetof(LineCount, jitter), 0, NULL},
    {"last", T_DOUBLE, offsetof(LineCount, last), 0, NULL},
    {"is_new", T_BOOL, offsetof(LineCount, is_new), 0, NULL},
    {NULL},
};

static PyMethodDef line_methods[] = {
    {"heard", (PyCFunction)(void (*)(void))line_heard, METH_FASTCALL, NULL},
    {NULL},
};

static PyTypeObject LineCountType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rtclab.load.clients._usual.LineCount",
    .tp_basicsize = sizeof(LineCount),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = line_init,
    .tp_members = line_members,
    .tp_methods = line_methods,
};

static uint32_t number(const unsigned char *at, int octets) {
    uint32_t found = 0;
    while (octets-- > 0) found = found << 8 | *at++;
    return found;
}

/* usual(heads, messages, times, start, count, lines, offset): see `line_count.py`. */
static PyObject *pass_usual(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer heads, messages, times;
    Py_ssize_t place, count;
    PyObject *lines;
    double offset, last = 0.0;
    long long size = 0;
    if (!PyArg_ParseTuple(args, "y*y*y*nnO!d", &heads, &messages, &times, &place, &count,
                          &PyList_Type, &lines, &offset))
        return NULL;
    PyObject *result = NULL;
    if (place < 0 || heads.len < count * HEAD || messages.len < count * MESSAGE ||
        times.len < count * CONTROL || PyList_GET_SIZE(lines) != SECONDS) {
        PyErr_SetString(PyExc_ValueError, "no batch of so many");
        goto done;
    }
    for (; place < count; place++) {
        const unsigned char *head = (const unsigned char *)heads.buf + place * HEAD;
        PyObject *found = PyList_GET_ITEM(lines, head[1]);
        uint32_t octets;
        int64_t time[2];
        memcpy(&octets, (const char *)messages.buf + place * MESSAGE + OCTETS_AT, sizeof octets);
        if (Py_TYPE(found) != &LineCountType || head[0] < RTP || octets < HEAD) break;
        LineCount *line = (LineCount *)found;
        if (line->is_new) break;
        memcpy(time, (const char *)times.buf + place * CONTROL + TIME_AT, sizeof time);
        double at = (double)time[0] + (double)time[1] * 1e-9 + offset;
        if (!heard(line, head[1], number(head + 2, 2), number(head + 4, 4), number(head + 8, 4),
                   at))
            break;
        size += octets;
        last = at;
    }
    result = Py_BuildValue("nLd", place, size, last);
done:
    PyBuffer_Release(&heads);
    PyBuffer_Release(&messages);
    PyBuffer_Release(&times);
    return result;
}

static PyMethodDef methods[] = {
    {"pass_usual", pass_usual, METH_VARARGS, NULL},
    {NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_usual", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__usual(void) {
    if (PyType_Ready(&LineCountType) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddObjectRef(made, "LineCount", (PyObject *)&LineCountType) < 0)
        Py_CLEAR(made);
    return made;
}
