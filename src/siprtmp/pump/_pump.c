/* The usual RTP packets of calls, from a socket to RTMP players, without Python.
 *
 * The annotated Python is the specification, and this the same for one case only: a packet of a
 * source that is known.  Of sound it is of a codec that passes as it is, and the next one, or one
 * behind a gap; it goes to players that keep up, or to whatever takes tags.  Packets of H.264 are
 * gathered until a whole access unit is there, which Python takes by one call.  The functions that
 * this stands for are `MediaPort._receive_rtp`, `RtpSession.received_rtp` and `Source.heard` (RFC
 * 3550 §A.1 and §A.8), `AudioStream.on_rtp`, `ReorderBuffer.put`, `MediaClock.milliseconds`,
 * `RtpToFlv.convert`, `LiveStream.write` and `encode_absolute` (RTMP 1.0 §5.3.1.2.1); for H.264 see
 * `_pictures.h`.  Whatever is not that case goes to Python, and nothing has changed then: first
 * everything is checked, then everything is counted.  A property test sends the same traffic
 * through both.
 *
 * Python lends a stream by `Flow.offload` or `Flow.gather`, hears by `Flow.follow` what was counted,
 * and takes all back by `Flow.reclaim`.  Nothing here knows Python's objects but by what it calls,
 * and each of these calls may do anything, such as close this flow.
 */
#include "_early.h"
#include "_pictures.h"
#include "_rtp.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    AUDIO = 8,         /* RTMP 1.0 §7.1.4 */
    CHUNK_HEADER = 12, /* a type 0 header, its basic header being one octet */
    MAX_HEAD = 8,      /* of what an FLV tag begins with */
    MAX_GAP = 64,      /* packets between two that follow each other */
    MAX_DESCRIPTOR = 1 << 20,
    EVENTS = 256, /* sockets that are read in one round */
    ROUNDS = 32,  /* rounds of one turn, if each finds something */
    BURST = 32,   /* packets of a picture that are read in one round */
};
#define EXTENDED 0xFFFFFF /* ms, from which a chunk has an extended timestamp: RTMP 1.0 §5.3.1.3 */
#define LOOK 0.2          /* s between looks for more than one datagram of a socket */
#define FAR (INT64_MAX / 4000) /* ticks and ms from which products and sums might overflow */
#define NEAR 16 /* so many steps of packets that wait for each other are no jump together */

typedef struct {
    PyObject_HEAD
    int poller;
    double look_at;
    int room;            /* of `flows` */
    struct flow **flows; /* by descriptor, each with a reference, or NULL */
    unsigned long long passed, handed;
    uint8_t *datagram;
} Pump;

enum medium { NOTHING, SOUND, PICTURES }; /* what is lent */

typedef struct flow {
    PyObject_HEAD
    Pump *pump; /* a reference, NULL when closed */
    int fd;
    PyObject *take, *failed;
    unsigned long long passed;
    enum medium lent;
    /* the rest is used while it is lent */
    PyObject *ways; /* a tuple of what takes a message for a player, or what takes tags, or units */
    PyObject *wake; /* what is called when `deadline` is earlier than before */
    struct sockaddr_storage source;
    int payload_type;
    uint32_t ssrc;
    enum kind kind;
    uint8_t chunk[CHUNK_HEADER], head[MAX_HEAD];
    size_t head_size, longest;
    Order order;
    Gathered gathered;
    /* as `Source` has it */
    uint16_t highest;
    uint32_t timestamp;
    double jitter, heard_at, clock_rate;
    /* as `MediaClock` has it; of pictures, the time of the last access unit */
    uint32_t media_timestamp;
    long long ticks, base_ms, last_ms, media_rate, span;
    /* what was counted */
    unsigned long long packets, octets, advance, delivered;
} Flow;

static PyTypeObject Pump_Type, Flow_Type;
static PyObject *number_audio;

/* -- payloads and addresses -------------------------------------------------------------- */

