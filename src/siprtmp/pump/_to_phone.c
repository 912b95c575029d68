/* The usual audio of a publisher, from an RTMP message to a phone's RTP socket, without Python.
 *
 * The annotated Python is the specification, and this the same for one case only: a message of the
 * codec in use that makes one packet, comes when it is due, and may be sent without questions.  The
 * functions that it stands for are `AudioStream.publish`, `FlvToRtp.convert` (RFC 3551 §4.2, RFC
 * 5574 §3.3) or `OpusToRtp.convert` (RFC 7587 §4.2), `SampleClock.gap`, `Pacer.passes`,
 * `AudioStream._send`, `Sender.send` (RFC 3550 §5.1) and `MediaPort.send_rtp`.  Whatever is not that
 * case goes to Python, and nothing has changed then: first everything is checked, then everything
 * is counted.  A property test sends the same traffic through both.
 *
 * Python lends a stream by `offload` and takes it back by `reclaim`, with what was counted
 * meanwhile.  `publish` takes each message, and gives `take` what is not usual.
 */
#include "_rtp.h"

#include <errno.h>
#include <sys/uio.h>

enum { AUDIO = 8 /* RTMP 1.0 §7.1.4 */, MAX_HEAD = 8, REANCHOR_MS = 40 /* of `SampleClock` */ };
#define MAX_TICKS (INT64_MAX / 4000)

typedef struct {
    PyObject_HEAD
    int fd; /* -1 when closed */
    PyObject *take;
    struct sockaddr_storage remote;
    socklen_t remote_size; /* 0 without an address */
    unsigned long long passed, unsent;
    int offloaded;
    /* the rest is used while it is offloaded */
    enum kind kind;
    int layers; /* whether the phone takes layers of Speex above the narrowband one */
    uint8_t head[MAX_HEAD];
    size_t head_size, octets; /* of a payload, 0 for any */
    /* as `Sender` has it */
    uint8_t payload_type;
    uint16_t sequence;
    uint32_t ssrc, timestamp;
    double sent_at;
    /* as `SampleClock` has it */
    long long position, anchor_ms, anchor_ticks, rate, offset, ticks;
    /* as `Pacer` has it, all in s */
    double anchor, cut, early, last;
    /* what was counted */
    unsigned long long packets, counted_octets;
} ToPhone;

static unsigned long long all_passed, all_handed; /* of this process */

/* The ticks of a payload that makes one packet, 0 for any other. */
static int one_packet(const ToPhone *self, const uint8_t *payload, size_t size) {
    if (self->octets && size != self->octets) return 0;
    if (self->kind == OPUS) return opus_ticks(payload, size);
    if (self->kind == SPEEX) {
        enum frame frame = one_speex_frame(payload, size);
        if (frame == NO_FRAME || (frame == LAYERED_FRAME && !self->layers)) return 0;
        /* what a comment of Speex might look like */
        if (!((size > 2 && payload[2]) || (size > 3 && payload[3]))) return 0;
    }
    return (int)self->ticks;
}

/* Send one packet, or count that it cannot be: media never waits. */
static void transmit(ToPhone *self, const uint8_t *payload, size_t size) {
    uint8_t header[RTP_HEADER];
    header[0] = 0x80;
    header[1] = self->payload_type;
    put_be16(header + 2, self->sequence);
    put_be32(header + 4, self->timestamp);
    put_be32(header + 8, self->ssrc);
    struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)payload, size}};
    struct msghdr datagram = {.msg_name = &self->remote, .msg_namelen = self->remote_size,
                              .msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent;
    do
        sent = sendmsg(self->fd, &datagram, 0);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) self->unsent++;
}

/* Pass the body of an audio message on, or return 0 with nothing changed. */
static int pass_on(ToPhone *self, long long timestamp, const uint8_t *tag, size_t size, double now) {
    if (!self->offloaded || self->fd < 0 || !self->remote_size) return 0;
    if (size <= self->head_size || memcmp(tag, self->head, self->head_size)) return 0;
    const uint8_t *payload = tag + self->head_size;
    size_t octets = size - self->head_size;
    int ticks = octets <= MAX_DATAGRAM ? one_packet(self, payload, octets) : 0;
    if (!ticks || self->position > MAX_TICKS) return 0;
    long long behind = self->position - self->anchor_ticks;
    long long off = timestamp - (self->anchor_ms + behind * 1000 / self->rate);
    if (off < -REANCHOR_MS || off > REANCHOR_MS) return 0;
    double at = (double)self->position / (double)self->rate - self->cut, due = self->anchor + at;
    if (!(due <= now + self->early)) return 0;
    if (due < now) self->anchor = now - at;
    self->last = at;
    self->sent_at = now;
    self->sequence++;
    self->timestamp = (uint32_t)(self->position + self->offset);
    self->position += ticks;
    self->packets++;
    self->counted_octets += octets;
    self->passed++;
    all_passed++;
    transmit(self, payload, octets);
    return 1;
}

/* -- methods ----------------------------------------------------------------------------- */

/* Whether the arguments are a usual message, which was sent. */
static int is_passed(ToPhone *self, PyObject *const *arguments, Py_ssize_t count) {
    if (!self->offloaded || count != 4 || !PyBytes_CheckExact(arguments[2]) ||
        !PyLong_Check(arguments[0]) || !PyLong_Check(arguments[1]) || !PyFloat_Check(arguments[3]))
        return 0;
    int over = 0, far = 0;
    long type_id = PyLong_AsLongAndOverflow(arguments[0], &over);
    long long timestamp = PyLong_AsLongLongAndOverflow(arguments[1], &far);
    if (over || far || type_id != AUDIO || timestamp < 0 || timestamp > UINT32_MAX) return 0;
    return pass_on(self, timestamp, (const uint8_t *)PyBytes_AS_STRING(arguments[2]),
                   (size_t)PyBytes_GET_SIZE(arguments[2]), PyFloat_AS_DOUBLE(arguments[3]));
}

