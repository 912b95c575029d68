/* The usual audio of publishers, from RTMP sockets to a stream's sink, with one watcher for all.
 *
 * The annotated Python is the specification, and this the same for one case only: whole messages of
 * audio, each in one chunk, of the chunk stream that a connection has lent.  The functions that it
 * stands for are `Peer.read`, `ChunkTransport.receive`, `ChunkReader._whole` (RTMP 1.0, section 5.3.1),
 * `NetConnection.on_media`, `ServerStream.on_media` and `PublishedVideo.write`.  Where anything else
 * begins, all from there on goes to Python as it was read.  A property test sends the same traffic
 * through both.
 *
 * A connection lends a chunk stream by `lend`, hears by `follow` what was counted, and stops it by
 * `reclaim`.  The sink and the methods of the owner may do anything, such as close any inlet.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    AUDIO = 8,    /* RTMP 1.0, section 7.1.4 */
    ROOM = 4096,  /* octets of a read, `SMALL_READ` */
    AT_ONCE = 16, /* messages of a read, as in `connection` */
    EVENTS = 256, /* sockets that are read in one turn */
    SHORT = 8,    /* octets of a body that may be an empty header: `is_empty_header` */
    MAX_DESCRIPTOR = 1 << 20,
};
#define EXTENDED 0xFFFFFF /* ms, from which a chunk has an extended timestamp: RTMP 1.0, section 5.3.1.3 */

typedef struct {
    PyObject_HEAD
    int poller, is_turning;
    int room;              /* of `inlets` */
    struct inlet **inlets; /* by descriptor, those that are watched, each with a reference */
    uint8_t data[ROOM];
} Intake;

typedef struct inlet {
    PyObject_HEAD
    Intake *intake;  /* NULL when closed */
    PyObject *owner; /* the same */
    PyObject *ready; /* what is called when there is input, or NULL while that is not watched */
    int fd, is_lent;
    unsigned long long passed; /* messages, since the beginning */
    /* the rest is used while it is lent */
    PyObject *sink;
    uint32_t chunk_stream_id, stream_id, timestamp, delta, length, longest;
    long long octets, most; /* read since the last `follow`, and how many may be in all */
    double heard;
} Inlet;

static PyTypeObject Intake_Type, Inlet_Type;
static PyObject *str_take, *str_read_failed, *str_sink_failed, *str_spent, *number_audio;

static double monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)((long long)now.tv_sec * 1000000000 + now.tv_nsec) / 1e9;
}