static int is_sound(const Flow *flow, const uint8_t *data, size_t size) {
    if (flow->kind == SPEEX) return one_speex_frame(data, size) != NO_FRAME;
    if (flow->kind == OPUS) return opus_ticks(data, size) > 0;
    return 1;
}

static int is_same_address(const struct sockaddr_storage *one, const struct sockaddr_storage *two) {
    if (one->ss_family != two->ss_family) return 0;
    if (one->ss_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)one, *b = (const void *)two;
        return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
    }
    if (one->ss_family != AF_INET6) return 0;
    const struct sockaddr_in6 *a = (const void *)one, *b = (const void *)two;
    return a->sin6_port == b->sin6_port && a->sin6_flowinfo == b->sin6_flowinfo &&
           a->sin6_scope_id == b->sin6_scope_id &&
           memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0;
}

/* The same address as a tuple, as `socket.recvfrom` makes it: a host without its zone. */
static PyObject *address_tuple(const struct sockaddr_storage *from) {
    const struct sockaddr_in *in = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;
    char host[INET6_ADDRSTRLEN] = "";
    if (from->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        return Py_BuildValue("(siII)", host, ntohs(in6->sin6_port), ntohl(in6->sin6_flowinfo),
                             in6->sin6_scope_id);
    }
    if (from->ss_family != AF_INET) return Py_BuildValue("(si)", host, 0);
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    return Py_BuildValue("(si)", host, ntohs(in->sin_port));
}

/* -- what is told ------------------------------------------------------------------------ */

/* Call one of Python's, whose errors it reports itself. */
static void tell(PyObject *callable, PyObject *arguments) {
    PyObject *result = arguments == NULL ? NULL : PyObject_CallObject(callable, arguments);
    if (result == NULL) PyErr_WriteUnraisable(callable);
    Py_XDECREF(result);
    Py_XDECREF(arguments);
}

static void tell_error(PyObject *failed) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL && error != NULL) PyException_SetTraceback(error, trace);
    tell(failed, error == NULL ? NULL : PyTuple_Pack(1, error));
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
}

/* Give something to what takes it, with its time and when it came; takes `made`. */
static void give(Flow *flow, PyObject *taker, PyObject *kind, PyObject *made, PyObject *time,
                 double now) {
    PyObject *moment = PyFloat_FromDouble(now), *done = NULL;
    PyObject *arguments[] = {kind, time, made, moment};
    if (made != NULL && time != NULL && moment != NULL)
        done = PyObject_Vectorcall(taker, arguments + (kind == NULL), kind == NULL ? 3 : 4, NULL);
    if (done == NULL) tell_error(flow->failed);
    Py_XDECREF(done);
    Py_XDECREF(moment);
    Py_XDECREF(time);
    Py_XDECREF(made);
}

/* -- one datagram ------------------------------------------------------------------------ */

/* RTMP time of a packet as `MediaClock.milliseconds` has it, or -1 for a jump: RFC 3550 §5.1. */
static long long media_time(const Flow *flow, uint32_t timestamp, long long *ticks) {
    long long step = (int32_t)(timestamp - flow->media_timestamp);
    if (step < -flow->span || step > flow->span) return -1;
    if (flow->ticks > FAR || flow->ticks < -FAR) return -1;
    if (flow->base_ms > FAR || flow->base_ms < -FAR) return -1;
    *ticks = flow->ticks + step;
    /* Python rounds down and C to 0, which differ before `base_ms`, and so before `last_ms`, only */
    long long now = flow->base_ms + *ticks * 1000 / flow->media_rate;
    return now > flow->last_ms ? now : flow->last_ms;
}

/* Count a packet, and its jitter, in the order of operations of `Source.heard`: RFC 3550 §A.8. */
static void count_arrival(Flow *flow, uint16_t sequence, uint32_t timestamp, size_t octets,
                          double now) {
    double ticks = (double)(int32_t)(timestamp - flow->timestamp);
    double gap = (now - flow->heard_at) * flow->clock_rate - ticks;
    flow->jitter += ((gap < 0 ? -gap : gap) - flow->jitter) / 16;
    flow->timestamp = timestamp;
    flow->heard_at = now;
    flow->packets++;
    flow->octets += octets;
    unsigned by = (uint16_t)(sequence - flow->highest);
    if (by < 1 << 15) {
        flow->highest = sequence;
        flow->advance += by;
    }
}