static PyObject *publish(ToPhone *self, PyObject *const *arguments, Py_ssize_t count) {
    if (is_passed(self, arguments, count)) Py_RETURN_NONE;
    all_handed++;
    PyObject *take = Py_NewRef(self->take);
    PyObject *result = PyObject_Vectorcall(take, arguments, (size_t)count, NULL);
    Py_DECREF(take);
    return result;
}

static PyObject *aim(ToPhone *self, PyObject *address) {
    self->remote_size = read_address(address, &self->remote);
    Py_RETURN_NONE;
}

static PyObject *offload(ToPhone *self, PyObject *arguments) {
    const char *head;
    Py_ssize_t head_size;
    int kind, layers, payload_type;
    unsigned int octets;
    unsigned long sequence, ssrc;
    long long ticks, position, anchor_ms, anchor_ticks, rate, offset;
    double anchor, cut, early;
    if (!PyArg_ParseTuple(arguments, "y#iIpL(ikk)(LLLLL)(ddd)", &head, &head_size, &kind, &octets,
                          &layers, &ticks, &payload_type, &sequence, &ssrc, &position, &anchor_ms,
                          &anchor_ticks, &rate, &offset, &anchor, &cut, &early))
        return NULL;
    if (head_size < 1 || head_size > MAX_HEAD || kind < PLAIN || kind > OPUS || rate < 1 ||
        ticks < (kind != OPUS) || ticks > INT32_MAX || payload_type < 0 || payload_type > 0x7F ||
        position < anchor_ticks || anchor_ticks < 0 || position > MAX_TICKS || anchor_ms < 0 ||
        anchor_ms > MAX_TICKS || offset < 0 || offset > MAX_TICKS) {
        PyErr_SetString(PyExc_ValueError, "terms that no message can meet");
        return NULL;
    }
    if (self->fd < 0 || self->offloaded || !self->remote_size) Py_RETURN_FALSE;
    memcpy(self->head, head, (size_t)head_size);
    self->head_size = (size_t)head_size;
    self->kind = (enum kind)kind;
    self->octets = octets;
    self->layers = layers;
    self->ticks = ticks;
    self->payload_type = (uint8_t)payload_type;
    self->sequence = (uint16_t)sequence;
    self->ssrc = (uint32_t)ssrc;
    self->position = position;
    self->anchor_ms = anchor_ms;
    self->anchor_ticks = anchor_ticks;
    self->rate = rate;
    self->offset = offset;
    self->anchor = anchor;
    self->cut = cut;
    self->early = early;
    self->packets = self->counted_octets = 0;
    self->offloaded = 1;
    Py_RETURN_TRUE;
}

static PyObject *reclaim(ToPhone *self, PyObject *Py_UNUSED(ignored)) {
    if (!self->offloaded) Py_RETURN_NONE;
    self->offloaded = 0;
    return Py_BuildValue("(KKkdLdd)", self->packets, self->counted_octets,
                         (unsigned long)self->timestamp, self->sent_at, self->position,
                         self->anchor, self->last);
}

static PyObject *stop(ToPhone *self, PyObject *Py_UNUSED(ignored)) {
    self->fd = -1;
    Py_RETURN_NONE;
}

static PyObject *get_passed(ToPhone *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->passed);
}

static PyObject *get_unsent(ToPhone *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->unsent);
}

static int traverse(ToPhone *self, visitproc visit, void *arg) {
    Py_VISIT(self->take);
    return 0;
}

static int clear(ToPhone *self) {
    self->offloaded = 0;
    Py_XSETREF(self->take, Py_NewRef(Py_None)); /* so that a late call finds something */
    return 0;
}

static void dealloc(ToPhone *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->take);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    int fd;
    PyObject *take;
    static char *known[] = {"", "", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "iO", known, &fd, &take)) return NULL;
    ToPhone *self = (ToPhone *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->fd = fd;
    self->take = Py_NewRef(take);
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"publish", (PyCFunction)(void (*)(void))publish, METH_FASTCALL, "Take a published message."},
    {"aim", (PyCFunction)aim, METH_O, "Send to this address, or to none."},
    {"offload", (PyCFunction)offload, METH_VARARGS, "Handle usual messages from now on."},
    {"reclaim", (PyCFunction)reclaim, METH_NOARGS, "Stop, and tell what was counted."},
    {"close", (PyCFunction)stop, METH_NOARGS, "Use the socket no longer."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"passed", (getter)get_passed, NULL, "Packets that were made here.", NULL},
    {"unsent", (getter)get_unsent, NULL, "Those that the socket did not take.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject ToPhone_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "siprtmp.pump._to_phone.ToPhone",
    .tp_doc = "The audio that is sent by one socket.",
    .tp_basicsize = sizeof(ToPhone),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = make,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
    .tp_methods = methods,
    .tp_getset = getset,
};

static PyObject *figures(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    return Py_BuildValue("(KK)", all_passed, all_handed);
}

static PyMethodDef functions[] = {
    {"figures", figures, METH_NOARGS, "The messages that were sent here, and those handed up."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "siprtmp.pump._to_phone",
    .m_doc = "The usual audio of publishers, sent without Python.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__to_phone(void) {
    if (PyType_Ready(&ToPhone_Type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddObjectRef(made, "ToPhone", (PyObject *)&ToPhone_Type) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
