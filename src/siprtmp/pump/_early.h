/* Packets that came before their turn: `ReorderBuffer` (RFC 3550 §5.1) for a few of one stream. */
#ifndef SIPRTMP_PUMP_EARLY_H
#define SIPRTMP_PUMP_EARLY_H

#include "_rtp.h"

enum { MOST_EARLY = 32 };

typedef struct {
    double at; /* when it came */
    PyObject *payload;
    uint32_t timestamp;
    uint16_t sequence;
} Early;

typedef struct {
    Early waiting[MOST_EARLY]; /* in the order in which they came */
    int count, depth;
    double hold;
    uint16_t last; /* the number before the one whose turn it is */
    unsigned long long skipped;
} Order;

/* How far a number is behind the last one whose turn has come; 0 for what is late. */
static inline unsigned ahead(const Order *self, uint16_t sequence) {
    unsigned by = (uint16_t)(sequence - self->last);
    return by < 1 << 15 ? by : 0;
}

static inline int has(const Order *self, uint16_t sequence) {
    for (int i = 0; i < self->count; i++)
        if (self->waiting[i].sequence == sequence) return 1;
    return 0;
}

/* Give up what is missing before the lowest number that waits. */
static inline void skip(Order *self) {
    unsigned least = UINT16_MAX;
    for (int i = 0; i < self->count; i++) {
        unsigned by = ahead(self, self->waiting[i].sequence);
        least = by < least ? by : least;
    }
    self->skipped += least - 1;
    self->last = (uint16_t)(self->last + least - 1);
}

/* Take out the one whose turn it is, if that is there; its payload is the caller's. */
static inline int next_in_turn(Order *self, Early *out) {
    for (int i = 0; i < self->count; i++) {
        if (ahead(self, self->waiting[i].sequence) != 1) continue;
        *out = self->waiting[i];
        self->count--;
        memmove(self->waiting + i, self->waiting + i + 1,
                (size_t)(self->count - i) * sizeof *self->waiting);
        self->last = out->sequence;
        return 1;
    }
    return 0;
}

/* The next one that may go on at this time, missing ones before it being given up. */
static inline int next_due(Order *self, double now, Early *out) {
    if (next_in_turn(self, out)) return 1;
    if (self->count == 0 || !(self->waiting[0].at + self->hold <= now)) return 0;
    skip(self);
    return next_in_turn(self, out);
}

static inline void forget_early(Order *self) {
    int count = self->count;
    self->count = 0;
    for (int i = 0; i < count; i++) Py_CLEAR(self->waiting[i].payload);
}

/* What waits, as Python takes it: how far ahead, when it came, its RTP time and payload. */
static inline PyObject *early_of(Order *self) {
    PyObject *early = PyList_New(0);
    for (int i = 0; early != NULL && i < self->count; i++) {
        Early *one = self->waiting + i;
        PyObject *each = Py_BuildValue("(IdkO)", ahead(self, one->sequence), one->at,
                                       (unsigned long)one->timestamp, one->payload);
        if (each == NULL || PyList_Append(early, each)) Py_CLEAR(early);
        Py_XDECREF(each);
    }
    forget_early(self);
    return early;
}

#endif