/* The packet as it leaves: as a whole chunk, or where tags are taken as one. */
static PyObject *message(const Flow *flow, uint32_t at, const uint8_t *payload, size_t octets) {
    size_t body = flow->head_size + octets;
    size_t before = PyTuple_CheckExact(flow->ways) ? CHUNK_HEADER : 0;
    PyObject *data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(before + body));
    if (data == NULL) return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(data);
    if (before) {
        memcpy(out, flow->chunk, CHUNK_HEADER);
        put_be24(out + 1, at);
        put_be24(out + 4, (uint32_t)body);
    }
    memcpy(out + before, flow->head, flow->head_size);
    memcpy(out + before + flow->head_size, payload, octets);
    return data;
}

/* Whether a packet can be passed on when its turn comes; with `others` that wait as well. */
static int has_time(const Flow *flow, uint32_t timestamp, int others) {
    long long ticks, at = media_time(flow, timestamp, &ticks);
    long long step = (int32_t)(timestamp - flow->media_timestamp);
    if (others && (step < -flow->span / NEAR || step > flow->span / NEAR)) return 0;
    return at >= 0 && at < (PyTuple_CheckExact(flow->ways) ? EXTENDED : UINT32_MAX);
}

/* Pass on a packet whose turn it is, which came at `now`: to all players, or as a tag. */
static void deliver(Flow *flow, uint32_t timestamp, const uint8_t *payload, size_t octets,
                    double now) {
    long long ticks = 0, at = media_time(flow, timestamp, &ticks); /* `has_time` */
    flow->media_timestamp = timestamp;
    flow->ticks = ticks;
    flow->last_ms = at;
    flow->delivered++;
    PyObject *ways = Py_NewRef(flow->ways), *made = message(flow, (uint32_t)at, payload, octets);
    if (!PyTuple_CheckExact(ways)) {
        give(flow, ways, number_audio, made, PyLong_FromLongLong(at), now);
        Py_DECREF(ways);
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ways); i++) {
        PyObject *done = made == NULL ? NULL : PyObject_CallOneArg(PyTuple_GET_ITEM(ways, i), made);
        if (done == NULL) {
            tell_error(flow->failed);
            break;
        }
        Py_DECREF(done);
    }
    Py_XDECREF(made);
    Py_DECREF(ways);
}

/* Pass on what waits, as far as its turn has come, or the time is over for what is before it. */
static void release(Flow *flow, double now) {
    Early one;
    while (flow->lent == SOUND && next_due(&flow->order, now, &one)) {
        deliver(flow, one.timestamp, (const uint8_t *)PyBytes_AS_STRING(one.payload),
                (size_t)PyBytes_GET_SIZE(one.payload), one.at);
        Py_DECREF(one.payload);
    }
}

static void count_passed(Flow *flow) {
    flow->passed++;
    if (flow->pump != NULL) flow->pump->passed++;
}

/* Note that packets which are counted as passed are for Python after all. */
static void pass_back(Flow *flow, unsigned packets) {
    if (flow->pump == NULL) return;
    flow->pump->passed -= packets;
    flow->pump->handed += packets;
}

