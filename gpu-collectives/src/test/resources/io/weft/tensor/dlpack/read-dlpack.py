"""Starts a JVM in this process and has numpy take its tensors by DLPack.

python3 read-dlpack.py <libjvm.so> <class path>
"""
import ctypes
import gc
import sys

import numpy

JNI_VERSION = 0x00010008
FIND_CLASS, GET_STATIC_METHOD, CALL_STATIC_INT, CALL_STATIC_LONG = 6, 113, 131, 134
FORMS = ["dltensor", "dltensor_versioned"]
TYPES = ["float32", "int64"]


class Option(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("extra", ctypes.c_void_p)]


class Arguments(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("options", ctypes.POINTER(Option)),
        ("ignore", ctypes.c_uint8),
    ]


class Jvm:
    """The static methods of one class."""

    def __init__(self, library, class_path, name):
        texts = [f"-Djava.class.path={class_path}", "-Xmx64m", "-XX:+UseSerialGC"]
        options = (Option * len(texts))(*[Option(text.encode(), None) for text in texts])
        arguments = Arguments(JNI_VERSION, len(texts), options, 0)
        vm, self.env = ctypes.c_void_p(), ctypes.c_void_p()
        result = ctypes.CDLL(library).JNI_CreateJavaVM(
            ctypes.byref(vm), ctypes.byref(self.env), ctypes.byref(arguments))
        assert result == 0, f"JNI_CreateJavaVM gave {result}"
        self.type = self.call(FIND_CLASS, ctypes.c_void_p, name)
        assert self.type, f"no class {name}"

    def call(self, index, result, *arguments):
        table = ctypes.cast(self.env, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
        kinds = [ctypes.c_char_p if isinstance(a, bytes) else ctypes.c_void_p for a in arguments]
        function = ctypes.CFUNCTYPE(result, ctypes.c_void_p, *kinds)(table[index])
        return function(self.env, *arguments)

    def static(self, index, result, name, signature, *values):
        method = self.call(GET_STATIC_METHOD, ctypes.c_void_p, self.type, name, signature)
        assert method, f"no method {name}"
        packed = (ctypes.c_int64 * max(1, len(values)))(*values)
        return self.call(index, result, self.type, method, ctypes.addressof(packed))

    def make(self, form, dtype):
        return self.static(CALL_STATIC_LONG, ctypes.c_int64, b"make", b"(II)J", form, dtype)

    def released(self):
        return self.static(CALL_STATIC_INT, ctypes.c_int32, b"released", b"()I")


class Producer:
    """An object of the array interface around a structure's address."""

    def __init__(self, address, name):
        self.address, self.name = address, name.encode()

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(self.address, self.name, None)

    def __dlpack_device__(self):
        return 1, 0


def main():
    jvm = Jvm(sys.argv[1], sys.argv[2], b"io/weft/tensor/dlpack/DlpackProducer")
    versioned = tuple(int(n) for n in numpy.__version__.split(".")[:2]) >= (2, 1)
    given_back = 0
    for form, name in enumerate(FORMS[:2 if versioned else 1]):
        for dtype, element in enumerate(TYPES):
            structure = jvm.make(form, dtype)
            assert structure, "Java threw instead"
            at = structure + (32 if form == 1 else 0)
            data = ctypes.c_uint64.from_address(at).value
            producer = Producer(structure, name)
            array = numpy.from_dlpack(producer)
            assert array.dtype == element and array.shape == (2, 3, 4), array
            assert array.__array_interface__["data"][0] == data, "it was copied"
            assert (array == numpy.arange(24).reshape(2, 3, 4)).all(), array
            assert form == 0 or not array.flags.writeable, "it is to be read only"
            assert jvm.released() == given_back, "it was given back while it is used"
            del array, producer
            gc.collect()
            given_back += 1
            assert jvm.released() == given_back, "it was not given back"
        print(f"{name}: read in place, given back")


main()