static inline uint32_t be24(const uint8_t *at) {
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static inline uint32_t le32(const uint8_t *at) {
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* -- one message ------------------------------------------------------------------------- */

/* Read a whole message of the lent chunk stream, and return where its body begins, which ends at
 * `length`; 0 with nothing changed if it is not that.  Whatever a short header leaves out stays. */
static size_t read_header(const Inlet *self, const uint8_t *data, size_t size, uint32_t *timestamp,
                          uint32_t *delta, uint32_t *length) {
    static const size_t headers[] = {12, 8, 4, 1};
    if ((data[0] & 0x3F) != self->chunk_stream_id) return 0;
    int type = data[0] >> 6;
    size_t after = headers[type];
    if (after > size) return 0;
    *delta = type < 3 ? be24(data + 1) : self->delta;
    *length = type < 2 ? be24(data + 4) : self->length;
    if (type < 2 && data[7] != AUDIO) return 0;
    if (type == 0 && le32(data + 8) != self->stream_id) return 0;
    if (*delta >= EXTENDED || *length <= SHORT || *length > self->longest) return 0;
    *timestamp = type == 0 ? *delta : self->timestamp + *delta;
    return *length <= size - after ? after : 0;
}

/* Have the owner do one of its methods, which reports its errors itself; takes `argument`. */
static void have(Inlet *self, PyObject *method, PyObject *argument) {
    PyObject *owner = Py_XNewRef(self->owner);
    if (argument == NULL) {
        PyErr_WriteUnraisable((PyObject *)self);
    } else if (owner != NULL) {
        PyObject *done = PyObject_CallMethodOneArg(owner, method, argument);
        if (done == NULL) PyErr_WriteUnraisable(owner);
        Py_XDECREF(done);
    }
    Py_XDECREF(owner);
    Py_XDECREF(argument);
}

static PyObject *fetched_error(void) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL && error != NULL) PyException_SetTraceback(error, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return error;
}

/* Give a message to the sink, and return how long it was; 0 with nothing changed if it is not
 * usual, and -1 if the sink has failed. */
static Py_ssize_t pass_on(Inlet *self, const uint8_t *data, size_t size, double now) {
    uint32_t timestamp, delta, length;
    size_t body = read_header(self, data, size, &timestamp, &delta, &length);
    size_t octets = body ? body + length : 0;
    if (body == 0 || self->octets + (long long)octets >= self->most) return 0;
    PyObject *time = PyLong_FromUnsignedLong(timestamp), *moment = PyFloat_FromDouble(now);
    PyObject *payload = PyBytes_FromStringAndSize((const char *)data + body, (Py_ssize_t)length);
    PyObject *sink = Py_NewRef(self->sink), *done = NULL;
    Py_ssize_t result = 0;
    if (time == NULL || moment == NULL || payload == NULL) {
        PyErr_Clear();
    } else {
        self->timestamp = timestamp;
        self->delta = delta;
        self->length = length;
        self->octets += (long long)octets;
        self->heard = now;
        self->passed++;
        PyObject *arguments[] = {number_audio, time, payload, moment};
        done = PyObject_Vectorcall(sink, arguments, 4, NULL);
        if (done == NULL) have(self, str_sink_failed, fetched_error());
        result = done == NULL ? -1 : (Py_ssize_t)octets;
    }
    Py_XDECREF(done);
    Py_DECREF(sink);
    Py_XDECREF(payload);
    Py_XDECREF(moment);
    Py_XDECREF(time);
    return result;
}

/* Pass on what is usual of some octets, and give the owner the rest. */
static void use(Inlet *self, const uint8_t *data, size_t size, double now) {
    size_t at = 0;
    for (int messages = 0; messages < AT_ONCE && at < size && self->is_lent; messages++) {
        Py_ssize_t used = pass_on(self, data + at, size - at, now);
        if (used < 0) return;
        if (used == 0) break;
        at += (size_t)used;
    }
    if (at < size)
        have(self, str_take,
             PyBytes_FromStringAndSize((const char *)data + at, (Py_ssize_t)(size - at)));
}

static void receive(Inlet *self, uint8_t *data) {
    ssize_t got = recv(self->fd, data, ROOM, 0);
    if (got > 0) {
        use(self, data, (size_t)got, monotonic());
    } else if (got == 0) {
        have(self, str_read_failed, Py_NewRef(Py_None));
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        PyErr_SetFromErrno(PyExc_OSError);
        have(self, str_read_failed, fetched_error());
    }
}

/* -- Inlet ------------------------------------------------------------------------------- */

static PyObject *inlet_lend(Inlet *self, PyObject *arguments) {
    unsigned long chunk_stream_id, stream_id, timestamp, delta, length, longest;
    long long most;
    PyObject *sink;
    if (!PyArg_ParseTuple(arguments, "kkkkkkLO", &chunk_stream_id, &stream_id, &timestamp, &delta,
                          &length, &longest, &most, &sink))
        return NULL;
    if (chunk_stream_id < 2 || chunk_stream_id > 63 || stream_id > UINT32_MAX ||
        timestamp > UINT32_MAX || delta >= EXTENDED || length > EXTENDED) {
        PyErr_SetString(PyExc_ValueError, "terms that no message can meet");
        return NULL;
    }
    if (self->intake == NULL || self->is_lent || most <= 0) Py_RETURN_FALSE;
    self->chunk_stream_id = (uint32_t)chunk_stream_id;
    self->stream_id = (uint32_t)stream_id;
    self->timestamp = (uint32_t)timestamp;
    self->delta = (uint32_t)delta;
    self->length = (uint32_t)length;
    self->longest = longest < ROOM ? (uint32_t)longest : ROOM;
    self->most = most;
    self->octets = 0;
    self->heard = 0;
    Py_XSETREF(self->sink, Py_NewRef(sink));
    self->is_lent = 1;
    Py_RETURN_TRUE;
}

static PyObject *inlet_follow(Inlet *self, PyObject *Py_UNUSED(ignored)) {
    if (!self->is_lent || self->octets == 0) Py_RETURN_NONE;
    long long octets = self->octets;
    self->most -= octets;
    self->octets = 0;
    return Py_BuildValue("(Lkkkd)", octets, (unsigned long)self->timestamp,
                         (unsigned long)self->delta, (unsigned long)self->length, self->heard);
}

static PyObject *inlet_reclaim(Inlet *self, PyObject *Py_UNUSED(ignored)) {
    PyObject *seen = inlet_follow(self, NULL);
    if (seen == NULL) return NULL;
    self->is_lent = 0;
    Py_CLEAR(self->sink);
    return seen;
}

static PyObject *inlet_feed(Inlet *self, PyObject *arguments) {
    Py_buffer data;
    double now;
    if (!PyArg_ParseTuple(arguments, "y*d", &data, &now)) return NULL;
    Py_INCREF(self);
    use(self, data.buf, (size_t)data.len, now);
    Py_DECREF(self);
    PyBuffer_Release(&data);
    Py_RETURN_NONE;
}

static int make_room(Intake *self, int fd) {
    if (fd < self->room) return 1;
    int room = fd + 64;
    Inlet **inlets = PyMem_Realloc(self->inlets, (size_t)room * sizeof *inlets);
    if (inlets == NULL) return 0;
    memset(inlets + self->room, 0, (size_t)(room - self->room) * sizeof *inlets);
    self->inlets = inlets;
    self->room = room;
    return 1;
}

static PyObject *inlet_start(Inlet *self, PyObject *ready) {
    if (self->intake == NULL) Py_RETURN_NONE;
    if (self->ready == NULL) {
        Intake *intake = self->intake;
        if (!make_room(intake, self->fd)) return PyErr_NoMemory();
        struct epoll_event event = {.events = EPOLLIN, .data.fd = self->fd};
        if (epoll_ctl(intake->poller, EPOLL_CTL_ADD, self->fd, &event))
            return PyErr_SetFromErrno(PyExc_OSError);
        Inlet *before = intake->inlets[self->fd]; /* of a socket that was closed without `stop` */
        intake->inlets[self->fd] = (Inlet *)Py_NewRef(self);
        self->ready = Py_NewRef(ready);
        Py_XDECREF(before);
        Py_RETURN_NONE;
    }
    Py_XSETREF(self->ready, Py_NewRef(ready));
    Py_RETURN_NONE;
}

static PyObject *inlet_stop(Inlet *self, PyObject *Py_UNUSED(ignored)) {
    Intake *intake = self->intake;
    PyObject *ready = self->ready;
    if (intake == NULL || ready == NULL) Py_RETURN_NONE;
    self->ready = NULL;
    if (intake->inlets[self->fd] == self) {
        epoll_ctl(intake->poller, EPOLL_CTL_DEL, self->fd, NULL);
        intake->inlets[self->fd] = NULL;
        Py_DECREF(self); /* the caller has another reference */
    }
    Py_DECREF(ready); /* last, as that may close this and more */
    Py_RETURN_NONE;
}

static PyObject *inlet_close(Inlet *self, PyObject *Py_UNUSED(ignored)) {
    inlet_stop(self, NULL);
    self->is_lent = 0;
    Py_CLEAR(self->sink);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->intake);
    Py_RETURN_NONE;
}