/* Keep a packet that came before its turn, or behind one that did; 0 with nothing changed. */
static int keep_early(Flow *flow, uint16_t sequence, uint32_t timestamp, const uint8_t *payload,
                      size_t octets, double now) {
    Order *order = &flow->order;
    unsigned by = ahead(order, sequence);
    if (by == 0 || by > MAX_GAP || has(order, sequence) || !has_time(flow, timestamp, 1)) return 0;
    PyObject *kept = PyBytes_FromStringAndSize((const char *)payload, (Py_ssize_t)octets);
    if (kept == NULL) {
        PyErr_Clear();
        return 0;
    }
    int is_first = order->count == 0;
    order->waiting[order->count++] = (Early){now, kept, timestamp, sequence};
    count_arrival(flow, sequence, timestamp, octets, now);
    count_passed(flow);
    if (order->count > order->depth) skip(order);
    release(flow, now);
    if (is_first && flow->lent == SOUND && order->count) {
        PyObject *wake = Py_NewRef(flow->wake), *done = PyObject_CallNoArgs(wake);
        if (done == NULL) tell_error(flow->failed);
        Py_XDECREF(done);
        Py_DECREF(wake);
    }
    return 1;
}

static int pass_sound(Flow *flow, const uint8_t *data, size_t size, double now) {
    uint16_t sequence = (uint16_t)be16(data + 2);
    uint32_t timestamp = be32(data + 4);
    const uint8_t *payload = data + RTP_HEADER;
    size_t octets = size - RTP_HEADER;
    if (flow->head_size + octets > flow->longest || !is_sound(flow, payload, octets)) return 0;
    if (flow->order.count || ahead(&flow->order, sequence) != 1)
        return keep_early(flow, sequence, timestamp, payload, octets, now);
    if (!has_time(flow, timestamp, 0)) return 0;
    flow->order.last = sequence;
    count_arrival(flow, sequence, timestamp, octets, now);
    count_passed(flow);
    deliver(flow, timestamp, payload, octets, now);
    return 1;
}

/* Gather a packet of pictures; with the last one of an access unit give that to Python. */
static int pass_picture(Flow *flow, const uint8_t *data, size_t size, double now) {
    Gathered *gathered = &flow->gathered;
    uint16_t next = (uint16_t)(flow->highest + 1);
    uint32_t timestamp = be32(data + 4);
    if (be16(data + 2) != next || (gathered->packets && timestamp != gathered->timestamp) ||
        !gather(gathered, data, size, now))
        return 0;
    int is_last = (data[1] & 0x80) != 0;
    PyObject *units = is_last ? units_of(gathered) : NULL;
    if (is_last && units == NULL) {
        forget_last(gathered, size);
        return 0;
    }
    gathered->timestamp = timestamp;
    count_arrival(flow, next, timestamp, size - RTP_HEADER, now);
    count_passed(flow);
    if (!is_last) return 1;
    flow->media_timestamp = timestamp;
    forget_all(gathered);
    flow->delivered++;
    PyObject *taker = Py_NewRef(flow->ways);
    give(flow, taker, NULL, units, PyLong_FromUnsignedLong(timestamp), now);
    Py_DECREF(taker);
    return 1;
}

/* Pass a datagram of the right source on, or return 0 with nothing changed. */
static int pass_on(Flow *flow, const uint8_t *data, size_t size, double now) {
    if (flow->lent == NOTHING || size <= RTP_HEADER || data[0] != 0x80) return 0;
    if ((data[1] & 0x7F) != flow->payload_type || (data[1] >= 192 && data[1] <= 223)) return 0;
    if (be32(data + 8) != flow->ssrc) return 0;
    return (flow->lent == SOUND ? pass_sound : pass_picture)(flow, data, size, now);
}

/* Give a datagram to Python, with the address that `recvfrom` would give; takes `source`. */
static void hand_up(Flow *flow, const uint8_t *data, size_t size, PyObject *source, double now) {
    PyObject *copy = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    PyObject *time = PyFloat_FromDouble(now);
    if (flow->pump != NULL) flow->pump->handed++;
    if (copy != NULL && source != NULL && time != NULL)
        tell(flow->take, PyTuple_Pack(3, copy, source, time));
    else
        PyErr_WriteUnraisable(flow->take);
    Py_XDECREF(copy);
    Py_XDECREF(source);
    Py_XDECREF(time);
}

/* -- Flow -------------------------------------------------------------------------------- */

