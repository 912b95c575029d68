/* The packets of one access unit of H.264, and the NAL units that they are made of.
 *
 * The annotated Python is the specification: `read_h264`, `H264Unpacker` and `AccessUnitAssembler`
 * (RFC 6184 §5), where each packet is the next one, all have one time, and the last one, and no
 * other, has the marker.  `units_of` finds nothing in packets that are anything else.
 */
#ifndef SIPRTMP_PUMP_PICTURES_H
#define SIPRTMP_PUMP_PICTURES_H

#include "_rtp.h"

enum {
    MAX_GATHERED = 1 << 20, /* octets of one access unit; a longer one is for Python */
    MAX_PACKETS = 2048,     /* and packets */
    MAX_NAL_UNITS = 4096,   /* as in `h264_access_units` */
    STAP_A = 24, FU_A = 28, /* RFC 6184 §5.2, Table 1 */
    START = 0x80, END = 0x40, /* RFC 6184 §5.8 */
    FORBIDDEN = 0x80, NRI = 0x60, UNIT_TYPE = 0x1F,
};

typedef struct {
    double at; /* when it came */
    uint32_t size;
} Held;

typedef struct {
    uint8_t *data; /* packets, each behind its `Held` */
    size_t size, room;
    unsigned packets;
    uint32_t timestamp;
} Gathered;

static inline Held held(const Gathered *self, size_t at) {
    Held one;
    memcpy(&one, self->data + at, sizeof one);
    return one;
}

/* Add a packet; 0 if there is no room for it. */
static inline int gather(Gathered *self, const uint8_t *data, size_t size, double now) {
    Held one = {.at = now, .size = (uint32_t)size};
    size_t end = self->size + sizeof one + size;
    if (end > MAX_GATHERED || self->packets == MAX_PACKETS) return 0;
    if (end > self->room) {
        uint8_t *grown = PyMem_Realloc(self->data, 2 * end);
        if (grown == NULL) return 0;
        self->data = grown;
        self->room = 2 * end;
    }
    memcpy(self->data + self->size, &one, sizeof one);
    memcpy(self->data + self->size + sizeof one, data, size);
    self->size = end;
    self->packets++;
    return 1;
}

static inline void forget_last(Gathered *self, size_t size) {
    self->size -= sizeof(Held) + size;
    self->packets--;
}

static inline void forget_all(Gathered *self) {
    self->size = self->packets = 0;
}

/* What is being made of the packets. */
typedef struct {
    PyObject *units; /* a list */
    uint8_t *part;   /* of a NAL unit that comes in fragments, with room for all packets */
    size_t part_size; /* 0 if there is none */
    int has_slice;
} Unpacking;

static int add_unit(Unpacking *self, const uint8_t *unit, size_t size) {
    unsigned kind = unit[0] & UNIT_TYPE;
    if (unit[0] & FORBIDDEN || kind < 1 || kind > 23) return 0;
    if (kind <= 5 && !self->has_slice) {
        if (size < 2 || !(unit[1] & 0x80)) return 0; /* it begins no access unit */
        self->has_slice = 1;
    }
    if (PyList_GET_SIZE(self->units) == MAX_NAL_UNITS) return 0;
    PyObject *made = PyBytes_FromStringAndSize((const char *)unit, (Py_ssize_t)size);
    int is_added = made != NULL && PyList_Append(self->units, made) == 0;
    Py_XDECREF(made);
    return is_added;
}

static int add_fragment(Unpacking *self, const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    uint8_t header = (uint8_t)((data[0] & (FORBIDDEN | NRI)) | (data[1] & UNIT_TYPE));
    if (data[1] & START) {
        if (self->part_size) return 0;
        self->part[self->part_size++] = header;
    } else if (!self->part_size || self->part[0] != header) {
        return 0;
    }
    memcpy(self->part + self->part_size, data + 2, size - 2);
    self->part_size += size - 2;
    if (!(data[1] & END)) return 1;
    int is_added = add_unit(self, self->part, self->part_size);
    self->part_size = 0;
    return is_added;
}

static int add_payload(Unpacking *self, const uint8_t *data, size_t size) {
    unsigned kind = data[0] & UNIT_TYPE;
    if (kind == FU_A) return add_fragment(self, data, size);
    if (self->part_size) return 0;
    if (kind != STAP_A) return add_unit(self, data, size);
    for (size_t at = 1; at < size || at == 1;) {
        if (at + 2 > size) return 0;
        size_t length = be16(data + at);
        at += 2;
        if (length == 0 || length > size - at || !add_unit(self, data + at, length)) return 0;
        at += length;
    }
    return 1;
}

/* The NAL units of an access unit as a tuple; NULL without an error if they are for Python. */
static PyObject *units_of(const Gathered *self) {
    Unpacking made = {.units = PyList_New(0), .part = PyMem_Malloc(self->size + 1)};
    int is_usual = made.units != NULL && made.part != NULL;
    for (size_t at = 0; is_usual && at < self->size;) {
        Held one = held(self, at);
        const uint8_t *packet = self->data + at + sizeof one;
        is_usual = add_payload(&made, packet + RTP_HEADER, one.size - RTP_HEADER);
        at += sizeof one + one.size;
    }
    PyObject *units = NULL;
    if (is_usual && !made.part_size && made.has_slice) units = PyList_AsTuple(made.units);
    PyErr_Clear();
    PyMem_Free(made.part);
    Py_XDECREF(made.units);
    return units;
}

/* Packets as Python takes them, a list of octets and times of arrival; empties what is gathered. */
static PyObject *packets_of(Gathered *self) {
    PyObject *packets = PyList_New(0);
    for (size_t at = 0; packets != NULL && at < self->size;) {
        Held one = held(self, at);
        const char *data = (const char *)self->data + at + sizeof one;
        PyObject *each = Py_BuildValue("(y#d)", data, (Py_ssize_t)one.size, one.at);
        if (each == NULL || PyList_Append(packets, each)) Py_CLEAR(packets);
        Py_XDECREF(each);
        at += sizeof one + one.size;
    }
    forget_all(self);
    return packets;
}

#endif