static int inlet_traverse(Inlet *self, visitproc visit, void *arg) {
    Py_VISIT(self->intake);
    Py_VISIT(self->owner);
    Py_VISIT(self->ready);
    Py_VISIT(self->sink);
    return 0;
}

static int inlet_clear(Inlet *self) {
    Py_INCREF(self);
    inlet_close(self, NULL);
    Py_DECREF(self);
    return 0;
}

static void inlet_dealloc(Inlet *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->ready); /* it is not watched any more, or the intake would refer to it */
    Py_CLEAR(self->sink);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->intake);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *inlet_get_active(Inlet *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(self->ready != NULL);
}

static PyObject *inlet_get_passed(Inlet *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->passed);
}

static PyMethodDef inlet_methods[] = {
    {"lend", (PyCFunction)inlet_lend, METH_VARARGS, "Read usual messages from now on."},
    {"follow", (PyCFunction)inlet_follow, METH_NOARGS, "Tell what was read since the last time."},
    {"reclaim", (PyCFunction)inlet_reclaim, METH_NOARGS, "The same, and read no more."},
    {"feed", (PyCFunction)inlet_feed, METH_VARARGS, "Take octets as if they had been read."},
    {"start", (PyCFunction)inlet_start, METH_O, "Call this when there is input that is not lent."},
    {"stop", (PyCFunction)inlet_stop, METH_NOARGS, "Watch the socket no longer."},
    {"close", (PyCFunction)inlet_close, METH_NOARGS, "Stop for good.  Idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef inlet_getset[] = {
    {"active", (getter)inlet_get_active, NULL, "Whether the socket is watched.", NULL},
    {"passed", (getter)inlet_get_passed, NULL, "Messages that were read here.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject Inlet_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rtmplite.net._intake.Inlet",
    .tp_doc = "The input of one connection.",
    .tp_basicsize = sizeof(Inlet),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)inlet_traverse,
    .tp_clear = (inquiry)inlet_clear,
    .tp_dealloc = (destructor)inlet_dealloc,
    .tp_methods = inlet_methods,
    .tp_getset = inlet_getset,
};

/* -- Intake ------------------------------------------------------------------------------ */

static PyObject *intake_open(Intake *self, PyObject *arguments) {
    int fd;
    PyObject *owner;
    if (!PyArg_ParseTuple(arguments, "iO", &fd, &owner)) return NULL;
    if (fd < 0 || fd >= MAX_DESCRIPTOR) {
        PyErr_SetString(PyExc_ValueError, "no descriptor");
        return NULL;
    }
    Inlet *inlet = (Inlet *)PyType_GenericAlloc(&Inlet_Type, 0); /* all zero */
    if (inlet == NULL) return NULL;
    inlet->fd = fd;
    inlet->owner = Py_NewRef(owner);
    inlet->intake = (Intake *)Py_NewRef(self);
    return (PyObject *)inlet;
}

/* Add to what a `ReadBudget` counts. */
static int spend(PyObject *budget, double seconds) {
    PyObject *before = PyObject_GetAttr(budget, str_spent), *sum = NULL;
    double spent = before == NULL ? -1 : PyFloat_AsDouble(before);
    int result = -1;
    if (!PyErr_Occurred() && (sum = PyFloat_FromDouble(spent + seconds)) != NULL)
        result = PyObject_SetAttr(budget, str_spent, sum);
    Py_XDECREF(sum);
    Py_XDECREF(before);
    return result;
}

/* Read what is lent, for so many seconds at most, and have the owners read what is not.  What that
 * took without the owners is noted in a budget. */
static PyObject *intake_turn(Intake *self, PyObject *arguments) {
    double most, spent = 0;
    PyObject *budget;
    if (!PyArg_ParseTuple(arguments, "Od", &budget, &most)) return NULL;
    struct epoll_event events[EVENTS];
    int ready = self->is_turning ? 0 : epoll_wait(self->poller, events, EVENTS, 0);
    self->is_turning++;
    for (int i = 0; i < ready; i++) {
        int fd = events[i].data.fd;
        Inlet *inlet = fd < self->room ? self->inlets[fd] : NULL;
        if (inlet == NULL) continue; /* stopped by one before it */
        Py_INCREF(inlet);
        if (inlet->is_lent && spent < most) {
            double begun = monotonic();
            receive(inlet, self->data);
            spent += monotonic() - begun;
        } else {
            PyObject *call = Py_NewRef(inlet->ready), *done = PyObject_CallNoArgs(call);
            if (done == NULL) PyErr_WriteUnraisable(call);
            Py_XDECREF(done);
            Py_DECREF(call);
        }
        Py_DECREF(inlet);
    }
    self->is_turning--;
    if (spend(budget, spent)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *intake_fileno(Intake *self, PyObject *Py_UNUSED(ignored)) {
    return PyLong_FromLong(self->poller);
}

static int intake_traverse(Intake *self, visitproc visit, void *arg) {
    for (int fd = 0; fd < self->room; fd++) Py_VISIT(self->inlets[fd]);
    return 0;
}

static int intake_clear(Intake *self) {
    for (int fd = 0; fd < self->room; fd++) {
        Inlet *inlet = self->inlets[fd];
        if (inlet == NULL) continue;
        self->inlets[fd] = NULL;
        Py_CLEAR(inlet->ready);
        inlet_close(inlet, NULL);
        Py_DECREF(inlet);
    }
    return 0;
}

static void intake_dealloc(Intake *self) {
    PyObject_GC_UnTrack(self);
    PyMem_Free(self->inlets); /* which are none, as each would refer to this */
    if (self->poller >= 0) close(self->poller);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *intake_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    if (PyTuple_GET_SIZE(arguments) || (names != NULL && PyDict_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "Intake takes no arguments");
        return NULL;
    }
    Intake *self = (Intake *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->poller = epoll_create1(EPOLL_CLOEXEC);
    if (self->poller >= 0) return (PyObject *)self;
    PyErr_SetFromErrno(PyExc_OSError);
    Py_DECREF(self);
    return NULL;
}

static PyMethodDef intake_methods[] = {
    {"open", (PyCFunction)intake_open, METH_VARARGS, "The inlet of a socket that does not block."},
    {"turn", (PyCFunction)intake_turn, METH_VARARGS, "Read what has come."},
    {"fileno", (PyCFunction)intake_fileno, METH_NOARGS, "The descriptor to watch for input."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject Intake_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rtmplite.net._intake.Intake",
    .tp_doc = "Watches many sockets, and reads their usual messages.",
    .tp_basicsize = sizeof(Intake),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = intake_new,
    .tp_traverse = (traverseproc)intake_traverse,
    .tp_clear = (inquiry)intake_clear,
    .tp_dealloc = (destructor)intake_dealloc,
    .tp_methods = intake_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rtmplite.net._intake",
    .m_doc = "The usual audio of publishers, read without Python.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__intake(void) {
    str_take = PyUnicode_InternFromString("take");
    str_read_failed = PyUnicode_InternFromString("read_failed");
    str_sink_failed = PyUnicode_InternFromString("sink_failed");
    str_spent = PyUnicode_InternFromString("spent");
    number_audio = PyLong_FromLong(AUDIO);
    if (!str_take || !str_read_failed || !str_sink_failed || !str_spent || !number_audio)
        return NULL;
    if (PyType_Ready(&Intake_Type) < 0 || PyType_Ready(&Inlet_Type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddObjectRef(made, "Intake", (PyObject *)&Intake_Type) < 0 ||
        PyModule_AddObjectRef(made, "Inlet", (PyObject *)&Inlet_Type) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