/* Begin to handle what a source sends, unless that cannot be. */
static int lend(Flow *self, PyObject *source, enum medium medium, PyObject *ways, PyObject *wake) {
    struct sockaddr_storage address;
    if (self->pump == NULL || self->lent != NOTHING || !read_address(source, &address)) return 0;
    self->source = address;
    self->packets = self->octets = self->advance = self->delivered = 0;
    self->order.skipped = 0;
    Py_XSETREF(self->ways, Py_NewRef(ways));
    Py_XSETREF(self->wake, Py_NewRef(wake));
    self->lent = medium;
    return 1;
}

static PyObject *flow_offload(Flow *self, PyObject *arguments) {
    PyObject *source, *ways, *wake;
    const char *chunk, *head;
    Py_ssize_t chunk_size, head_size;
    unsigned long ssrc, sequence, timestamp, media_timestamp;
    long long ticks, base_ms, last_ms, media_rate, span, clock_rate;
    double jitter, heard_at, hold;
    int payload_type, kind, longest, depth;
    if (!PyArg_ParseTuple(arguments, "OOy#iy#iik(kLdkd)(kLLLLL)(id)O", &source, &ways, &chunk,
                          &chunk_size, &longest, &head, &head_size, &kind, &payload_type, &ssrc,
                          &sequence, &clock_rate, &jitter, &timestamp, &heard_at, &media_timestamp,
                          &ticks, &base_ms, &last_ms, &media_rate, &span, &depth, &hold, &wake))
        return NULL;
    if (chunk_size != CHUNK_HEADER || head_size < 1 || head_size > MAX_HEAD || longest < 1 ||
        longest > MAX_DATAGRAM || kind < PLAIN || kind > OPUS || media_rate < 1 || span < 0 ||
        depth < 0 || depth >= MOST_EARLY) {
        PyErr_SetString(PyExc_ValueError, "terms that no packet can meet");
        return NULL;
    }
    if (!lend(self, source, SOUND, ways, wake)) Py_RETURN_FALSE;
    memcpy(self->chunk, chunk, CHUNK_HEADER);
    memcpy(self->head, head, (size_t)head_size);
    self->head_size = (size_t)head_size;
    self->longest = (size_t)longest;
    self->kind = (enum kind)kind;
    self->payload_type = payload_type;
    self->ssrc = (uint32_t)ssrc;
    self->highest = self->order.last = (uint16_t)sequence;
    self->order.depth = depth;
    self->order.hold = hold;
    self->clock_rate = (double)clock_rate;
    self->jitter = jitter;
    self->timestamp = (uint32_t)timestamp;
    self->heard_at = heard_at;
    self->media_timestamp = (uint32_t)media_timestamp;
    self->ticks = ticks;
    self->base_ms = base_ms;
    self->last_ms = last_ms;
    self->media_rate = media_rate;
    self->span = span;
    Py_RETURN_TRUE;
}

static PyObject *flow_gather(Flow *self, PyObject *arguments) {
    PyObject *source, *taker;
    unsigned long ssrc, sequence, timestamp;
    long long clock_rate;
    double jitter, heard_at;
    int payload_type;
    if (!PyArg_ParseTuple(arguments, "OOik(kLdkd)", &source, &taker, &payload_type, &ssrc,
                          &sequence, &clock_rate, &jitter, &timestamp, &heard_at))
        return NULL;
    if (!lend(self, source, PICTURES, taker, Py_None)) Py_RETURN_FALSE;
    self->payload_type = payload_type;
    self->ssrc = (uint32_t)ssrc;
    self->highest = (uint16_t)sequence;
    self->clock_rate = (double)clock_rate;
    self->jitter = jitter;
    self->timestamp = self->media_timestamp = (uint32_t)timestamp;
    self->heard_at = heard_at;
    Py_RETURN_TRUE;
}

