/* Arithmetic on the blocks of a packet: `rtmplite.rtmfp.crypto.blocks` without Python.
 *
 * The Python there is the specification, and a test compares the two.  What is encrypted is no
 * business of this file.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

enum { BLOCK = 16 };

static PyObject *blocks_checksum(PyObject *module, PyObject *data) {
    (void)module;
    if (!PyBytes_Check(data)) return PyErr_Format(PyExc_TypeError, "a checksum of bytes");
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(data);
    Py_ssize_t left = PyBytes_GET_SIZE(data);
    uint64_t sum = 0; /* of words of 32 bits as they lie in memory: it has room for 2**32 of them */
    for (; left >= 4; left -= 4, at += 4) {
        uint32_t word;
        memcpy(&word, at, sizeof word);
        sum += word;
    }
    if (left >= 2) {
        uint16_t word;
        memcpy(&word, at, sizeof word);
        sum += word;
        left -= 2, at += 2;
    }
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    /* The sum of words with swapped bytes is the sum with swapped bytes. */
    uint16_t native = (uint16_t)sum;
    unsigned char octets[2];
    memcpy(octets, &native, sizeof octets);
    sum = (uint64_t)octets[0] << 8 | octets[1];
    if (left) sum += *at;
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    return PyLong_FromLong((long)(sum ^ 0xFFFF));
}

static PyObject *blocks_mix(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    if (count != 2 || !PyBytes_Check(given[0]) || !PyBytes_Check(given[1]))
        return PyErr_Format(PyExc_TypeError, "blocks and a block, of bytes");
    Py_ssize_t size = PyBytes_GET_SIZE(given[0]);
    if (size < BLOCK || PyBytes_GET_SIZE(given[1]) != BLOCK)
        return PyErr_Format(PyExc_ValueError, "no block to mix");
    PyObject *mixed = PyBytes_FromStringAndSize(NULL, size);
    if (mixed == NULL) return NULL;
    char *to = PyBytes_AS_STRING(mixed);
    const char *block = PyBytes_AS_STRING(given[1]);
    memcpy(to, PyBytes_AS_STRING(given[0]), (size_t)size);
    for (int i = 0; i < BLOCK; i++) to[i] ^= block[i];
    return mixed;
}

static PyMethodDef methods[] = {
    {"checksum", blocks_checksum, METH_O, NULL},
    {"mix", (PyCFunction)(void (*)(void))blocks_mix, METH_FASTCALL, NULL},
    {NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_blocks", .m_size = 0,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__blocks(void) { return PyModule_Create(&module); }