/* What was counted since the last time, `waiting` being what is given back; takes it. */
static PyObject *counted(Flow *self, PyObject *waiting) {
    if (waiting == NULL) return NULL;
    PyObject *seen = Py_BuildValue(
        "(KKKdkdKKkLLN)", self->packets, self->octets, self->advance, self->jitter,
        (unsigned long)self->timestamp, self->heard_at, self->delivered, self->order.skipped,
        (unsigned long)self->media_timestamp, self->ticks, self->last_ms, waiting);
    self->packets = self->octets = self->advance = self->delivered = self->order.skipped = 0;
    return seen;
}

static PyObject *flow_follow(Flow *self, PyObject *Py_UNUSED(ignored)) {
    if (self->lent == NOTHING || !(self->packets || self->delivered)) Py_RETURN_NONE;
    return counted(self, PyList_New(0));
}

static PyObject *flow_reclaim(Flow *self, PyObject *Py_UNUSED(ignored)) {
    enum medium lent = self->lent;
    if (lent == NOTHING) Py_RETURN_NONE;
    self->lent = NOTHING;
    Py_CLEAR(self->ways);
    Py_CLEAR(self->wake);
    pass_back(self, lent == SOUND ? (unsigned)self->order.count : self->gathered.packets);
    return counted(self, lent == SOUND ? early_of(&self->order) : packets_of(&self->gathered));
}

static PyObject *flow_tick(Flow *self, PyObject *moment) {
    double now = PyFloat_AsDouble(moment);
    if (now == -1.0 && PyErr_Occurred()) return NULL;
    Py_INCREF(self);
    release(self, now);
    Py_DECREF(self);
    Py_RETURN_NONE;
}

static PyObject *flow_get_deadline(Flow *self, void *Py_UNUSED(closure)) {
    if (self->lent != SOUND || !self->order.count) Py_RETURN_NONE;
    return PyFloat_FromDouble(self->order.waiting[0].at + self->order.hold);
}

static PyObject *flow_feed(Flow *self, PyObject *arguments) {
    Py_buffer data;
    PyObject *source;
    double now;
    struct sockaddr_storage address;
    if (!PyArg_ParseTuple(arguments, "y*Od", &data, &source, &now)) return NULL;
    Py_INCREF(self);
    if (!read_address(source, &address) || !is_same_address(&address, &self->source) ||
        !pass_on(self, data.buf, (size_t)data.len, now))
        hand_up(self, data.buf, (size_t)data.len, Py_NewRef(source), now);
    Py_DECREF(self);
    PyBuffer_Release(&data);
    Py_RETURN_NONE;
}

static PyObject *flow_close(Flow *self, PyObject *Py_UNUSED(ignored)) {
    Pump *pump = self->pump;
    if (pump != NULL) {
        self->pump = NULL;
        epoll_ctl(pump->poller, EPOLL_CTL_DEL, self->fd, NULL);
        if (self->fd < pump->room && pump->flows[self->fd] == self) {
            pump->flows[self->fd] = NULL;
            Py_DECREF(self); /* the caller has another reference */
        }
        Py_DECREF(pump);
    }
    Py_RETURN_NONE;
}

static int flow_traverse(Flow *self, visitproc visit, void *arg) {
    Py_VISIT(self->pump);
    Py_VISIT(self->take);
    Py_VISIT(self->failed);
    Py_VISIT(self->ways);
    Py_VISIT(self->wake);
    return 0;
}

static int flow_clear(Flow *self) {
    self->lent = NOTHING;
    Py_CLEAR(self->pump);
    Py_CLEAR(self->ways);
    Py_CLEAR(self->wake);
    return 0; /* `take` and `failed` stay, so that a late call finds them; see `pump_clear` */
}

static void flow_dealloc(Flow *self) {
    PyObject_GC_UnTrack(self);
    flow_clear(self);
    forget_early(&self->order);
    PyMem_Free(self->gathered.data);
    Py_CLEAR(self->take);
    Py_CLEAR(self->failed);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *flow_get_passed(Flow *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->passed);
}

static PyMethodDef flow_methods[] = {
    {"offload", (PyCFunction)flow_offload, METH_VARARGS, "Handle usual sound from now on."},
    {"gather", (PyCFunction)flow_gather, METH_VARARGS, "Handle usual pictures from now on."},
    {"follow", (PyCFunction)flow_follow, METH_NOARGS, "Tell what was counted."},
    {"tick", (PyCFunction)flow_tick, METH_O, "Pass on what has waited enough."},
    {"reclaim", (PyCFunction)flow_reclaim, METH_NOARGS, "Stop, and tell what was counted."},
    {"feed", (PyCFunction)flow_feed, METH_VARARGS, "Take a datagram as if it had been read."},
    {"close", (PyCFunction)flow_close, METH_NOARGS, "Watch the socket no longer.  Idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef flow_getset[] = {
    {"deadline", (getter)flow_get_deadline, NULL, "When to call `tick`, or None.", NULL},
    {"passed", (getter)flow_get_passed, NULL, "Packets that were handled here.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject Flow_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "siprtmp.pump._pump.Flow",
    .tp_doc = "The packets of one socket.",
    .tp_basicsize = sizeof(Flow),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)flow_traverse,
    .tp_clear = (inquiry)flow_clear,
    .tp_dealloc = (destructor)flow_dealloc,
    .tp_methods = flow_methods,
    .tp_getset = flow_getset,
};

/* -- Pump -------------------------------------------------------------------------------- */

static int make_room(Pump *self, int fd) {
    if (fd < self->room) return 1;
    int room = fd + 64;
    Flow **flows = PyMem_Realloc(self->flows, (size_t)room * sizeof *flows);
    if (flows == NULL) return 0;
    memset(flows + self->room, 0, (size_t)(room - self->room) * sizeof *flows);
    self->flows = flows;
    self->room = room;
    return 1;
}

static PyObject *pump_open(Pump *self, PyObject *arguments) {
    int fd;
    PyObject *take, *failed;
    if (!PyArg_ParseTuple(arguments, "iOO", &fd, &take, &failed)) return NULL;
    if (fd < 0 || fd >= MAX_DESCRIPTOR || (fd < self->room && self->flows[fd] != NULL)) {
        PyErr_SetString(PyExc_ValueError, "no descriptor, or one that is open here already");
        return NULL;
    }
    if (!make_room(self, fd)) return PyErr_NoMemory();
    Flow *flow = (Flow *)PyType_GenericAlloc(&Flow_Type, 0); /* all zero */
    if (flow == NULL) return NULL;
    flow->fd = fd;
    flow->take = Py_NewRef(take);
    flow->failed = Py_NewRef(failed);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(self->poller, EPOLL_CTL_ADD, fd, &event)) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(flow);
        return NULL;
    }
    flow->pump = (Pump *)Py_NewRef(self);
    self->flows[fd] = (Flow *)Py_NewRef(flow);
    return (PyObject *)flow;
}

static double monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)((long long)now.tv_sec * 1000000000 + now.tv_nsec) / 1e9;
}

/* Read one datagram of a socket, and return when that was; `is_read` says whether there was any. */
static double receive(Pump *self, Flow *flow, int *is_read) {
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    ssize_t got =
        recvfrom(flow->fd, self->datagram, MAX_DATAGRAM, 0, (struct sockaddr *)&from, &size);
    double now = monotonic();
    *is_read = got >= 0;
    if (got < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            PyErr_SetFromErrno(PyExc_OSError);
            tell_error(flow->failed);
        }
    } else if (flow->lent == NOTHING || !is_same_address(&from, &flow->source) ||
               !pass_on(flow, self->datagram, (size_t)got, now)) {
        hand_up(flow, self->datagram, (size_t)got, address_tuple(&from), now);
    }
    return now;
}

/* Read a datagram of a socket, or as much as there is of a picture that has begun. */
static double receive_some(Pump *self, Flow *flow) {
    int is_read;
    double now = receive(self, flow, &is_read);
    for (int i = 1; i < BURST && is_read && flow->gathered.packets && flow->pump != NULL; i++)
        now = receive(self, flow, &is_read);
    return now;
}

/* A second read of a socket mostly finds nothing; so there is one look in `LOOK` seconds, and more
 * as long as it finds something: see `MediaPort`. */
static PyObject *pump_turn(Pump *self, PyObject *Py_UNUSED(ignored)) {
    struct epoll_event events[EVENTS];
    int is_looking = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int ready = epoll_wait(self->poller, events, EVENTS, 0);
        double now = 0;
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            Flow *flow = fd < self->room ? self->flows[fd] : NULL;
            if (flow == NULL) continue; /* closed by one before it */
            Py_INCREF(flow);
            now = receive_some(self, flow);
            Py_DECREF(flow);
        }
        if (ready <= 0) break;
        if (is_looking)
            self->look_at = now; /* there may be more, and at the next wake-up as well */
        else if (now >= self->look_at)
            is_looking = 1, self->look_at = now + LOOK;
        else
            break;
    }
    Py_RETURN_NONE;
}

static PyObject *pump_fileno(Pump *self, PyObject *Py_UNUSED(ignored)) {
    return PyLong_FromLong(self->poller);
}

static int pump_traverse(Pump *self, visitproc visit, void *arg) {
    for (int fd = 0; fd < self->room; fd++) Py_VISIT(self->flows[fd]);
    return 0;
}

static int pump_clear(Pump *self) {
    for (int fd = 0; fd < self->room; fd++) {
        Flow *flow = self->flows[fd];
        if (flow == NULL) continue;
        self->flows[fd] = NULL;
        Py_CLEAR(flow->pump);
        flow->lent = NOTHING;
        Py_DECREF(flow);
    }
    return 0;
}

static void pump_dealloc(Pump *self) {
    PyObject_GC_UnTrack(self);
    pump_clear(self);
    PyMem_Free(self->flows);
    PyMem_Free(self->datagram);
    if (self->poller >= 0) close(self->poller);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *pump_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    if (PyTuple_GET_SIZE(arguments) || (names != NULL && PyDict_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "Pump takes no arguments");
        return NULL;
    }
    Pump *self = (Pump *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->poller = epoll_create1(EPOLL_CLOEXEC);
    self->datagram = PyMem_Malloc(MAX_DATAGRAM);
    if (self->poller < 0)
        PyErr_SetFromErrno(PyExc_OSError);
    else if (self->datagram == NULL)
        PyErr_NoMemory();
    else
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyObject *pump_get_passed(Pump *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->passed);
}

static PyObject *pump_get_handed(Pump *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->handed);
}

static PyMethodDef pump_methods[] = {
    {"open", (PyCFunction)pump_open, METH_VARARGS, "Watch a socket that does not block."},
    {"turn", (PyCFunction)pump_turn, METH_NOARGS, "Read what has come."},
    {"fileno", (PyCFunction)pump_fileno, METH_NOARGS, "The descriptor to watch for input."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef pump_getset[] = {
    {"passed", (getter)pump_get_passed, NULL, "Packets that were handled here.", NULL},
    {"handed", (getter)pump_get_handed, NULL, "Datagrams that were handed to Python.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject Pump_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "siprtmp.pump._pump.Pump",
    .tp_doc = "Reads many sockets, and handles their usual packets.",
    .tp_basicsize = sizeof(Pump),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = pump_new,
    .tp_traverse = (traverseproc)pump_traverse,
    .tp_clear = (inquiry)pump_clear,
    .tp_dealloc = (destructor)pump_dealloc,
    .tp_methods = pump_methods,
    .tp_getset = pump_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "siprtmp.pump._pump",
    .m_doc = "The usual packets of calls, handled without Python.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__pump(void) {
    if ((number_audio = PyLong_FromLong(AUDIO)) == NULL) return NULL;
    if (PyType_Ready(&Pump_Type) < 0 || PyType_Ready(&Flow_Type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddObjectRef(made, "Pump", (PyObject *)&Pump_Type) < 0 ||
        PyModule_AddObjectRef(made, "Flow", (PyObject *)&Flow_Type) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
